"""The counters that are compared: how each is read from a Trace and from ncu's metrics, and its bound.

Wavefronts of shared memory are read for each instruction (`smsp__sass_l1tex_...`). L1's own counters of them
(`l1tex__data_pipe_lsu_wavefronts_mem_shared_...`) also count passes that had to wait for other traffic, such as global
loads that arrive: up to 7% more in a transpose, whose shared accesses have no conflict at all. For atomics there are
only those.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from labkit.bench.counters.machine_code import request_factor, wavefront_factor
from labkit.forecast.sass import Sass
from labkit.machine.gpus import gpu
from labkit.trace import SECTOR_BYTES, SiteCounters, Trace

EXACT_BOUND = 0.0
CONFLICT_BOUND = 0.02  # share by which wavefronts may be off where banks conflict
HIT_RATE_BOUND = 0.10  # largest difference of two hit rates
L2_BYTES_BOUND = 0.05  # share by which bytes from L2 may be off
DRAM_BYTES_BOUND = 0.15  # share by which DRAM bytes may be off where the data do not fit into L2
FLOPS = {  # of each instruction that ncu counts
    f"smsp__sass_thread_inst_executed_op_{operation}_pred_on.sum": flops
    for operation, flops in dict(ffma=2, fadd=1, fmul=1, dfma=2, dadd=1, dmul=1).items()
}


class Counter(ABC):
    """One counter; `agreement` is 1 if both sides are equal, and may differ from 1 by `bound`."""

    name: str
    metrics: tuple[str, ...]  # of ncu
    usual_bound: ClassVar[float] = EXACT_BOUND

    @abstractmethod
    def predicted(self, trace: Trace) -> float: ...

    def measured(self, metrics: dict[str, float]) -> float:
        return sum(metrics[name] for name in self.metrics)

    def bound(self, trace: Trace) -> float:
        return self.usual_bound

    def factor(self, code: Sass, trace: Trace) -> float:
        """Return the machine code's accesses over those of the source."""
        return 1.0

    def agreement(self, expected: float, measured: float) -> float:
        return measured / expected if expected else 0.0

    def concerns(self, trace: Trace) -> bool:
        return True


@dataclass(frozen=True)
class Accesses(Counter):
    """The sum of one field over the sites of one space and kind."""

    name: str
    space: str
    kind: str
    field: str
    metrics: tuple[str, ...]

    def predicted(self, trace):
        return sum(getattr(site, self.field) for site in sites(trace, self.space, self.kind))

    def factor(self, code, trace):
        if self.name == "shared_load_wavefronts":
            return wavefront_factor(code, trace)
        return request_factor(code, f"{self.space} {self.kind}", trace) if self.field == "requests" else 1.0

    def bound(self, trace):
        conflicts = sum(site.bank_conflicts for site in sites(trace, self.space, self.kind))
        return CONFLICT_BOUND if self.field == "wavefronts" and conflicts else EXACT_BOUND


@dataclass(frozen=True)
class Flops(Counter):
    """Floating-point operations of threads; those of atomics happen in L2, where ncu does not count them."""

    name: str = "flops"
    metrics: tuple[str, ...] = tuple(FLOPS)

    def predicted(self, trace):
        in_l2 = sum(s.accesses for s in trace.sites if s.site.kind == "atomic" and s.site.dtype.startswith("float"))
        return trace.counters.flops - in_l2

    def measured(self, metrics):
        return sum(metrics[name] * flops for name, flops in FLOPS.items())


@dataclass(frozen=True)
class HitRate(Counter):
    """The share of load sectors that a cache had; two rates agree by their difference, in points."""

    name: str
    metrics: tuple[str, ...]  # hits and lookups
    usual_bound = HIT_RATE_BOUND

    def predicted(self, trace):
        loads = sites(trace, "global", "load")
        sectors, l1_hits = (sum(getattr(s, name) for s in loads) for name in ("sectors", "l1_hits"))
        if self.name == "l1_hit_rate":
            return l1_hits / sectors if sectors else 0.0
        return sum(s.l2_hits for s in loads) / (sectors - l1_hits) if sectors > l1_hits else 0.0

    def measured(self, metrics):
        hits, lookups = (metrics[name] for name in self.metrics)
        return hits / lookups if lookups else 0.0

    def agreement(self, expected, measured):
        return 1 + measured - expected


@dataclass(frozen=True)
class BytesFromL2(Counter):
    """Bytes from L2 to the SMs, TMA's included, of launches without L1 hits and global atomics."""

    name: str = "bytes_from_l2"
    metrics: tuple[str, ...] = ("l1tex__m_xbar2l1tex_read_bytes.sum",)
    usual_bound = L2_BYTES_BOUND

    def predicted(self, trace):
        return sum(site.sectors for site in sites(trace, "global", "load")) * SECTOR_BYTES

    def concerns(self, trace):
        return trace.counters.l1_hits == trace.counters.global_atomics == 0


@dataclass(frozen=True)
class DramBytes(Counter):
    """Bytes between L2 and device memory, where the arguments do not fit into L2."""

    name: str
    metrics: tuple[str, ...]
    usual_bound = DRAM_BYTES_BOUND

    def predicted(self, trace):
        """Without what the kernel wrote that L2 still holds: ncu stops counting when the kernel ends."""
        left = trace.counters.l2_dirty_bytes if self.name == "dram_write_bytes" else 0
        return getattr(trace.counters, self.name) - left

    def concerns(self, trace):
        return sum(getattr(value, "nbytes", 0) for value in trace.outputs) > gpu(trace.gpu).l2_bytes


def sites(trace: Trace, space: str, kind: str) -> list[SiteCounters]:
    """Return the sites of a kind of access."""
    return [counted for counted in trace.sites if (counted.site.space, counted.site.kind) == (space, kind)]


def _global(kind, field, *operations):
    metrics = tuple(f"l1tex__t_{field}_pipe_lsu_mem_global_op_{operation}.sum" for operation in operations)
    return Accesses(f"global_{kind}_{field}", "global", kind, field, metrics)


def _wavefronts(kind, metric):
    name = f"{metric}_data_pipe_lsu_wavefronts_mem_shared_op_{dict(load='ld', store='st', atomic='atom')[kind]}.sum"
    return Accesses(f"shared_{kind}_wavefronts", "shared", kind, "wavefronts", (name,))


def _hit_rate(cache, metric):
    return HitRate(f"{cache}_hit_rate", (f"{metric}_lookup_hit.sum", f"{metric}.sum"))


COUNTERS: tuple[Counter, ...] = (
    _global("load", "requests", "ld"),
    _global("load", "sectors", "ld"),
    _global("store", "requests", "st"),
    _global("store", "sectors", "st"),
    _global("atomic", "requests", "red", "atom"),
    _global("atomic", "sectors", "red", "atom"),
    Accesses("shared_load_requests", "shared", "load", "requests", ("smsp__sass_inst_executed_op_shared_ld.sum",)),
    _wavefronts("load", "smsp__sass_l1tex"),
    _wavefronts("store", "smsp__sass_l1tex"),
    _wavefronts("atomic", "l1tex_"),
    Flops(),
    _hit_rate("l1", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"),
    _hit_rate("l2", "lts__t_sectors_srcunit_tex_op_read"),
    BytesFromL2(),
    DramBytes("dram_read_bytes", ("dram__bytes_read.sum",)),
    DramBytes("dram_write_bytes", ("dram__bytes_write.sum",)),
)
DIAGNOSTIC_METRICS = (  # looked at when a counter is off
    "smsp__sass_inst_executed_op_shared_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__t_sectors_srcunit_tex_op_write_lookup_hit.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
)
METRICS = tuple(dict.fromkeys([*(name for counter in COUNTERS for name in counter.metrics), *DIAGNOSTIC_METRICS]))

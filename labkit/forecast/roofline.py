"""Rooflines and time bounds: the shortest possible time of a launch, from the counters of its trace.

A bound is a lower limit of the time, not a forecast: it assumes that every unit of the GPU that the launch needs is
always busy, and that all units overlap. A kernel's time above it is latency that nothing hides, instructions that are
not counted here, and cache misses that the model does not have.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from labkit.machine import gpus
from labkit.machine.gpus import CPUS, GPUS, Cpu, Gpu, UnknownDevice
from labkit.table import short_number
from labkit.trace import SECTOR_BYTES, Trace

LINE_BYTES = 128


@dataclass(frozen=True)
class Term:
    """Time that one unit needs for a launch, and the formula that gives it."""

    time_ms: float
    formula: str


@dataclass(frozen=True)
class TimeBound:
    """Lower bound of a launch's time, the unit that sets it, and the time of each unit (`terms`, in ms)."""

    time_ms: float
    limiter: str
    terms: dict[str, float]
    formulas: dict[str, str]
    gpu: str

    verdict = "at least"

    def __str__(self):
        rows = [f"{self.verdict} {self.time_ms:.3g} ms on {self.gpu}, limited by {self.limiter}"]
        rows += [f"  {ms:9.3g} ms  {name}: {self.formulas[name]}" for name, ms in self.terms.items()]
        return "\n".join(rows)

    __repr__ = __str__


def find_device(name: str | Gpu | Cpu) -> Gpu | Cpu:
    """Return a GPU or CPU by its name; a `Gpu` or `Cpu` is returned as it is."""
    if isinstance(name, Gpu | Cpu):
        return name
    table = GPUS | CPUS
    if name not in table:
        raise UnknownDevice(f"there is no GPU or CPU called {name!r}; choose one of {', '.join(table)}")
    return table[name]


def peak_tflops(gpu: str | Gpu | Cpu, precision: str = "float32") -> float:
    """Return the compute roof of a device in TFLOP/s at a precision, such as "float32" or "float16 tensor"."""
    figures = find_device(gpu)
    if precision not in figures.peak_tflops:
        known = ", ".join(figures.peak_tflops)
        raise ValueError(f"{figures.name} has no published {precision!r} peak; choose one of {known}")
    return figures.peak_tflops[precision]


def ridge_point(gpu: str | Gpu | Cpu, precision: str = "float32") -> float:
    """Return the arithmetic intensity, in FLOP per byte of DRAM traffic, above which arithmetic is the limit."""
    return peak_tflops(gpu, precision) * 1000 / find_device(gpu).dram_gb_s


def attainable_tflops(gpu: str | Gpu | Cpu, intensity: float, precision: str = "float32") -> float:
    """Return the roof of kernels of an arithmetic intensity: the lower of the bandwidth and compute roofs."""
    return min(find_device(gpu).dram_gb_s * intensity / 1000, peak_tflops(gpu, precision))


def intensity(trace: Trace) -> float:
    """Return the arithmetic intensity: FLOP per byte of DRAM traffic, infinite without DRAM traffic."""
    counted = trace.counters
    if counted.dram_bytes == 0:
        return float("inf") if counted.flops else 0.0
    return counted.flops / counted.dram_bytes


def time_bound(trace: Trace, gpu: str | Gpu | None = None) -> TimeBound:
    """Return the lower bound of the time of a traced launch on a GPU: the longest of its terms.

    Parameters
    ----------
    trace : Trace
        A simulated launch.
    gpu : str or Gpu, optional
        GPU that runs it; by default the trace's. Cache hits stay the trace's.
    """
    figures = gpu if isinstance(gpu, Gpu) else gpus.gpu(gpu or trace.gpu)
    terms = unit_terms(trace, figures, busy_sms=min(prod(trace.grid), figures.sms))
    return TimeBound(*longest_term(terms), figures.name)


def longest_term(terms: dict[str, Term]) -> tuple[float, str, dict[str, float], dict[str, str]]:
    """Return the time of overlapping terms, the name of the longest one, and all times and formulas."""
    limiter = max(terms, key=lambda name: terms[name].time_ms)
    return (
        terms[limiter].time_ms,
        limiter if terms[limiter].time_ms else "nothing that was counted",
        {name: term.time_ms for name, term in terms.items()},
        {name: term.formula for name, term in terms.items()},
    )


def unit_terms(trace: Trace, gpu: Gpu, busy_sms: float) -> dict[str, Term]:
    """Return the time of each unit. Units inside an SM count only busy SMs; DRAM and L2 serve all."""
    counted = trace.counters
    sm_cycles_per_ms = busy_sms * gpu.clock_ghz * 1e6
    sms = f"{busy_sms:.4g} SMs x {gpu.clock_ghz:g} GHz"
    l1_lines = sum(
        counted.requests * _lines_per_request(trace, number)
        for number, counted in enumerate(trace.sites)
        if counted.site.space == "global" and counted.requests
    )
    wavefronts = counted.shared_load_wavefronts + counted.shared_store_wavefronts
    l2_bytes = counted.l2_sectors * SECTOR_BYTES
    terms = (
        {}
        if counted.sample
        else {  # a sample has no L2 misses
            "DRAM bandwidth": Term(
                counted.dram_bytes / (gpu.dram_gb_s * 1e6),
                f"{counted.dram_bytes:,} bytes / {gpu.dram_gb_s:g} GB/s",
            )
        }
    )
    terms |= {
        "L2 bandwidth": Term(
            l2_bytes / (gpu.l2_bytes_per_clock * gpu.clock_ghz * 1e6),
            f"{counted.l2_sectors:,} sectors x {SECTOR_BYTES} bytes"
            f" / ({gpu.l2_bytes_per_clock} bytes per cycle x {gpu.clock_ghz:g} GHz)",
        ),
        "L1 look-ups": Term(
            l1_lines / sm_cycles_per_ms, f"{l1_lines:,.0f} lines of {LINE_BYTES} bytes, one per cycle / ({sms})"
        ),
        "shared memory": Term(wavefronts / sm_cycles_per_ms, f"{wavefronts:,} wavefronts, one per cycle / ({sms})"),
    }
    for dtype, flops in counted.flops_by_dtype.items():
        peak = gpu.peak_tflops.get(dtype, gpu.peak_tflops["float32"]) * busy_sms / gpu.sms
        terms[f"{dtype} arithmetic"] = Term(flops / (peak * 1e9), f"{flops:,} FLOPs / {short_number(peak)} TFLOP/s")
    return terms


def _lines_per_request(trace, number):
    """Return the mean number of cache lines per access of a warp in the recorded blocks, else the smallest possible."""
    samples = trace.samples
    rows = samples.index[samples.site == number]
    site = trace.sites[number]
    if not len(rows):
        return max(1, site.sectors * SECTOR_BYTES / LINE_BYTES / site.requests)
    lines = trace.array(site.site.array).pieces(rows, LINE_BYTES, site.site.offset_bytes)
    return np.count_nonzero(np.diff(np.sort(lines, axis=1), axis=1, prepend=-1)) / len(rows)

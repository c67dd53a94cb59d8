"""What one traced loop did: plain, frozen data, a CPU's counterpart of `labkit.trace.Trace`.

It is a class of its own because a CPU has one thread and up to three levels of cache where a GPU has lanes,
requests and shared memory; where the two mean the same thing (sites, findings, outputs, `counters.flops`,
`counters.dram_bytes`) they have the same names, so that checks and rooflines read either.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt32

from labkit.trace import ArrayInfo, BaseTrace, Finding, Site


@dataclass(frozen=True)
class LoopSite:
    """What happened at one place in the source that touches an array.

    `served` counts the accesses by the level that had the data: L1, L2, L3 (as many as the CPU has), then
    DRAM.
    """

    site: Site
    served: tuple[int, ...]

    @property
    def accesses(self) -> int:
        return sum(self.served)

    @property
    def l1_hits(self) -> int:
        return self.served[0]

    @property
    def l1_misses(self) -> int:
        return sum(self.served[1:])


@dataclass(frozen=True)
class LoopCounters:
    """Totals, counted at source level: a value that the compiler keeps in a register counts at each use.

    `served` is as in `LoopSite`. A line that misses every level is read from DRAM, even for a store; a line
    that was stored to is written back when it leaves the last level, or at the end.
    """

    loads: int
    stores: int
    served: tuple[int, ...]
    flops: int
    dram_read_bytes: int
    dram_write_bytes: int

    @property
    def accesses(self) -> int:
        return self.loads + self.stores

    @property
    def l1_misses(self) -> int:
        return sum(self.served[1:])

    @property
    def l1_hit_rate(self) -> float:
        return self.served[0] / self.accesses if self.accesses else 0.0

    @property
    def dram_bytes(self) -> int:
        return self.dram_read_bytes + self.dram_write_bytes


@dataclass(frozen=True)
class LoopSamples:
    """The first accesses in the order they happened.

    site: index into `LoopTrace.sites`; index: flat element index (C order) in the site's array; level: what
    served it, 0 for L1 up to the number of levels for DRAM.
    """

    site: Int64[np.ndarray, " n"]
    index: Int64[np.ndarray, " n"]
    level: Int64[np.ndarray, " n"]

    def __len__(self):
        return len(self.site)


@dataclass(frozen=True)
class LoopTrace(BaseTrace):
    """Everything a traced loop left behind.

    `levels` names what can serve an access, ("L1", "L2", "L3", "DRAM"); `elements` holds for each array, by
    its name and of its shape, how often each element was served by each level (last axis, as in `levels`).
    `outputs` are the arguments after the run. `complete` is False where the run was stopped after a given
    number of accesses.
    """

    kernel: str
    source: str
    filename: str
    first_line: int
    cpu: str
    levels: tuple[str, ...]
    outputs: tuple[Any, ...]
    arrays: tuple[ArrayInfo, ...]
    sites: tuple[LoopSite, ...]
    counters: LoopCounters
    findings: tuple[Finding, ...]
    elements: dict[str, UInt32[np.ndarray, "*shape levels"]]
    samples: LoopSamples
    complete: bool

    def served(self, name: str) -> tuple[int, ...]:
        """Accesses to one array by the level that served them, as in `levels`."""
        counts = [site.served for site in self.sites if site.site.array == self.array(name).name]
        return tuple(map(sum, zip(*counts, strict=True)))

    def miss_rate(self, name: str | None = None) -> float:
        """Share of the accesses, of one array or of all, that L1 did not have."""
        served = self.served(name) if name else self.counters.served
        return sum(served[1:]) / max(sum(served), 1)

    def __repr__(self):
        partly = "" if self.complete else ", stopped early"
        return (
            f"<LoopTrace of {self.kernel} on {self.cpu}: {self.counters.accesses:,} accesses, "
            f"{self.counters.l1_misses:,} L1 misses{partly}, {len(self.errors)} errors>"
        )

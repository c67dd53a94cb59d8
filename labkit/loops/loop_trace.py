"""Trace of a loop on a CPU: plain, frozen data, the counterpart of `labkit.trace.Trace`.

A loop runs in one thread, with up to three levels of cache where a GPU has lanes, requests and shared memory, hence a
class of its own. Equal quantities (sites, findings, outputs, `counters.flops`, `counters.dram_bytes`) have the same
names in both, so that checks and rooflines take either.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt32

from labkit.table import count_text
from labkit.trace import ArrayInfo, BaseTrace, Finding, Site


@dataclass(frozen=True)
class LoopSite:
    """Accesses at one place in the source, counted in `served` by the level that had the data: caches, then DRAM."""

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

    `served`: see `LoopSite`. A line that misses every level is read from DRAM, even for a store; a dirty line is
    written back when it is evicted from the last level, or at the end.
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
    """First accesses, in program order.

    site: index into `LoopTrace.sites`; index: flat element index (C order) in the site's array; level: index into
    `LoopTrace.levels`.
    """

    site: Int64[np.ndarray, " n"]
    index: Int64[np.ndarray, " n"]
    level: Int64[np.ndarray, " n"]

    def __len__(self):
        return len(self.site)


@dataclass(frozen=True)
class LoopTrace(BaseTrace):
    """Trace of a loop.

    levels: levels that can serve an access, ("L1", "L2", "L3", "DRAM"). elements: for each array by name, how often
    each level (last axis) served each element. outputs: arguments after the run. complete: False where the run was
    stopped after a given number of accesses.
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
        """Return the accesses to one array by the level that served them, as in `levels`."""
        counts = [site.served for site in self.sites if site.site.array == self.array(name).name]
        return tuple(map(sum, zip(*counts, strict=True)))

    def miss_rate(self, name: str | None = None) -> float:
        """Return the fraction of accesses, of one array or of all, that missed L1."""
        served = self.served(name) if name else self.counters.served
        return sum(served[1:]) / max(sum(served), 1)

    def __repr__(self):
        partly = "" if self.complete else ", stopped early"
        return (
            f"<LoopTrace of {self.kernel} on {self.cpu}: {self.counters.accesses:,} accesses, "
            f"{self.counters.l1_misses:,} L1 misses{partly}, {count_text(len(self.errors), 'error')}>"
        )

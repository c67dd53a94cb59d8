"""Budgets and duties: how much of something a solution may use, and how much it must."""

from dataclasses import dataclass
from math import prod

from labkit.loops.loop_trace import LoopSite, LoopTrace
from labkit.trace import TENSOR, SiteCounters, Trace

SHARED_BYTES = "bytes of shared memory a block"
FLOAT64 = "FLOPs in float64"
KEPT = "numbers kept in a thread's own arrays"
TENSOR_FLOPS = "FLOPs on tensor cores"
COUNTERS = {  # name: memory space, kind of access, and what is added up
    "global loads": ("global", "load", "accesses"),
    "global stores": ("global", "store", "accesses"),
    "sectors loaded": ("global", "load", "sectors"),
    "sectors stored": ("global", "store", "sectors"),
    "load requests": ("global", "load", "requests"),
    "shared loads": ("shared", "load", "accesses"),
    "bank conflicts": ("shared", "any", "bank_conflicts"),
    "misses of the L1 cache": ("global", "any", "l1_misses"),
}


@dataclass(frozen=True)
class Budget:
    """At most `at_most` of a counter; `formula` says where the number comes from.

    `counter` is a key of `COUNTERS`, `SHARED_BYTES`, `FLOAT64`, `KEPT` or `TENSOR_FLOPS`.
    """

    counter: str
    at_most: int
    formula: str


@dataclass(frozen=True)
class Duty:
    """At least `at_least` of a counter, so that no other way leads past the exercise; `why` says what for."""

    counter: str
    at_least: int
    why: str


FLOAT32_ALONE = Budget(FLOAT64, 0, "the matrices are float32, and a GPU is 2 to 64 times slower in float64")


def used(counter: str, trace: Trace | LoopTrace) -> int:
    """What the whole launch used."""
    if counter == SHARED_BYTES:
        return sum(prod(a.shape) * a.itemsize for a in trace.arrays if a.space == "shared")
    if counter == KEPT:
        return sum(prod(a.shape) for a in trace.arrays if a.space == "local")
    if counter == FLOAT64:
        return trace.counters.flops_by_dtype.get("float64", 0)
    if counter == TENSOR_FLOPS:
        return sum(flops for name, flops in trace.counters.flops_by_dtype.items() if name.endswith(TENSOR))
    return sum(share(counter, site) for site in trace.sites)


def share(counter: str, counters: SiteCounters | LoopSite) -> int:
    """What one place in the source adds."""
    if counter not in COUNTERS:
        return 0
    space, kind, amount = COUNTERS[counter]
    if counters.site.space != space or kind not in ("any", counters.site.kind):
        return 0
    return getattr(counters, amount)

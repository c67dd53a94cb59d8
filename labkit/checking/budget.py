"""Budgets: how much of something a solution may use. An atomic loads, and it stores."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from labkit.loops.loop_trace import LoopSite, LoopTrace
from labkit.trace import TENSOR, SiteCounters, Trace

SHARED_BYTES = "bytes of shared memory a block"
FLOAT64 = "FLOPs in float64"
KEPT = "numbers kept in a thread's own arrays"  # of 4 bytes
TENSOR_FLOPS = "FLOPs on tensor cores"
PLAIN_FLOPS = "FLOPs outside of tensor cores"
BARRIERS = "barriers"
ALONE = "% of the shared loads with no copy under way"
AT_WORK = "threads of the last block at work"  # those that load or store global memory
COUNTERS = {  # name: memory space, kind of access, and what is added up
    "global loads": ("global", "load", "elements"),
    "global stores": ("global", "store", "elements"),
    "sectors loaded": ("global", "load", "sectors"),
    "sectors stored": ("global", "store", "sectors"),
    "load requests": ("global", "load", "requests"),
    "shared loads": ("shared", "load", "elements"),
    "load requests to shared memory": ("shared", "load", "requests"),
    "store requests to shared memory": ("shared", "store", "requests"),
    "bank conflicts": ("shared", "any", "bank_conflicts"),
    "requests to mbarriers": ("shared", "atomic", "requests"),
    "misses of the L1 cache": ("global", "any", "l1_misses"),
}


@dataclass(frozen=True)
class Budget:
    """At most `at_most` of a counter; `formula` says where the number comes from.

    `counter` is a key of `COUNTERS`, `SHARED_BYTES`, `FLOAT64`, `KEPT`, `TENSOR_FLOPS`, `PLAIN_FLOPS`, `BARRIERS`,
    `ALONE` or `AT_WORK`. Where several arrays draw on it, `shares` has what each of them needs by its name, so that the
    one which takes too much is named.
    """

    counter: str
    at_most: int
    formula: str
    shares: Mapping[str, int] = field(default_factory=dict)


FLOAT32_ALONE = Budget(FLOAT64, 0, "the matrices are float32, and a GPU is 2 to 64 times slower in float64")


def used(counter: str, trace: Trace | LoopTrace) -> int:
    """What the whole launch used."""
    counters: Any = trace.counters  # those of a loop are fewer, and no exercise on one has a budget of the others
    if counter == SHARED_BYTES:
        return sum(prod(a.shape) * a.itemsize for a in trace.arrays if a.space == "shared")
    if counter == KEPT:
        return sum(prod(a.shape) * a.itemsize for a in trace.arrays if a.space == "local") // 4
    if counter == FLOAT64:
        return counters.flops_by_dtype.get("float64", 0)
    if counter == BARRIERS:
        return counters.barriers
    if counter == AT_WORK:
        return _at_work(trace)
    if counter == ALONE:
        return _percent_alone(trace)
    if counter in (TENSOR_FLOPS, PLAIN_FLOPS):
        wanted = counter == TENSOR_FLOPS
        return sum(flops for name, flops in counters.flops_by_dtype.items() if name.endswith(TENSOR) == wanted)
    return sum(share(counter, site) for site in trace.sites)


def _percent_alone(trace):
    loads = [counters for counters in trace.sites if counters.site.space == "shared" and counters.site.kind == "load"]
    total = sum(counters.accesses for counters in loads)
    return -(-100 * sum(counters.alone for counters in loads) // total) if total else 0


def _at_work(trace):
    samples = trace.samples
    last = samples.blocks.index(tuple(size - 1 for size in trace.grid))
    of_memory = np.array([counters.site.space == "global" for counters in trace.sites] + [False])  # -1 is a barrier
    rows = (samples.block == last) & of_memory[samples.site]
    lanes = samples.index[rows] >= 0
    return sum(int(lanes[samples.warp[rows] == warp].any(0).sum()) for warp in np.unique(samples.warp[rows]))


def share(counter: str, counters: SiteCounters | LoopSite) -> int:
    """What one place in the source adds."""
    if counter not in COUNTERS:
        return 0
    space, kind, amount = COUNTERS[counter]
    site = counters.site
    if site.space != space or (kind != "any" and site.kind not in (kind, "atomic")):
        return 0
    return counters.accesses * site.elements if amount == "elements" else getattr(counters, amount)


def most_over(budget: Budget, trace: Trace | LoopTrace) -> tuple[SiteCounters | LoopSite, int]:
    """The place that uses most of what goes beyond its array's share, and how much all places of that array use."""
    of_array = Counter()
    for site in trace.sites:
        of_array[site.site.array] += share(budget.counter, site)
    array = max(of_array, key=lambda array: of_array[array] - budget.shares.get(array, 0))
    places = (site for site in trace.sites if site.site.array == array)
    return max(places, key=lambda site: share(budget.counter, site)), of_array[array]

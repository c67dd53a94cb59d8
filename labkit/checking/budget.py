"""Budgets: upper limits of what a solution may use. An atomic counts as a load and as a store."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from labkit.checking.recorded_blocks import count_exchanged, count_threads
from labkit.loops.loop_trace import LoopSite, LoopTrace
from labkit.trace import TENSOR, SiteCounters, Trace

SHARED_BYTES = "bytes of shared memory per block"
FLOAT64 = "FLOPs in float64"
LOCAL_NUMBERS = "numbers kept in a thread's own arrays"  # of 4 bytes
TENSOR_FLOPS = "FLOPs on tensor cores"
PLAIN_FLOPS = "FLOPs outside of tensor cores"
BARRIERS = "barriers"
EXPOSED_LOADS = "% of the shared loads are made while no copy is in flight"
ACTIVE_THREADS = "threads at work in the first or last block"
LOADING_THREADS = "threads that load global memory in the first or last block"
STORING_THREADS = "threads that store to global memory in the first or last block"
FILLING_THREADS = "threads that fill shared memory in the first or last block"
EXCHANGED = "shared loads of what another thread stored in the first or last block"
THREAD_COUNTERS = {  # name: memory space, and the kinds of access by which a thread counts
    ACTIVE_THREADS: ("global", ("load", "store", "atomic")),
    LOADING_THREADS: ("global", ("load", "atomic")),
    STORING_THREADS: ("global", ("store", "atomic")),
    FILLING_THREADS: ("shared", ("store", "atomic")),
}
SITE_COUNTERS = {  # name: memory space, kind of access, and what is added up over all sites
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
    """Upper limit of a counter over the whole launch."""

    counter: str  # a key of `SITE_COUNTERS`, or one of the constants above it
    at_most: int
    formula: str  # where the limit comes from, as the verdict gives it: "each element once"
    shares: Mapping[str, int] = field(default_factory=dict)  # array -> its part of the limit, if several arrays use it
    cure: str = ""  # a sentence on what to write, where the counter does not tell it

    def share_of(self, array: str) -> int:
        """Return an array's part of the limit: of one without a part of its own, what the others leave."""
        return self.shares.get(array, self.at_most - sum(self.shares.values()))


NO_FLOAT64 = Budget(FLOAT64, 0, "the matrices are float32")


def count_words(count: int, counter: str) -> str:
    """Return a count and its counter in words: "2 barriers", "1 barrier", "25% of the shared loads ..."."""
    if counter.startswith("%"):
        return f"{count}{counter}"
    if count == 1:
        counter = re.sub(r"s\b|(?<=miss)es\b", "", counter, count=1)
        counter = re.sub(r"\bthat (\w+)", r"that \1s", counter)
    return f"{count:,} {counter}"


def limit_words(count: int, counter: str) -> str:
    """Return a limit and its verb: "2 are", "1 is", "25% are"."""
    return f"{count:,}{'%' * counter.startswith('%')} {is_or_are(count)}"


def allowance_words(at_most: int, counter: str) -> str:
    """Return an upper limit in words: "at most 2 are allowed", "none are allowed"."""
    return f"at most {limit_words(at_most, counter)} allowed" if at_most else "none are allowed"


def is_or_are(count: int) -> str:
    """Return the verb of a count."""
    return "is" if count == 1 else "are"


def read_counter(counter: str, trace: Trace | LoopTrace) -> int:
    """Return a counter of the whole launch."""
    launch: Any = trace  # a loop has fewer counters, and no exercise on one has a budget of the others
    counters = launch.counters
    if counter in (SHARED_BYTES, LOCAL_NUMBERS):
        space, unit = ("shared", 1) if counter == SHARED_BYTES else ("local", 4)
        return sum(prod(array.shape) * array.itemsize for array in trace.arrays if array.space == space) // unit
    if counter == FLOAT64:
        return counters.flops_by_dtype.get("float64", 0)
    if counter == BARRIERS:
        return counters.barriers
    if counter in THREAD_COUNTERS:
        return count_threads(launch, *THREAD_COUNTERS[counter])
    if counter == EXCHANGED:
        return count_exchanged(launch)
    if counter == EXPOSED_LOADS:
        return _percent_exposed(trace)
    if counter in (TENSOR_FLOPS, PLAIN_FLOPS):
        on_tensor_cores = counter == TENSOR_FLOPS
        return sum(n for name, n in counters.flops_by_dtype.items() if name.endswith(TENSOR) == on_tensor_cores)
    return sum(read_site_counter(counter, site) for site in trace.sites)


def _percent_exposed(trace):
    loads = [counters for counters in trace.sites if counters.site.space == "shared" and counters.site.kind == "load"]
    total = sum(counters.accesses for counters in loads)
    return -(-100 * sum(counters.alone for counters in loads) // total) if total else 0


def read_site_counter(counter: str, counters: SiteCounters | LoopSite) -> int:
    """Return what one site (a load, store or atomic in the source) adds to a counter; 0 if it is no site counter."""
    if counter not in SITE_COUNTERS:
        return 0
    space, kind, quantity = SITE_COUNTERS[counter]
    site = counters.site
    if site.space != space or (kind != "any" and site.kind not in (kind, "atomic")):
        return 0
    return counters.accesses * site.elements if quantity == "elements" else getattr(counters, quantity)


def find_worst_site(budget: Budget, trace: Trace | LoopTrace) -> SiteCounters | LoopSite:
    """Return the site with the highest count, of the array that exceeds its share most."""
    array_counts = Counter()
    for counters in trace.sites:
        array_counts[counters.site.array] += read_site_counter(budget.counter, counters)
    array = max(array_counts, key=lambda array: array_counts[array] - budget.share_of(array))
    sites = (counters for counters in trace.sites if counters.site.array == array)
    return max(sites, key=lambda counters: read_site_counter(budget.counter, counters))

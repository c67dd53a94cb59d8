"""Findings of clusters, where blocks access one another's shared memory."""

from labkit.ptx.finding import log_error
from labkit.trace import WARP_LANES


def note_not_begun(launch, site_number, block, warp, other):
    """Note that a warp of `block` accessed shared memory of a block `other` that may not have begun."""
    cure = "Let the blocks of a cluster begin together: call `ptx.cluster_sync()` first, in every thread."
    reason = "need not run yet, so that this memory may be in use by another"
    _note(launch, site_number, block, warp, other, "begin", reason, cure)


def note_ended(launch, site_number, block, warp, other):
    """Note that a warp of `block` accessed shared memory of a block `other` that may have ended before."""
    cure = "Let the blocks of a cluster end together: call `ptx.cluster_sync()` at the end, in every thread."
    reason = "and all others may have ended by then, and their shared memory may be in use again"
    _note(launch, site_number, block, warp, other, "end", reason, cure)


def _note(launch, site_number, block, warp, other, when, reason, cure):
    log, site = launch.log, launch.sites[site_number]
    who, there = log.thread(block, warp * WARP_LANES), log.thread(other, 0)
    what = (
        f"the warp of {log.name(who)} reaches {site.array} of another block of its cluster, where {log.name(there)} "
        f"{reason}"
    )
    key = ("cluster", site.line, site.column, when)
    log_error(log, key, site, "cluster", what, cure, array=site.array, threads=(who, there))

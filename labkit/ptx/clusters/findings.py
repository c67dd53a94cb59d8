"""What goes wrong where blocks reach one another's shared memory, in a learner's words."""

from labkit.trace import WARP_LANES


def may_not_have_begun(launch, site_number, block, warp, other):
    """A warp of `block` reached shared memory of the block `other`, of which it has heard nothing."""
    cure = "Let the blocks of a cluster begin together: call `ptx.cluster_sync()` first, in every thread."
    may = "need not run yet, so that this memory may be in use by another"
    _note(launch, site_number, block, warp, other, "begin", may, cure)


def may_have_ended(launch, site_number, block, warp, other):
    """A warp of `block` reached shared memory of the block `other`, of whose threads none waited for that."""
    cure = "Let the blocks of a cluster end together: call `ptx.cluster_sync()` at the end, in every thread."
    may = "and all others may have ended by then, and their shared memory may be in use again"
    _note(launch, site_number, block, warp, other, "end", may, cure)


def _note(launch, site_number, block, warp, other, when, may, cure):
    log, site = launch.log, launch.sites[site_number]
    key = ("cluster", site.line, site.column, when)
    if log.known(key):
        return
    who, there = log.thread(block, warp * WARP_LANES), log.thread(other, 0)
    log.add(
        key,
        kind="cluster",
        message=(
            f"Line {site.line}: the warp of {log.name(who)} reaches {site.array} of another block of its cluster, "
            f"where {log.name(there)} {may}. {cure}"
        ),
        remedy=cure,
        site=site,
        array=site.array,
        threads=(who, there),
    )

"""Early launches (`cuda.jit(early=True)`): no access to global memory before the wait for the previous launch.

The previous launch may still read and write there, and the kernel does not say which launch that is. So every access
counts, also to an array that no other kernel of the program writes. Before the wait a kernel may set up shared memory
and barriers, and prefetch tensor maps. One thread may wait for others, which then meet it at a barrier. (CUDA C++
Programming Guide, "Programmatic Dependent Launch and Synchronization"; PTX ISA, "griddepcontrol".)
`w.chunk` has the blocks of the launch that run together.
"""

import numpy as np

from labkit.simulator.checks.clocks import ENDED
from labkit.simulator.warps import BLOCK, SLOT, START, THREAD
from labkit.trace import WARP_LANES

CURE = "Call `ptx.launch_wait()` in every thread before the first access to global memory."


class WaitState:
    """The lanes of a warp set that know that the previous launch has ended."""

    def __init__(self, w):
        self.lanes = ~w.all_lanes
        self.clocks = w.launch.clocks.of(w.warps[:, BLOCK], w.warps[:, THREAD] // WARP_LANES)
        self.stamps = np.full((len(w.warps), WARP_LANES), np.iinfo(np.int64).max)  # of each lane, when it waited
        self.since = np.full(len(w.warps), -1)  # `_count_meetings` of each warp, when some of its lanes waited


def _waited(w) -> WaitState:
    return w.kept.get("previous launch") or w.kept.setdefault("previous launch", WaitState(w))


def _count_meetings(w, waited):
    """Return a number per warp that grows with each barrier of its block or of all of its lanes."""
    return w.chunk.barriers_passed[w.warps[:, SLOT]] + w.launch.clocks.lanes_synced_until[waited.clocks]


def _warp_barriers(w):
    """Return for each lane of each warp how many warp barriers it knows each other lane to have passed."""
    of_whole_warps = np.broadcast_to(w.warp_epochs[:, None, None], (len(w.warps), WARP_LANES, WARP_LANES))
    return w.lane_epochs if w.lane_epochs.size else of_whole_warps


def note_wait(w, mask):
    """Note a `launch_wait` by the lanes of `mask`."""
    if not w.launch.early:
        return
    waited, lanes = _waited(w), w.active(mask)
    _update(w)  # before the warp's counts begin anew
    rows = np.flatnonzero(np.logical_or.reduceat(lanes, w.warps[:, START]))
    waited.since[rows] = _count_meetings(w, waited)[rows]
    waiting = w.row[lanes], w.lane[lanes]
    waited.stamps[waiting] = _warp_barriers(w)[*waiting, waiting[1]]
    waited.lanes |= lanes
    previous_launch = w.launch.clocks.of_previous_launch(w.warps[rows, BLOCK])
    w.launch.clocks.learn_times(waited.clocks[rows], previous_launch, np.full(len(rows), ENDED))


def check_accesses(w, site_number, array, lanes, flat=None):
    """Check that these lanes may access a global array: the elements `flat`, or boxes of it."""
    waited = _waited(w)
    if (lanes & ~waited.lanes).any():
        _update(w)
    missing = lanes & ~waited.lanes
    if missing.any():
        _note(w, site_number, array, missing, flat)


def _update(w):
    """Add the lanes that have learned of a wait by others."""
    waited, clocks = _waited(w), w.launch.clocks
    if clocks.are_kept:
        previous_launch = clocks.of_previous_launch(w.warps[:, BLOCK])
        is_informed = clocks.have_heard_of(waited.clocks, previous_launch, ENDED) & (
            waited.since < _count_meetings(w, waited)
        )
        has_met_waiter = (_warp_barriers(w) > waited.stamps[:, None]).any(axis=2)
        waited.lanes |= is_informed.take(w.row) | has_met_waiter[w.row, w.lane]


def _note(w, site_number, array, missing, flat):
    """Note a finding: the lanes of `missing` access the array too early."""
    log = w.launch.log
    site = log.launch.sites[site_number]
    key = ("early", site.line, site.column, site.kind)
    count = int(missing.sum())
    if log.count_repeat(key, count):
        return
    lane = int(np.argmax(missing))
    thread, what, index = log.lane(w, lane), f"a box of {array.name}", None
    if flat is not None:
        index = array.position(array.c_order(int(flat[lane])))
        what = f"{array.name}[{', '.join(map(str, index))}]"
    verb = {"load": "reads", "store": "writes", "atomic": "updates"}[site.kind]
    message = (
        f"Line {site.line}: {log.name(thread)} {verb} {what} while the previous launch may still be using it, "
        f"since this kernel begins early. {CURE}"
    )
    log.add(key, count, "early", message, remedy=CURE, site=site, array=array.name, index=index, threads=(thread,))

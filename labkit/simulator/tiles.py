"""Tiles in shared memory with rows of 128 bytes, swizzled as TMA and the tensor cores expect.

A 16-byte vector of a tile is swapped with others of its row: bits 4 to 6 of its address are combined with bits 7 to 9
by an exclusive or (PTX ISA, "Shared Memory Swizzling Modes", 128 bytes).
"""

import numpy as np

from labkit.simulator import memory
from labkit.simulator.warps import BLOCK, SLOT, SM, START, STOP, THREAD

ALIGNMENT_BYTES = 1024
ROW_BYTES = 128


def swizzled(address):
    """Return the address of a byte in a swizzled tile, from its address in one that is not swizzled."""
    return address ^ (address >> 3 & 0x70)


class ExpandedLanes:
    """A warp set for an access in which some lanes each touch many elements: it has a lane per element."""

    def __init__(self, w, lanes: np.ndarray, per_lane: int, threads: np.ndarray | None = None):
        """Make `per_lane` lanes for each of the `lanes` (numbers in `w`); `threads` count as accessing, if given."""
        self.warp_set = w
        self.chunk = w.chunk
        self.lanes = len(lanes) * per_lane
        self.rows = np.repeat(np.searchsorted(w.warps[:, START], lanes, side="right") - 1, per_lane)
        self.block, self.slot = (np.repeat(v[lanes], per_lane) for v in (w.block, w.slot))
        self.thread = np.repeat(w.thread[lanes] if threads is None else threads, per_lane)
        self.all_lanes = np.ones(self.lanes, np.bool_)
        self.warps = np.empty((self.lanes, 6), np.int64)
        self.warps[:, START] = np.arange(self.lanes)
        self.warps[:, STOP] = self.warps[:, START] + 1
        self.warps[:, BLOCK], self.warps[:, THREAD], self.warps[:, SLOT] = self.block, self.thread, self.slot
        self.warps[:, SM] = w.warps[self.rows, SM]

    @property
    def warp_epochs(self):
        return self.warp_set.warp_epochs[self.rows]

    @property
    def lane_epochs(self):
        return self.warp_set.lane_epochs[self.rows] if self.warp_set.lane_epochs.size else self.warp_set.lane_epochs

    def active(self, mask):
        return self.all_lanes if mask is None else mask

    def count(self, mask):
        return self.lanes if mask is None else int(np.count_nonzero(mask))


def expand_lanes(w, lanes, per_lane, threads=None) -> ExpandedLanes:
    """Return the warp set with a lane for each of the `per_lane` elements that some of its lanes touch."""
    key = lanes.tobytes(), per_lane, threads is None
    if key not in w.expanded_lanes:
        w.expanded_lanes[key] = ExpandedLanes(w, lanes, per_lane, threads)
    return w.expanded_lanes[key]


def consecutive_offsets(first, count) -> np.ndarray:
    """Return the offsets of the `count` elements from each of `first` on."""
    return (first[:, None] + np.arange(count)).reshape(-1)


def end_offset(array) -> int:
    """Return the end of a shared array within a block's copy of its memory, in elements."""
    return array.root.offset + int(array.root.size_value)


def check_arrived(w, site, array, lanes, flat):
    """Check that what is to be written to the elements `flat`, an equal share per lane, has arrived."""
    expanded = expand_lanes(w, lanes, flat.size // len(lanes))
    array.in_flight.find_early_accesses(expanded, site, array, flat, expanded.all_lanes)


def check_reads(w, site, array, lanes, flat, inside=None, threads=None):
    """Check that these lanes may read the elements `flat`, an equal share each, where `inside`.

    `threads` count as reading, in place of the lanes' own; always the same for the same lanes.
    """
    if array.shadow is not None:
        memory.check_read(expand_lanes(w, lanes, flat.size // len(lanes), threads), site, array, inside, flat)


def check_atomics(w, site, array, lanes, flat):
    """Check that these lanes may change the elements `flat`, an equal share each, by atomics."""
    if array.shadow is not None:
        expanded = expand_lanes(w, lanes, flat.size // len(lanes))
        memory.check_atomic_order(expanded, site, array, flat, expanded.all_lanes)
        memory.check_atomic(expanded, site, array, flat, expanded.all_lanes)


def check_writes(w, site, array, lanes, flat, inside=None, unchanged=None, landed=None):
    """Check that these lanes may write the elements `flat`, an equal share each, where `inside`.

    `unchanged` and `landed` are as in `races.check_stores`; by default the values are new, and are there afterwards.
    """
    if array.shadow is not None:
        expanded = expand_lanes(w, lanes, flat.size // len(lanes))
        unchanged = ~expanded.all_lanes if unchanged is None else unchanged
        landed = expanded.all_lanes if landed is None else landed
        memory.check_write(expanded, site, array, inside, flat, unchanged, landed)

"""Accesses that an element's cell of shadow memory has no room for, in kernels whose warps learn of only some others.

Where barriers alone order accesses, the few parties of a cell stand for all. An atomic may tell of these and not of
others, so each must be kept until a later one has learned of it. They are entries of linked lists; a cell holds the
first of its list.
"""

import numpy as np

from labkit.simulator.seam import njit

KIND, BLOCK, THREAD, EPOCH, TIME, SITE, NEXT, LENGTH = range(8)  # the first entry of a list has its length
FIELDS = 8
NONE = -1  # the end of a list
MAX_ENTRIES = 2**21  # 64 MB; beyond that, accesses that do not fit in a cell are forgotten
MAX_LENGTH = 64  # of a list, likewise

# Row 0 of the entries holds the number of rows used, and the first row of the list of free ones.
USED, FREE = range(2)


@njit(cache=True)
def add(entries, first, length, kind, block, thread, epoch, time, site):
    """Put an entry before the list of this length that begins at `first`; return where the list begins now."""
    entry = entries[0, FREE]
    if entry != NONE:
        entries[0, FREE] = entries[entry, NEXT]
    else:
        entry = entries[0, USED]
        if entry == entries.shape[0]:
            return first
        entries[0, USED] = entry + 1
    entries[entry, KIND], entries[entry, BLOCK], entries[entry, THREAD] = kind, block, thread
    entries[entry, EPOCH], entries[entry, TIME], entries[entry, SITE] = epoch, time, site
    entries[entry, NEXT], entries[entry, LENGTH] = first, length + 1
    return entry


@njit(cache=True)
def remove(entries, first, before, entry):
    """Take an entry out of the list that begins at `first`; return where the list begins now."""
    after = entries[entry, NEXT]
    entries[entry, NEXT] = entries[0, FREE]
    entries[0, FREE] = entry
    if before == NONE:
        return after
    entries[before, NEXT] = after
    return first


@njit(cache=True)
def _free_all(entries, firsts):
    for i in range(firsts.size):
        while firsts[i] != NONE:
            firsts[i] = remove(entries, firsts[i], NONE, firsts[i])


class Overflow:
    """The entries of a launch; none where no clocks are kept."""

    def __init__(self, is_kept: bool):
        self.is_kept = is_kept
        self.entries = np.zeros((1, FIELDS), np.int32)
        self.entries[0, USED], self.entries[0, FREE] = 1, NONE

    def make_room(self, count: int):
        """Make room for this many more entries, up to the limit."""
        size = len(self.entries)
        if self.is_kept and self.entries[0, USED] + count > size < MAX_ENTRIES:
            more = max(size, count)
            self.entries = np.concatenate([self.entries, np.zeros((more, FIELDS), np.int32)])

    def free(self, firsts):
        """Free the lists that begin at `firsts`."""
        if self.is_kept:
            _free_all(self.entries, firsts)

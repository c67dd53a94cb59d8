"""Cells of the shadow memory: the accesses to one element that race detection keeps.

An access is kept as its party: the thread and the time. Where barriers alone order accesses, the few parties of a cell
stand for all accesses to the element.
"""

import numpy as np

from labkit.simulator.seam import inner_njit, njit
from labkit.trace import WARP_LANES

NO_THREAD = -1  # not written yet
HOST = -2  # filled by the host

# Fields of a cell. W is the last plain write; V an earlier write of the same value by another thread. A are the atomics
# since then and R the reads: the lowest and the highest thread of the latest epoch, and one thread of another block
# before. A party has four fields: its thread, its count of warp barriers (the stamp), its warp's time in `clocks`, and
# its site. Block and epoch, which the parties of a kind share, follow. A party of another block has its epoch in place
# of the stamp. Atomics and reads that find no room in the cell are kept in a list of `overflow`.
(
    W_THREAD, W_STAMP, W_TIME, W_SITE,
    V_THREAD, V_STAMP, V_TIME, V_SITE,
    A_LOW, A_LOW_STAMP, A_LOW_TIME, A_LOW_SITE,
    A_HIGH, A_HIGH_STAMP, A_HIGH_TIME, A_HIGH_SITE,
    A_OTHER, A_OTHER_EPOCH, A_OTHER_TIME, A_OTHER_SITE,
    R_LOW, R_LOW_STAMP, R_LOW_TIME, R_LOW_SITE,
    R_HIGH, R_HIGH_STAMP, R_HIGH_TIME, R_HIGH_SITE,
    R_OTHER, R_OTHER_EPOCH, R_OTHER_TIME, R_OTHER_SITE,
    W_BLOCK, W_EPOCH,
    V_BLOCK, V_EPOCH,
    A_BLOCK, A_EPOCH, A_OTHER_BLOCK,
    R_BLOCK, R_EPOCH, R_OTHER_BLOCK,
    W_INSTRUCTION, OVERFLOW,
) = range(44)  # fmt: skip
FIELDS = 44
SHADOW_BYTES = 4 * FIELDS  # per element
PARTY = 4  # fields per party
OTHERS = (A_OTHER, R_OTHER)


def clear(cells: np.ndarray, filled: bool) -> None:
    """Reset cells to elements that nothing has written, or only the host if `filled`."""
    cells[:] = -1
    if filled:
        cells[:, W_THREAD] = HOST


@inner_njit
def block_field(party):
    """Return the field that holds the block of a party's kind; the epoch follows it."""
    if party < A_LOW:
        return W_BLOCK if party == W_THREAD else V_BLOCK
    return A_BLOCK if party < R_LOW else R_BLOCK


@inner_njit
def block_and_epoch(cell, party):
    """Return a party's block and epoch."""
    shared = block_field(party)
    if party in OTHERS:
        return cell[shared + 2], cell[party + 1]
    return cell[shared], cell[shared + 1]


@inner_njit
def _note_extreme(cell, party, is_beyond, is_between, thread, stamp, time, site):
    """Keep a thread of the current epoch as the lowest or highest.

    Of one warp, the thread with the latest stamp stands for all: what follows it follows all. A kept thread keeps its
    own time; a thread between the two extremes replaces one only if it is later.
    """
    if cell[party] // WARP_LANES == thread // WARP_LANES:
        if stamp < cell[party + 1]:
            return
        if stamp > cell[party + 1] or is_beyond or (is_between and time > cell[party + 2]):
            cell[party] = thread
        else:
            return
    elif not is_beyond:
        return
    else:
        cell[party] = thread
    cell[party + 1], cell[party + 2], cell[party + 3] = stamp, time, site


@inner_njit
def note_party(cell, low, shared, block, epoch, thread, stamp, time, site):
    """Keep an atomic or a read: `low` is the first party of its kind, `shared` its first shared field.

    A party: its thread; +1 stamp, or the epoch in another block; +2 time; +3 site. Shared: block; +1 epoch, +2 block of
    the party in another block.
    """
    high, other = low + PARTY, low + 2 * PARTY
    if cell[shared] == block and cell[shared + 1] == epoch:
        is_low, is_high = thread <= cell[low], thread >= cell[high]
        is_between = not is_low and not is_high
        _note_extreme(cell, low, is_low, is_between, thread, stamp, time, site)
        _note_extreme(cell, high, is_high, False, thread, stamp, time, site)
    else:
        if cell[shared] >= 0 and cell[shared] != block:
            cell[other] = cell[low]
            cell[other + 1] = cell[shared + 1]
            cell[other + 2], cell[other + 3] = cell[low + 2], cell[low + 3]
            cell[shared + 2] = cell[shared]
        cell[shared] = block
        cell[shared + 1] = epoch
        cell[low] = cell[high] = thread
        cell[low + 1] = cell[high + 1] = stamp
        cell[low + 2] = cell[high + 2] = time
        cell[low + 3] = cell[high + 3] = site


@njit(cache=True)
def note_write(cell, block, epoch, thread, stamp, time, site):
    """Keep a plain write."""
    cell[W_THREAD], cell[W_STAMP], cell[W_TIME], cell[W_SITE] = thread, stamp, time, site
    cell[W_BLOCK], cell[W_EPOCH] = block, epoch


@inner_njit
def note_same_value(cell, grid_epoch, block):
    """Keep the last writer, as another thread writes the same value; prefer one of another block."""
    if cell[V_THREAD] >= 0 and cell[V_BLOCK] != block == cell[W_BLOCK] and cell[V_EPOCH] >= grid_epoch:
        return
    for field in range(PARTY):  # a slice of an array takes numba a second to compile
        cell[V_THREAD + field] = cell[W_THREAD + field]
    cell[V_BLOCK], cell[V_EPOCH] = cell[W_BLOCK], cell[W_EPOCH]

"""Who touched each element last: a shadow of memory, by which races and uninitialised reads are found.

Two accesses are ordered when one happens before the other: the same thread; a block barrier between
them (epochs count a block's barriers, the fast path); a `syncwarp` between threads of one warp; or an
atomic that one warp did after its access and another warp read before its own (`clocks`, a vector
clock a warp, kept only for kernels that use what an atomic returns).
"""

import numpy as np
from numba import njit

from labkit.trace import WARP_LANES

NOBODY = -1  # no thread wrote it yet
HOST = -2  # it came filled from outside the kernel

# The last plain write; the last epoch's reads; the atomics since that write, by their first thread and a later one.
(
    W_BLOCK,
    W_THREAD,
    W_EPOCH,
    W_WARP_EPOCH,
    W_TIME,
    W_INSTRUCTION,
    W_SITE,
    A_BLOCK,
    R_BLOCK,
    R_EPOCH,
    R_LOW,
    R_HIGH,
    R_LOW_WARP_EPOCH,
    R_HIGH_WARP_EPOCH,
    R_LOW_TIME,
    R_HIGH_TIME,
    R_SITE,
    R_OTHER_BLOCK,
    R_OTHER_THREAD,
    R_OTHER_TIME,
    A_FIRST,
    A_LATER,
    A_EPOCH,
    A_WARP_EPOCH,
    A_TIME,
    A_SITE,
) = range(26)
FIELDS = 26
SHADOW_BYTES = 4 * FIELDS  # of an element

# A race: element, block, thread; the other's block, thread, site.
RACE_FIELDS = 6


def new_shadow(elements: int, filled: bool) -> np.ndarray:
    """The shadow of an array that nobody (or, when `filled`, the host alone) has written."""
    shadow = np.full((elements, FIELDS), -1, np.int32)
    if filled:
        shadow[:, W_THREAD] = HOST
    return shadow


@njit(cache=True)
def _same_block_ordered(then_epoch, then_warp_epoch, then_thread, epoch, warp_epoch, thread):
    if then_thread == thread or then_epoch < epoch:
        return True
    return then_thread // WARP_LANES == thread // WARP_LANES and then_warp_epoch < warp_epoch


@njit(cache=True)
def _knows(clocks, warps, block, thread, then_block, then_thread, then_time):
    """Has this thread's warp seen, through atomics, the other's access at `then_time`?"""
    if clocks.shape[0] == 0:
        return False
    mine = block * warps + thread // WARP_LANES
    other = then_block * warps + then_thread // WARP_LANES
    return clocks[mine, other] > then_time


@njit(cache=True)
def _after_write(cell, clocks, warps, block, thread, epoch, warp_epoch):
    """Does the last plain write of this element happen before the present access?"""
    writer = cell[W_THREAD]
    if writer < 0:
        return True
    if cell[W_BLOCK] == block and _same_block_ordered(
        cell[W_EPOCH], cell[W_WARP_EPOCH], writer, epoch, warp_epoch, thread
    ):
        return True
    return _knows(clocks, warps, block, thread, cell[W_BLOCK], writer, cell[W_TIME])


@njit(cache=True)
def _early_atomic(cell, clocks, warps, block, thread, epoch, warp_epoch):
    """The thread of an atomic that does not happen before the present plain access, or -1."""
    for field in (A_FIRST, A_LATER):
        other = cell[field]
        if other < 0 or (
            cell[A_BLOCK] == block
            and _same_block_ordered(cell[A_EPOCH], cell[A_WARP_EPOCH], other, epoch, warp_epoch, thread)
        ):
            continue
        if not _knows(clocks, warps, block, thread, cell[A_BLOCK], other, cell[A_TIME]):
            return other
    return -1


@njit(cache=True)
def _early_reader(cell, clocks, warps, block, thread, epoch, warp_epoch):
    """(block, thread) of a reader that does not happen before the present write; thread -1 for none."""
    then = cell[R_BLOCK]
    if then < 0:
        return then, -1
    for which in range(2):
        reader = cell[R_LOW] if which == 0 else cell[R_HIGH]
        then_warp_epoch = cell[R_LOW_WARP_EPOCH] if which == 0 else cell[R_HIGH_WARP_EPOCH]
        time = cell[R_LOW_TIME] if which == 0 else cell[R_HIGH_TIME]
        if then == block and _same_block_ordered(cell[R_EPOCH], then_warp_epoch, reader, epoch, warp_epoch, thread):
            continue
        if not _knows(clocks, warps, block, thread, then, reader, time):
            return then, reader
    other, reader = cell[R_OTHER_BLOCK], cell[R_OTHER_THREAD]
    if other >= 0 and other != block and not _knows(clocks, warps, block, thread, other, reader, cell[R_OTHER_TIME]):
        return other, reader
    return then, -1


@njit(cache=True)
def _apart(block, thread, other_block, other_thread):
    if block != other_block:
        return 2
    return 1 if thread // WARP_LANES != other_thread // WARP_LANES else 0


@njit(cache=True)
def _note(race, found, element, block, thread, other_block, other_thread, other_site):
    """Keeps one race of an instruction: between blocks rather than warps, between warps rather than lanes."""
    apart = _apart(block, thread, other_block, other_thread)
    if found == 0 or apart > _apart(race[1], race[2], race[3], race[4]):
        race[0] = element
        race[1] = block
        race[2] = thread
        race[3] = other_block
        race[4] = other_thread
        race[5] = other_site


@njit(cache=True)
def watch_loads(flat, mask, warps_of, epochs, warp_epochs, clocks, warps, site, shadow, race):
    """Checks the reads of one instruction against earlier writes.

    `warps_of` is the set's `WarpSet.warps`; `warps` the number of warps a block.
    Returns (races, reads of elements that nobody wrote, the first such lane).
    """
    found = 0
    unwritten = 0
    first = -1
    for row in range(warps_of.shape[0]):
        start, stop, block, thread0, slot, _ = warps_of[row]
        epoch = epochs[slot]
        warp_epoch = warp_epochs[row]
        time = 0
        if clocks.shape[0]:
            mine = block * warps + thread0 // WARP_LANES
            time = clocks[mine, mine]
        previous = -1
        for lane in range(start, stop):
            if not mask[lane]:
                continue
            thread = thread0 + lane - start
            if flat[lane] == previous:  # the lane before read it too, after a write of an earlier epoch
                shadow[previous, R_HIGH] = max(thread, shadow[previous, R_HIGH])
                continue
            cell = shadow[flat[lane]]
            previous = -1
            if cell[A_BLOCK] >= 0:
                other = _early_atomic(cell, clocks, warps, block, thread, epoch, warp_epoch)
                if other >= 0:
                    _note(race, found, flat[lane], block, thread, cell[A_BLOCK], other, cell[A_SITE])
                    found += 1
            elif cell[W_BLOCK] == block and cell[W_EPOCH] < epoch:
                previous = flat[lane]
            if previous < 0:
                if cell[W_THREAD] == NOBODY:
                    if unwritten == 0:
                        first = lane
                    unwritten += 1
                elif not _after_write(cell, clocks, warps, block, thread, epoch, warp_epoch):
                    _note(race, found, flat[lane], block, thread, cell[W_BLOCK], cell[W_THREAD], cell[W_SITE])
                    found += 1
            if cell[R_BLOCK] == block and cell[R_EPOCH] == epoch:
                # of one warp's readers the latest stand for all: what is ordered after them is after the others
                same_warp = cell[R_LOW] // WARP_LANES == thread // WARP_LANES
                if thread <= cell[R_LOW] or same_warp:
                    later = same_warp and warp_epoch > cell[R_LOW_WARP_EPOCH]
                    cell[R_LOW] = thread if later else min(thread, cell[R_LOW])
                    cell[R_LOW_WARP_EPOCH] = warp_epoch
                    cell[R_LOW_TIME] = time
                same_warp = cell[R_HIGH] // WARP_LANES == thread // WARP_LANES
                if thread >= cell[R_HIGH] or same_warp:
                    later = same_warp and warp_epoch > cell[R_HIGH_WARP_EPOCH]
                    cell[R_HIGH] = thread if later else max(thread, cell[R_HIGH])
                    cell[R_HIGH_WARP_EPOCH] = warp_epoch
                    cell[R_HIGH_TIME] = time
            else:
                if cell[R_BLOCK] >= 0 and cell[R_BLOCK] != block:
                    cell[R_OTHER_BLOCK] = cell[R_BLOCK]
                    cell[R_OTHER_THREAD] = cell[R_LOW]
                    cell[R_OTHER_TIME] = cell[R_LOW_TIME]
                cell[R_BLOCK] = block
                cell[R_EPOCH] = epoch
                cell[R_LOW] = thread
                cell[R_HIGH] = thread
                cell[R_LOW_WARP_EPOCH] = warp_epoch
                cell[R_HIGH_WARP_EPOCH] = warp_epoch
                cell[R_LOW_TIME] = time
                cell[R_HIGH_TIME] = time
            cell[R_SITE] = site
    return found, unwritten, first


@njit(cache=True)
def watch_stores(
    flat, mask, unchanged, landed, warps_of, epochs, warp_epochs, clocks, warps, instruction, site, shadow, race
):
    """Checks the writes of one instruction; returns the number of races.

    Two writes of one value are no race, while a write races with a read whatever its value: with other data
    it would differ. `unchanged` marks lanes whose value was in memory already, `landed` those whose value
    is there after the instruction. A cell holds `instruction`, which is even, or
    the next number if one of the instruction's values did not land there.
    """
    found = 0
    for row in range(warps_of.shape[0]):
        start, stop, block, thread0, slot, _ = warps_of[row]
        epoch = epochs[slot]
        warp_epoch = warp_epochs[row]
        time = 0
        if clocks.shape[0]:
            mine = block * warps + thread0 // WARP_LANES
            time = clocks[mine, mine]
        for lane in range(start, stop):
            if not mask[lane]:
                continue
            thread = thread0 + lane - start
            cell = shadow[flat[lane]]
            again = cell[W_INSTRUCTION] >= instruction
            lost = not landed[lane] or (again and cell[W_INSTRUCTION] > instruction)
            agrees = not lost if again else unchanged[lane]
            if not agrees and not _after_write(cell, clocks, warps, block, thread, epoch, warp_epoch):
                _note(race, found, flat[lane], block, thread, cell[W_BLOCK], cell[W_THREAD], cell[W_SITE])
                found += 1
            if cell[A_BLOCK] >= 0:
                other = _early_atomic(cell, clocks, warps, block, thread, epoch, warp_epoch)
                if other >= 0:
                    _note(race, found, flat[lane], block, thread, cell[A_BLOCK], other, cell[A_SITE])
                    found += 1
            then, reader = _early_reader(cell, clocks, warps, block, thread, epoch, warp_epoch)
            if reader >= 0:
                _note(race, found, flat[lane], block, thread, then, reader, cell[R_SITE])
                found += 1
            cell[W_BLOCK] = block
            cell[W_THREAD] = thread
            cell[W_EPOCH] = epoch
            cell[W_WARP_EPOCH] = warp_epoch
            cell[W_TIME] = time
            cell[W_INSTRUCTION] = instruction + 1 if lost else instruction
            cell[W_SITE] = site
            cell[A_BLOCK] = cell[A_FIRST] = cell[A_LATER] = NOBODY
    return found


@njit(cache=True)
def watch_atomics(flat, mask, checks_readers, warps_of, epochs, warp_epochs, clocks, warps, site, shadow, race):
    """Checks atomics against plain accesses not ordered before them; returns as `watch_loads` does.

    A compare-and-swap finds out itself whether what was read before still holds: its readers are left unchecked.
    """
    found = 0
    unwritten = 0
    first = -1
    for row in range(warps_of.shape[0]):
        start, stop, block, thread0, slot, _ = warps_of[row]
        epoch = epochs[slot]
        warp_epoch = warp_epochs[row]
        time = 0
        if clocks.shape[0]:
            mine = block * warps + thread0 // WARP_LANES
            time = clocks[mine, mine]
        for lane in range(start, stop):
            if not mask[lane]:
                continue
            thread = thread0 + lane - start
            cell = shadow[flat[lane]]
            if cell[W_THREAD] == NOBODY:
                if unwritten == 0:
                    first = lane
                unwritten += 1
            elif not _after_write(cell, clocks, warps, block, thread, epoch, warp_epoch):
                _note(race, found, flat[lane], block, thread, cell[W_BLOCK], cell[W_THREAD], cell[W_SITE])
                found += 1
            if checks_readers:
                then, reader = _early_reader(cell, clocks, warps, block, thread, epoch, warp_epoch)
                if reader >= 0:
                    _note(race, found, flat[lane], block, thread, then, reader, cell[R_SITE])
                    found += 1
            if cell[A_BLOCK] == block and cell[A_EPOCH] == epoch:
                if thread != cell[A_FIRST]:
                    cell[A_LATER] = thread
            else:
                cell[A_FIRST] = thread
                cell[A_LATER] = NOBODY
            cell[A_BLOCK] = block
            cell[A_EPOCH] = epoch
            cell[A_WARP_EPOCH] = warp_epoch
            cell[A_TIME] = time
            cell[A_SITE] = site
    return found, unwritten, first

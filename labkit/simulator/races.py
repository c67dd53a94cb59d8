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
ATOMIC = -3  # in place of the number of the storing instruction

(
    W_BLOCK,
    W_THREAD,
    W_EPOCH,
    W_WARP_EPOCH,
    W_TIME,
    W_INSTRUCTION,
    W_SITE,
    W_ATOMIC_THREAD,
    R_BLOCK,
    R_EPOCH,
    R_WARP_EPOCH,
    R_LOW,
    R_HIGH,
    R_LOW_TIME,
    R_HIGH_TIME,
    R_SITE,
    R_OTHER_BLOCK,
    R_OTHER_THREAD,
) = range(18)
FIELDS = 18

# A race: element, block, thread; the other's block, thread, site; whether the other wrote.
RACE_FIELDS = 7
KEPT_RACES = 16


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
    """Do the last writes of this element happen before the present access?

    After atomics, `W_THREAD` is the first thread of this epoch and `W_ATOMIC_THREAD` the latest other.
    """
    for field in (W_THREAD, W_ATOMIC_THREAD):
        writer = cell[field]
        if writer < 0:
            continue
        if cell[W_BLOCK] == block and _same_block_ordered(
            cell[W_EPOCH], cell[W_WARP_EPOCH], writer, epoch, warp_epoch, thread
        ):
            continue
        if not _knows(clocks, warps, block, thread, cell[W_BLOCK], writer, cell[W_TIME]):
            return False
    return True


@njit(cache=True)
def _other_writer(cell, block, thread):
    """The writer to name beside `thread` of `block`."""
    same = cell[W_BLOCK] == block and cell[W_THREAD] == thread
    return cell[W_ATOMIC_THREAD] if same else cell[W_THREAD]


@njit(cache=True)
def _early_reader(cell, clocks, warps, block, thread, epoch, warp_epoch):
    """(block, thread) of a reader that does not happen before the present write; thread -1 for none."""
    then = cell[R_BLOCK]
    if then < 0:
        return then, -1
    for which in range(2):
        reader = cell[R_LOW] if which == 0 else cell[R_HIGH]
        time = cell[R_LOW_TIME] if which == 0 else cell[R_HIGH_TIME]
        if then == block and _same_block_ordered(
            cell[R_EPOCH], cell[R_WARP_EPOCH], reader, epoch, warp_epoch, thread
        ):
            continue
        if not _knows(clocks, warps, block, thread, then, reader, time):
            return then, reader
    other = cell[R_OTHER_BLOCK]
    if other >= 0 and other != block and clocks.shape[0] == 0:
        return other, cell[R_OTHER_THREAD]
    return then, -1


@njit(cache=True)
def _note(races, found, element, block, thread, other_block, other_thread, other_site, other_wrote):
    if found < races.shape[0]:
        races[found, 0] = element
        races[found, 1] = block
        races[found, 2] = thread
        races[found, 3] = other_block
        races[found, 4] = other_thread
        races[found, 5] = other_site
        races[found, 6] = other_wrote


@njit(cache=True)
def watch_loads(flat, mask, warps_of, epochs, warp_epochs, clocks, warps, site, shadow, races):
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
            if cell[W_THREAD] >= 0 and cell[W_BLOCK] == block and cell[W_EPOCH] < epoch:
                previous = flat[lane]
            elif cell[W_THREAD] == NOBODY:
                if unwritten == 0:
                    first = lane
                unwritten += 1
            elif cell[W_THREAD] >= 0 and not _after_write(
                cell, clocks, warps, block, thread, epoch, warp_epoch
            ):
                writer = _other_writer(cell, block, thread)
                _note(races, found, flat[lane], block, thread, cell[W_BLOCK], writer, cell[W_SITE], 1)
                found += 1
            if cell[R_BLOCK] == block and cell[R_EPOCH] == epoch:
                if thread <= cell[R_LOW] or cell[R_LOW] // WARP_LANES == thread // WARP_LANES:
                    cell[R_LOW] = min(thread, cell[R_LOW])
                    cell[R_LOW_TIME] = time
                if thread >= cell[R_HIGH] or cell[R_HIGH] // WARP_LANES == thread // WARP_LANES:
                    cell[R_HIGH] = max(thread, cell[R_HIGH])
                    cell[R_HIGH_TIME] = time
            else:
                if cell[R_BLOCK] >= 0 and cell[R_BLOCK] != block:
                    cell[R_OTHER_BLOCK] = cell[R_BLOCK]
                    cell[R_OTHER_THREAD] = cell[R_LOW]
                cell[R_BLOCK] = block
                cell[R_EPOCH] = epoch
                cell[R_LOW] = thread
                cell[R_HIGH] = thread
                cell[R_LOW_TIME] = time
                cell[R_HIGH_TIME] = time
            cell[R_WARP_EPOCH] = warp_epoch
            cell[R_SITE] = site
    return found, unwritten, first


@njit(cache=True)
def watch_stores(
    flat, mask, unchanged, landed, warps_of, epochs, warp_epochs, clocks, warps, instruction, site, shadow, races
):
    """Checks the writes of one instruction; returns the number of races.

    Two writes of one value are no race: `unchanged` marks lanes whose value was in memory already,
    `landed` those whose value is there after the instruction.
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
            agrees = landed[lane] if cell[W_INSTRUCTION] == instruction else unchanged[lane]
            if not agrees and not _after_write(cell, clocks, warps, block, thread, epoch, warp_epoch):
                writer = _other_writer(cell, block, thread)
                _note(races, found, flat[lane], block, thread, cell[W_BLOCK], writer, cell[W_SITE], 1)
                found += 1
            if not unchanged[lane]:
                then, reader = _early_reader(cell, clocks, warps, block, thread, epoch, warp_epoch)
                if reader >= 0:
                    _note(races, found, flat[lane], block, thread, then, reader, cell[R_SITE], 0)
                    found += 1
            cell[W_BLOCK] = block
            cell[W_THREAD] = thread
            cell[W_EPOCH] = epoch
            cell[W_WARP_EPOCH] = warp_epoch
            cell[W_TIME] = time
            cell[W_ATOMIC_THREAD] = NOBODY
            cell[W_INSTRUCTION] = instruction
            cell[W_SITE] = site
    return found


@njit(cache=True)
def watch_atomics(flat, mask, warps_of, epochs, warp_epochs, clocks, warps, site, shadow, races):
    """Checks atomics against plain writes not ordered before them; returns as `watch_loads` does."""
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
            writer = cell[W_THREAD]
            if writer == NOBODY:
                if unwritten == 0:
                    first = lane
                unwritten += 1
            atomic_before = cell[W_INSTRUCTION] == ATOMIC
            if writer >= 0 and not atomic_before:
                if not _after_write(cell, clocks, warps, block, thread, epoch, warp_epoch):
                    _note(races, found, flat[lane], block, thread, cell[W_BLOCK], writer, cell[W_SITE], 1)
                    found += 1
            if atomic_before and cell[W_BLOCK] == block and cell[W_EPOCH] == epoch:
                if thread != writer:
                    cell[W_ATOMIC_THREAD] = thread
            else:
                cell[W_THREAD] = thread
                cell[W_ATOMIC_THREAD] = NOBODY
            cell[W_BLOCK] = block
            cell[W_EPOCH] = epoch
            cell[W_WARP_EPOCH] = warp_epoch
            cell[W_TIME] = time
            cell[W_INSTRUCTION] = ATOMIC
            cell[W_SITE] = site
    return found, unwritten, first

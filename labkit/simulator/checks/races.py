"""Race detection: a race is two accesses to an element, neither of which happens before the other.

Two accesses are ordered by the same thread, by a barrier of the grid or of the block, or by a `syncwarp` between
threads of one warp. Epochs count a block's barriers, the fast path. Atomics order accesses too: one warp changed
something by an atomic after its access, and the other warp read that before its own. This needs `clocks`, kept only for
kernels that use what an atomic returns. Such an atomic speaks for its own thread, and for others of its warp up to
where they met (`clocks.was_passed_on`). Between blocks it counts only after a `threadfence`, unless it is an atomic on
the same element, and where it takes a lock only before another. Without a fence the access may become visible after the
atomic, or what follows be read before it (CUDA C++ Programming Guide, memory fence functions). The order judged is that
of this run: a warp that had found an atomic's element unchanged might know less. A `cell` is an element's row of shadow
memory, a `party` the field of it that holds one earlier access (`cells`).
A chunk is the blocks of a launch that run together.
"""

from collections import namedtuple

import numpy as np

from labkit.simulator.checks import cells, overflow
from labkit.simulator.checks.clocks import KNOWN, KNOWN_BEFORE, LANES, PUBLISHED, SYNCED, TAKEN, time_of, was_passed_on
from labkit.simulator.seam import inner_njit, njit
from labkit.trace import WARP_LANES

# What is missing between two accesses that race: a `syncwarp` with the lanes that have waited; a `threadfence` behind
# the lock that the later thread has taken; one before the atomic by which the other tells of its access; a warp barrier
# before one thread of the other's warp passes on by an atomic what all did; or any order at all.
NOTHING, WAIT, LOCK_FENCE, FENCE, WARP, UNORDERED = range(6)

# A race: element, block, thread; the other's block, thread, site; what is missing.
RACE_FIELDS = 7

# What orders the accesses of a warp set. `warps`: as `WarpSet.warps`. `epochs`: barriers passed, per slot of the chunk.
# `grid_epoch`: the epoch of the last grid barrier. `warp_epochs`: warp barriers passed, per warp.
Order = namedtuple("Order", "warps epochs grid_epoch warp_epochs")

# What orders them besides, in kernels with atomics that tell something or barriers of a part of a warp; None in others,
# for which numba then compiles a third of this code. `lane_epochs`: what each lane knows of the warp barriers of each
# other lane of its warp; empty until a barrier of part of a warp. `per_block` to `behind`: the fields of `Clocks`.
# `overflow`: the entries of `Overflow`. `is_after_atomic`: the access depends on what an atomic returned.
Knowledge = namedtuple(
    "Knowledge",
    "lane_epochs per_block levels nodes times passed_on lanes_synced_until clocks behind overflow is_after_atomic",
)


def current_order(w, site) -> tuple[Order, Knowledge | None]:
    """Return what orders the accesses of the warp set at a site now."""
    chunk, launch, clocks = w.chunk, w.chunk.launch, w.chunk.launch.clocks
    order = Order(w.warps, chunk.barriers_passed, chunk.grid_epoch, w.warp_epochs)
    if not launch.program.keeps_clocks and not len(w.lane_epochs):
        return order, None
    launch.overflow.make_room(2 * w.lanes)
    return order, Knowledge(
        w.lane_epochs, clocks.per_block, clocks.levels, clocks.nodes, clocks.times, clocks.passed_on,
        clocks.lanes_synced_until, clocks.clocks, clocks.behind, launch.overflow.entries,
        site in launch.program.after_atomics,
    )  # fmt: skip


def snapshot(order: Order) -> Order:
    """Return the order with copies of the counts that later barriers of blocks and whole warps raise."""
    return order._replace(epochs=order.epochs.copy(), warp_epochs=order.warp_epochs.copy())


def combine_units(parts) -> tuple[int, int, int]:
    """Combine what `check_loads` or `check_atomics` returned for each unit of the elements."""
    found, unwritten, first = zip(*parts)
    return max(found), max(unwritten), max(first)


@inner_njit
def _first_unordered_by_barriers(cell, first, last, grid_epoch, block, thread, epoch, warp_epoch):
    """Return the first party from `first` to `last` that neither the thread nor a barrier orders before; -1 if none.

    The barriers are those of the grid, the block and whole warps: the fast path, which every access takes.
    """
    for party in range(first, last + 1, cells.PARTY):
        if cell[party] < 0:
            continue
        earlier_block, earlier_epoch = cells.block_and_epoch(cell, party)
        if earlier_epoch < grid_epoch:
            continue
        if earlier_block != block:
            return party
        if cell[party] == thread or earlier_epoch < epoch or party in cells.OTHERS:
            continue
        if cell[party + 1] >= warp_epoch or cell[party] // WARP_LANES != thread // WARP_LANES:
            return party
    return -1


@inner_njit
def _is_behind(knowledge, warp, thread):
    """Return whether other lanes of this thread's warp have waited for more than it has."""
    return knowledge.behind[LANES, warp] >> (thread % WARP_LANES) & 1


@inner_njit
def _others_know(knowledge, block, thread, other, time):
    """Return whether lanes that have waited, which this thread has not met yet, know what a warp did at a time."""
    warp = block * knowledge.per_block + thread // WARP_LANES
    if not _is_behind(knowledge, warp, thread):
        return False
    if other == warp:
        return knowledge.behind[SYNCED, warp] > time
    return time_of(knowledge.nodes, knowledge.levels, np.int64(knowledge.clocks[KNOWN, warp]), other) > time


@inner_njit
def _known_until(knowledge, which, block, thread, other):
    """Return the time until which this thread's warp has learned, through atomics, what another did.

    `which` is KNOWN or PUBLISHED of lanes that are not behind others of their warp, or a clock of any lane.
    """
    warp = block * knowledge.per_block + thread // WARP_LANES
    if which <= PUBLISHED and _is_behind(knowledge, warp, thread):
        which += KNOWN_BEFORE
    tree = np.int64(knowledge.clocks[which, warp])
    return time_of(knowledge.nodes, knowledge.levels, tree, other)


@inner_njit
def _missing_order(knowledge, block, thread, earlier_block, earlier_thread, earlier_time):
    """Return what this thread's warp lacks to know, through atomics, an access by another warp at `earlier_time`."""
    if knowledge.times.shape[0] == 0:
        return UNORDERED
    other = earlier_block * knowledge.per_block + earlier_thread // WARP_LANES
    known = _known_until(knowledge, KNOWN, block, thread, other)
    if known <= earlier_time:
        return WAIT if _others_know(knowledge, block, thread, other, earlier_time) else UNORDERED
    if not was_passed_on(knowledge.times, knowledge.passed_on, other, earlier_thread % WARP_LANES, earlier_time, known):
        return WARP
    if earlier_block != block and _known_until(knowledge, PUBLISHED, block, thread, other) <= earlier_time:
        return LOCK_FENCE if _known_until(knowledge, TAKEN, block, thread, other) > earlier_time else FENCE
    return NOTHING


@inner_njit
def _separation(block, thread, other_block, other_thread):
    """Return 2 for threads of different blocks, 1 for different warps, 0 for one warp."""
    if block != other_block:
        return 2
    return 1 if thread // WARP_LANES != other_thread // WARP_LANES else 0


@inner_njit
def _lane_knows(knowledge, block, thread, earlier_time):
    """Return whether the thread's warp has learned what another of its lanes did at `earlier_time`."""
    if knowledge.lanes_synced_until.shape[0] == 0:
        return False
    warp = block * knowledge.per_block + thread // WARP_LANES
    if knowledge.lanes_synced_until[warp] > earlier_time:
        return True
    return knowledge.behind[SYNCED, warp] > earlier_time and not _is_behind(knowledge, warp, thread)


@inner_njit
def _first_unordered(order, knowledge, row, cell, first, last, block, thread, epoch):
    """Return the first party that nothing orders before the access, plus FIELDS times what is missing; -1 if none."""
    parts = knowledge.lane_epochs.shape[0] > 0
    warp_epoch = np.int64(-1) if parts else order.warp_epochs[row]
    for party in range(first, last + 1, cells.PARTY):
        if _first_unordered_by_barriers(cell, party, party, order.grid_epoch, block, thread, epoch, warp_epoch) < 0:
            continue
        earlier_thread, time = cell[party], cell[party + 2]
        earlier_block, _ = cells.block_and_epoch(cell, party)
        if cells.A_LOW <= party <= cells.A_OTHER and _ordered_on_element(
            knowledge, cell, block, thread, earlier_block, earlier_thread, time
        ):
            continue
        if _separation(block, thread, earlier_block, earlier_thread) == 0:
            if _lane_knows(knowledge, block, thread, time):
                continue
            if parts and cell[party + 1] < knowledge.lane_epochs[row, thread % WARP_LANES, earlier_thread % WARP_LANES]:
                continue
            warp = block * knowledge.per_block + thread // WARP_LANES
            met_others = knowledge.times.shape[0] > 0 and _others_know(knowledge, block, thread, warp, time)
            return party + cells.FIELDS * (WAIT if met_others else UNORDERED)
        missing = _missing_order(knowledge, block, thread, earlier_block, earlier_thread, time)
        if missing != NOTHING:
            return party + cells.FIELDS * missing
    return -1


@inner_njit
def _ordered_on_element(knowledge, cell, block, thread, earlier_block, earlier_thread, earlier_time):
    """Return whether an atomic of this block found the other's atomic done, and this access depends on it.

    Atomics on one element are done in one order: what follows one also follows those before it, without a fence. (PTX
    ISA, "Causality Order": what is observed before an operation comes before all that follows it.)
    """
    same_warp = earlier_block == block and earlier_thread // WARP_LANES == thread // WARP_LANES
    if same_warp or not knowledge.is_after_atomic or cell[cells.A_BLOCK] != block or knowledge.times.shape[0] == 0:
        return False
    other = earlier_block * knowledge.per_block + earlier_thread // WARP_LANES
    return _known_until(knowledge, KNOWN, block, thread, other) >= earlier_time


@inner_njit
def _unordered_in_overflow(order, knowledge, cell, kind, block, thread):
    """Return the entry of an access by another warp that nothing orders before this one, or NONE."""
    entries, entry = knowledge.overflow, cell[cells.OVERFLOW]
    while entry != overflow.NONE:
        e = entries[entry]
        other_warp = e[overflow.BLOCK] != block or e[overflow.THREAD] // WARP_LANES != thread // WARP_LANES
        matters = e[overflow.KIND] == kind and e[overflow.EPOCH] >= order.grid_epoch and other_warp
        earlier = e[overflow.BLOCK], e[overflow.THREAD], e[overflow.TIME]
        counted = kind == cells.A_LOW and _ordered_on_element(knowledge, cell, block, thread, *earlier)
        if matters and not counted and _missing_order(knowledge, block, thread, *earlier) != NOTHING:
            return entry
        entry = e[overflow.NEXT]
    return overflow.NONE


@inner_njit
def _add_overflow(order, knowledge, cell, kind, earlier, block, thread):
    """Keep an access that the cell has no room for, in place of those ordered before the current thread.

    `earlier` has its block, thread, epoch, time and site.
    """
    earlier_block, earlier_thread, earlier_epoch, earlier_time, site = earlier
    is_own = earlier_block == block and earlier_thread == thread
    if earlier_epoch < order.grid_epoch:
        return
    if not is_own and _missing_order(knowledge, block, thread, earlier_block, earlier_thread, earlier_time) == NOTHING:
        return
    entries, entry, before, length = knowledge.overflow, cell[cells.OVERFLOW], overflow.NONE, 0
    is_full = entry != overflow.NONE and entries[entry, overflow.LENGTH] >= overflow.MAX_LENGTH
    while entry != overflow.NONE:
        e = entries[entry]
        after = e[overflow.NEXT]
        same = e[overflow.BLOCK] == earlier_block and e[overflow.THREAD] // WARP_LANES == earlier_thread // WARP_LANES
        missing = _missing_order(knowledge, block, thread, e[overflow.BLOCK], e[overflow.THREAD], e[overflow.TIME])
        if e[overflow.KIND] == kind and (same or missing == NOTHING or e[overflow.EPOCH] < order.grid_epoch):
            cell[cells.OVERFLOW] = overflow.remove(entries, cell[cells.OVERFLOW], before, entry)
        elif is_full:
            return
        else:
            before = entry
            length += 1
        if is_full:  # only the first is looked at, for speed
            length = overflow.MAX_LENGTH - 1
            break
        entry = after
    first = cell[cells.OVERFLOW]
    cell[cells.OVERFLOW] = overflow.add(
        entries, first, length, kind, earlier_block, earlier_thread, earlier_epoch, earlier_time, site
    )


@inner_njit
def _keep_in_overflow(order, knowledge, cell, low, shared, block, epoch, thread, time, site):
    """Keep the party that `note_party` is about to drop, in kernels that keep clocks."""
    if knowledge.times.shape[0] == 0:
        return
    earlier_block, earlier_epoch = cell[shared], cell[shared + 1]
    high, other = low + cells.PARTY, low + 2 * cells.PARTY
    warp, low_warp, high_warp = thread // WARP_LANES, cell[low] // WARP_LANES, cell[high] // WARP_LANES
    if earlier_block < 0:
        return
    if earlier_block != block:
        if low_warp != high_warp:
            far = earlier_block, cell[high], earlier_epoch, cell[high + 2], cell[high + 3]
            _add_overflow(order, knowledge, cell, low, far, block, thread)
        if cell[other] >= 0:
            far = cell[shared + 2], cell[other], cell[other + 1], cell[other + 2], cell[other + 3]
            _add_overflow(order, knowledge, cell, low, far, block, thread)
    elif earlier_epoch == epoch and low_warp != high_warp:
        if low_warp < warp < high_warp:
            _add_overflow(order, knowledge, cell, low, (block, thread, epoch, time, site), block, thread)
        elif warp < low_warp or warp > high_warp:
            near = low if warp < low_warp else high
            dropped = block, cell[near], epoch, cell[near + 2], cell[near + 3]
            _add_overflow(order, knowledge, cell, low, dropped, block, thread)


@inner_njit
def _forget_overflow(knowledge, cell, kind):
    """Drop the entries of a kind."""
    if cell[cells.OVERFLOW] == overflow.NONE:
        return
    entry, before, length = cell[cells.OVERFLOW], overflow.NONE, 0
    while entry != overflow.NONE:
        after = knowledge.overflow[entry, overflow.NEXT]
        if knowledge.overflow[entry, overflow.KIND] == kind:
            cell[cells.OVERFLOW] = overflow.remove(knowledge.overflow, cell[cells.OVERFLOW], before, entry)
        else:
            before = entry
            length += 1
        entry = after
    if length:
        knowledge.overflow[cell[cells.OVERFLOW], overflow.LENGTH] = length


@inner_njit
def _keep_race(race, found, element, block, thread, other_block, other_thread, site, missing):
    """Keep one race of an instruction: rather between blocks than warps, rather between warps than lanes."""
    separation = _separation(block, thread, np.int64(other_block), np.int64(other_thread))
    if found == 0 or separation > _separation(race[1], race[2], race[3], race[4]):
        race[0], race[5], race[6] = element, site, missing
        race[1], race[2], race[3], race[4] = block, thread, other_block, other_thread


@inner_njit
def _warp_state(order, knowledge, row):
    """Return a warp's lanes, block and first thread, the epochs of block and warp (-1 for parts), and its time."""
    start, stop, block, thread0, slot, _ = order.warps[row]
    warp_epoch, time = np.int64(order.warp_epochs[row]), np.int32(0)
    if knowledge is not None:
        if knowledge.lane_epochs.shape[0]:
            warp_epoch = np.int64(-1)
        if knowledge.times.shape[0]:
            time = knowledge.times[block * knowledge.per_block + thread0 // WARP_LANES]
    return start, stop, block, thread0, order.epochs[slot], warp_epoch, time


@inner_njit
def _stamp(knowledge, row, lane, warp_epoch):
    """Return the warp barriers that a lane has passed."""
    if knowledge is not None:
        return warp_epoch if warp_epoch >= 0 else np.int64(knowledge.lane_epochs[row, lane, lane])
    else:  # numba drops a branch only where it has an `else`
        return warp_epoch


@inner_njit
def _note_race(order, knowledge, row, cell, first, last, access, element, found, race):
    """Keep the race of an access with a party from `first` to `last` and return 1; return 0 if they are ordered.

    Barriers do not order it after party `first`.
    """
    block, thread = access[0], access[1]
    if knowledge is not None:
        return _note_race_by_knowledge(order, knowledge, row, cell, first, last, access, element, found, race)
    else:
        other_block = cells.block_and_epoch(cell, first)[0]
        _keep_race(race, found, element, block, thread, other_block, cell[first], cell[first + 3], UNORDERED)
        return 1


@inner_njit
def _note_race_by_knowledge(order, knowledge, row, cell, first, last, access, element, found, race):
    """As `_note_race`, where more than barriers can order accesses."""
    block, thread, epoch, _ = access
    party = _first_unordered(order, knowledge, row, cell, first, last, block, thread, epoch)
    if party >= 0:
        missing, party = divmod(party, cells.FIELDS)
        other_block, _ = cells.block_and_epoch(cell, party)
        _keep_race(race, found, element, block, thread, other_block, cell[party], cell[party + 3], missing)
        return 1
    if cell[cells.OVERFLOW] == overflow.NONE or last not in cells.OTHERS:
        return 0
    entry = _unordered_in_overflow(order, knowledge, cell, last - 2 * cells.PARTY, block, thread)
    if entry == overflow.NONE:
        return 0
    entries = knowledge.overflow
    other_block, other_thread = entries[entry, overflow.BLOCK], entries[entry, overflow.THREAD]
    time, site = entries[entry, overflow.TIME], entries[entry, overflow.SITE]
    missing = _missing_order(knowledge, block, thread, other_block, other_thread, time)
    _keep_race(race, found, element, block, thread, other_block, other_thread, site, missing)
    return 1


@njit(cache=True)
def check_loads(flat, mask, order, knowledge, site, shadow, race):
    """Check the reads of one instruction against earlier writes.

    Returns (races, reads of elements that no thread wrote, the first lane of those).
    """
    found, unwritten, first, grid_epoch = np.int64(0), 0, -1, order.grid_epoch
    for row in range(order.warps.shape[0]):
        start, stop, block, thread0, epoch, warp_epoch, time = _warp_state(order, knowledge, row)
        previous = -1
        for lane in range(start, stop):
            if not mask[lane]:
                continue
            thread = thread0 + lane - start
            if flat[lane] == previous:  # the lane before read it too, after a write of an earlier epoch
                shadow[previous, cells.R_HIGH] = max(thread, shadow[previous, cells.R_HIGH])
                continue
            access = block, thread, epoch, warp_epoch
            cell = shadow[flat[lane]]
            previous = -1
            if cell[cells.A_BLOCK] >= 0:
                party = _first_unordered_by_barriers(cell, cells.A_LOW, cells.A_OTHER, grid_epoch, *access)
                if party >= 0:
                    found += _note_race(
                        order, knowledge, row, cell, party, cells.A_OTHER, access, flat[lane], found, race
                    )
            elif cell[cells.W_BLOCK] == block and cell[cells.W_EPOCH] < epoch and warp_epoch >= 0:
                previous = flat[lane]
            if previous < 0:
                if cell[cells.W_THREAD] == cells.NO_THREAD:
                    if cell[cells.A_BLOCK] < 0:  # an atomic on it was told of before
                        first = lane if unwritten == 0 else first
                        unwritten += 1
                else:
                    party = _first_unordered_by_barriers(cell, cells.W_THREAD, cells.W_THREAD, grid_epoch, *access)
                    if party >= 0:
                        found += _note_race(
                            order, knowledge, row, cell, party, cells.W_THREAD, access, flat[lane], found, race
                        )
            stamp = _stamp(knowledge, row, lane - start, warp_epoch)
            if knowledge is not None:
                _keep_in_overflow(order, knowledge, cell, cells.R_LOW, cells.R_BLOCK, block, epoch, thread, time, site)
            cells.note_party(cell, cells.R_LOW, cells.R_BLOCK, block, epoch, thread, stamp, time, site)
    return found, unwritten, first


@njit(cache=True)
def check_stores(flat, mask, unchanged, landed, order, knowledge, instruction, site, shadow, race):
    """Check the writes of one instruction; return the number of races.

    Two writes of one value do not race. A write and a read race whatever the value: other data would change it.
    `unchanged` has the lanes whose value was in memory already, `landed` those whose value is there afterwards. A cell
    holds `instruction`, which is even, or the next number if one of the instruction's values did not land there.
    """
    found, grid_epoch = np.int64(0), order.grid_epoch  # a literal 0 would be a type of its own to numba
    for row in range(order.warps.shape[0]):
        start, stop, block, thread0, epoch, warp_epoch, time = _warp_state(order, knowledge, row)
        for lane in range(start, stop):
            if not mask[lane]:
                continue
            thread = thread0 + lane - start
            access = block, thread, epoch, warp_epoch
            cell = shadow[flat[lane]]
            again = cell[cells.W_INSTRUCTION] >= instruction
            lost = not landed[lane] or (again and cell[cells.W_INSTRUCTION] > instruction)
            agrees = not lost if again else unchanged[lane]
            if not agrees:
                party = _first_unordered_by_barriers(cell, cells.W_THREAD, cells.V_THREAD, grid_epoch, *access)
                if party >= 0:
                    found += _note_race(
                        order, knowledge, row, cell, party, cells.V_THREAD, access, flat[lane], found, race
                    )
                cell[cells.V_THREAD] = cells.NO_THREAD
            elif cell[cells.W_THREAD] >= 0 and (cell[cells.W_THREAD] != thread or cell[cells.W_BLOCK] != block):
                cells.note_same_value(cell, grid_epoch, block)
            if cell[cells.A_BLOCK] >= 0:
                party = _first_unordered_by_barriers(cell, cells.A_LOW, cells.A_OTHER, grid_epoch, *access)
                if party >= 0:
                    found += _note_race(
                        order, knowledge, row, cell, party, cells.A_OTHER, access, flat[lane], found, race
                    )
            party = _first_unordered_by_barriers(cell, cells.R_LOW, cells.R_OTHER, grid_epoch, *access)
            if party >= 0:
                found += _note_race(order, knowledge, row, cell, party, cells.R_OTHER, access, flat[lane], found, race)
            stamp = _stamp(knowledge, row, lane - start, warp_epoch)
            cells.note_write(cell, block, epoch, thread, stamp, time, site)
            cell[cells.W_INSTRUCTION] = instruction + 1 if lost else instruction
            cell[cells.A_BLOCK] = cell[cells.A_LOW] = cell[cells.A_HIGH] = cell[cells.A_OTHER] = cells.NO_THREAD
            if knowledge is not None:
                _forget_overflow(knowledge, cell, cells.A_LOW)
    return found


@njit(cache=True)
def note_arrivals(flat, mask, order, knowledge, site, shadow):
    """Note that writes which an instruction began earlier, and which were checked then, are done now."""
    for row in range(order.warps.shape[0]):
        start, stop, block, thread0, epoch, warp_epoch, time = _warp_state(order, knowledge, row)
        for lane in range(start, stop):
            if mask[lane]:
                stamp = _stamp(knowledge, row, lane - start, warp_epoch)
                cells.note_write(shadow[flat[lane]], block, epoch, thread0 + lane - start, stamp, time, site)


@njit(cache=True)
def check_atomic_order(flat, mask, order, knowledge, shadow, race):
    """Check atomics against plain writes; return as `check_loads`."""
    found = np.int64(0)
    for row in range(order.warps.shape[0]):
        start, stop, block, thread0, epoch, warp_epoch, _ = _warp_state(order, knowledge, row)
        for lane in range(start, stop):
            if mask[lane]:
                access = block, thread0 + lane - start, epoch, warp_epoch
                found += _note_race_with_write(
                    order, knowledge, row, shadow[flat[lane]], access, flat[lane], found, race
                )
    return found, 0, -1


@inner_njit
def _note_race_with_write(order, knowledge, row, cell, access, element, found, race):
    """As `_note_race`, with the plain writes of the element."""
    party = _first_unordered_by_barriers(cell, cells.W_THREAD, cells.V_THREAD, order.grid_epoch, *access)
    if party < 0:
        return 0
    return _note_race(order, knowledge, row, cell, party, cells.V_THREAD, access, element, found, race)


@njit(cache=True)
def check_atomics(flat, mask, is_guess, order, knowledge, site, shadow, race):
    """Check atomics against plain reads, and for elements that nothing has written; return as `check_loads`.

    A guess is a read whose value a compare-and-swap then checks by itself. Only plain writes can spoil it, and it is
    not kept, since the compare-and-swap will be.
    """
    found, unwritten, first, grid_epoch = np.int64(0), 0, -1, order.grid_epoch
    for row in range(order.warps.shape[0]):
        start, stop, block, thread0, epoch, warp_epoch, time = _warp_state(order, knowledge, row)
        for lane in range(start, stop):
            if not mask[lane]:
                continue
            thread = thread0 + lane - start
            access = block, thread, epoch, warp_epoch
            cell = shadow[flat[lane]]
            if cell[cells.W_THREAD] == cells.NO_THREAD:
                if cell[cells.A_BLOCK] < 0:
                    first = lane if unwritten == 0 else first
                    unwritten += 1
            elif is_guess:
                found += _note_race_with_write(order, knowledge, row, cell, access, flat[lane], found, race)
            if is_guess:
                continue
            party = _first_unordered_by_barriers(cell, cells.R_LOW, cells.R_OTHER, grid_epoch, *access)
            if party >= 0:
                found += _note_race(order, knowledge, row, cell, party, cells.R_OTHER, access, flat[lane], found, race)
            stamp = _stamp(knowledge, row, lane - start, warp_epoch)
            if knowledge is not None:
                _keep_in_overflow(order, knowledge, cell, cells.A_LOW, cells.A_BLOCK, block, epoch, thread, time, site)
            cells.note_party(cell, cells.A_LOW, cells.A_BLOCK, block, epoch, thread, stamp, time, site)
    return found, unwritten, first

"""What warps have learned of one another through atomics: a vector clock a warp, in bounded memory.

A clock holds a time for each warp of the launch: what that warp did before then has happened before the clock's own
warp goes on. The lanes of one warp know no more of one another than warps do: what an atomic of one lane
tells comes back to the others by an atomic or a barrier of their own (`Clocks.lanes_known_until`). And a lane passes on what it did
itself, of the other lanes' doings only what lies before a collective of theirs: which lanes each of a warp's latest
times is of is kept beside the clocks (`Clocks.passed_on`).

Most blocks of a large grid learn nearly the same, so a clock is a tree whose branches are shared with the clocks that
agree there; trees are never changed, but node anew along one path (Driscoll and others, Making data structures
persistent, 1989). The nodes that nobody uses any more are collected when space runs out.
"""

import numpy as np
from numba import njit

from labkit.simulator.warps import BLOCK, START, STOP, THREAD
from labkit.trace import WARP_LANES

WIDTH = 32  # children of a node, times of a leaf
MAX_NODES = 2**19  # 64 MB
EMPTY = 0  # the tree that knows of nobody
MOMENTS = 64  # of a warp that are kept in `passed_on`: who knows of a later one counts as knowing all before these
ALL_LANES = np.uint32(2**WARP_LANES - 1)
NO_LANES = np.uint32(0)

# The clocks of a warp, and of what the last atomic on an element left behind: all that it knows, and what of it a
# `threadfence` has node visible to other blocks.
KNOWN, PUBLISHED = range(2)


@njit(cache=True)
def time_of(nodes, levels, tree, warp):
    """The time that a clock holds for a warp."""
    for level in range(levels, 0, -1):
        tree = nodes[tree, warp // WIDTH**level % WIDTH]
    return nodes[tree, warp % WIDTH]


@njit(cache=True)
def _with_time(nodes, used, level, tree, warp, time):
    """A clock that differs from `tree` in the time of one warp."""
    node = used[0]
    used[0] += 1
    nodes[node] = nodes[tree]
    if level == 0:
        nodes[node, warp % WIDTH] = time
        return node
    child = warp // WIDTH**level % WIDTH
    nodes[node, child] = _with_time(nodes, used, level - 1, np.int64(nodes[tree, child]), warp, time)
    return node


@njit(cache=True)
def _join(nodes, used, level, first, second):
    """The clock that knows what either knows; one of the two where it knows it all."""
    if first == second or second == EMPTY:
        return first
    if first == EMPTY:
        return second
    node = used[0]
    used[0] += 1
    is_first, is_second = True, True
    for child in range(WIDTH):
        a, b = np.int64(nodes[first, child]), np.int64(nodes[second, child])
        both = max(a, b) if level == 0 else _join(nodes, used, level - 1, a, b)
        nodes[node, child] = both
        is_first &= both == a
        is_second &= both == b
    if is_first or is_second:
        used[0] = node
        return first if is_first else second
    return node


@njit(cache=True)
def _restrict(nodes, used, level, tree, first, last):
    """A clock that knows of the warps from `first` to `last` alone."""
    if tree == EMPTY:
        return EMPTY
    node = used[0]
    used[0] += 1
    nodes[node] = 0
    step = WIDTH**level
    for child in range(max(0, first // step), min(WIDTH - 1, last // step) + 1):
        value = np.int64(nodes[tree, child])
        begin = child * step
        nodes[node, child] = (
            value if level == 0 else _restrict(nodes, used, level - 1, value, first - begin, last - begin)
        )
    return node


@njit(cache=True)
def was_passed_on(times, passed_on, warp, lane, time, known):
    """Did this lane pass on what it did at `time`, or meet others of its warp, before another knew that until `known`?

    Whom it met is not looked at.
    """
    if known > times[warp] or time < times[warp] - MOMENTS:  # one who trusts everyone; what is not kept any more
        return True
    while time < known and not passed_on[warp, time % MOMENTS] >> np.uint32(lane) & np.uint32(1):
        time += 1
    return time < known


@njit(cache=True)
def _advance(nodes, used, levels, times, passed_on, clocks, warp, lanes):
    """A warp's next moment; in the one that ends, these lanes pass on what they did."""
    passed_on[warp, times[warp] % MOMENTS] = lanes
    times[warp] += 1
    clocks[KNOWN, warp] = _with_time(nodes, used, levels, np.int64(clocks[KNOWN, warp]), warp, times[warp])


@njit(cache=True)
def _changers(flat, lanes, changed, lane, start, stop):
    """Which of a warp's lanes, from `lane` on, touch the element there, a bit each; none if nobody changes it."""
    bits, is_changed = np.uint32(0), False
    for other in range(lane, stop):
        if lanes[other] and flat[other] == flat[lane]:
            bits |= np.uint32(1) << np.uint32(other - start)
            is_changed |= changed[other]
    return bits if is_changed else np.uint32(0)


@njit(cache=True)
def _exchange(
    nodes, used, levels, spare, times, passed_on, lanes_known_until, clocks, left, flat, lanes, changed, learns, warps, per_block,
    begin,
):  # fmt: skip
    """The warps' atomics, from lane `begin` on; returns the lane at which space ran out, or -1."""
    for row in range(warps.shape[0]):
        start, stop = warps[row, START], warps[row, STOP]
        warp = warps[row, BLOCK] * per_block + warps[row, THREAD] // WARP_LANES
        element = -1
        for lane in range(max(start, begin), stop):
            if not lanes[lane] or flat[lane] == element:
                continue
            if used[0] + spare > nodes.shape[0]:
                return lane
            element = flat[lane]
            if learns:
                lanes_known_until[warp] = max(
                    lanes_known_until[warp], time_of(nodes, levels, np.int64(left[KNOWN, element]), warp)
                )
                for which in range(2):
                    mine, there = np.int64(clocks[which, warp]), np.int64(left[which, element])
                    clocks[which, warp] = _join(nodes, used, levels, mine, there)
            changers = _changers(flat, lanes, changed, lane, start, stop)
            _advance(nodes, used, levels, times, passed_on, clocks, warp, changers)
            if changers:
                for which in range(2):
                    mine, there = np.int64(clocks[which, warp]), np.int64(left[which, element])
                    left[which, element] = mine if learns else _join(nodes, used, levels, mine, there)
    return -1


@njit(cache=True)
def _share(nodes, used, levels, spare, times, passed_on, lanes_known_until, clocks, groups, begin):
    """The warps of each group learn all that any of them knows, in the first one's clock; returns as `_exchange`."""
    count = groups.shape[1]
    steps = 3 * count  # each warp counts on, then brings what it knows, then what it has published
    for step in range(begin, len(groups) * steps):
        if used[0] + spare > nodes.shape[0]:
            return step
        turn, number = divmod(step % steps, count)
        group = groups[step // steps]
        first, warp = group[0], group[number]
        if turn == 0:
            _advance(nodes, used, levels, times, passed_on, clocks, warp, ALL_LANES)
            continue
        which = turn - 1
        so_far, more = np.int64(clocks[which, first]), np.int64(clocks[which, warp])
        clocks[which, first] = _join(nodes, used, levels, so_far, more)
        if number == count - 1:
            for member in group:
                clocks[which, member] = clocks[which, first]
                lanes_known_until[member] = times[member]
    return -1


@njit(cache=True)
def _publish(nodes, used, levels, spare, times, passed_on, lanes_known_until, clocks, lanes, warps, per_block, begin):
    """The warps with a lane in `lanes` make visible what they know of their block; returns where space ran out, or -1.

    What they know of others, and those have not node visible, a fence of their own comes too late for.
    """
    for row in range(begin, warps.shape[0]):
        if used[0] + spare > nodes.shape[0]:
            return row
        if lanes[warps[row, START] : warps[row, STOP]].any():
            warp = warps[row, BLOCK] * per_block + warps[row, THREAD] // WARP_LANES
            _advance(nodes, used, levels, times, passed_on, clocks, warp, NO_LANES)
            first = np.int64(warps[row, BLOCK] * per_block)
            known = np.int64(clocks[KNOWN, warp])
            own = _restrict(nodes, used, levels, known, first, first + per_block - 1)
            clocks[PUBLISHED, warp] = _join(nodes, used, levels, np.int64(clocks[PUBLISHED, warp]), own)
    return -1


@njit(cache=True)
def _pass_to_cores(nodes, used, levels, spare, times, passed_on, lanes_known_until, clocks, warps, cores, begin):
    """Each of `cores` learns all that a warp knows; returns as `_exchange`."""
    for i in range(begin, len(warps)):
        if used[0] + spare > nodes.shape[0]:
            return i
        _advance(nodes, used, levels, times, passed_on, clocks, warps[i], ALL_LANES)
        for which in range(2):
            mine, there = np.int64(clocks[which, warps[i]]), np.int64(clocks[which, cores[i]])
            clocks[which, cores[i]] = _join(nodes, used, levels, there, mine)
    return -1


@njit(cache=True)
def _learn_times(nodes, used, levels, spare, times, passed_on, lanes_known_until, clocks, warps, others, ahead, begin):
    """Each warp learns how far another is, and nothing of what that knows; returns as `_exchange`."""
    for i in range(begin, len(warps)):
        if used[0] + spare > nodes.shape[0]:
            return i
        tree = np.int64(clocks[KNOWN, warps[i]])
        if time_of(nodes, levels, tree, others[i]) < ahead[i]:
            clocks[KNOWN, warps[i]] = _with_time(nodes, used, levels, tree, others[i], ahead[i])
    return -1


@njit(cache=True)
def _note_collective(times, passed_on, active, warps, per_block):
    for row in range(warps.shape[0]):
        start, lanes = warps[row, START], np.uint32(0)
        for lane in range(start, warps[row, STOP]):
            lanes |= np.uint32(active[lane]) << np.uint32(lane - start)
        if lanes:
            warp = warps[row, BLOCK] * per_block + warps[row, THREAD] // WARP_LANES
            passed_on[warp, times[warp] % MOMENTS] = lanes
            times[warp] += 1


@njit(cache=True)
def _move(old, new, used, level, tree, places):
    """Copies a tree to `new`, unless it is there; returns its place."""
    if tree == EMPTY or places[tree]:
        return np.int64(places[tree])
    node = used[0]
    used[0] += 1
    places[tree] = node
    for child in range(WIDTH):
        value = np.int64(old[tree, child])
        new[node, child] = value if level == 0 else _move(old, new, used, level - 1, value, places)
    return node


@njit(cache=True)
def _move_all(old, new, used, levels, trees, places):
    for i in range(trees.size):
        trees[i] = _move(old, new, used, levels, np.int64(trees[i]), places)


class Clocks:
    """The clocks of a launch's warps, and those that atomics left at elements.

    Others who work beside the warps of a block have clocks too, behind those: the tensor cores of each warpgroup, whose
    time is how many products are done; and the launch before, whose time is 1 when it has ended.

    Where even MAX_NODES do not hold them, every warp counts as knowing all others: no race is reported that might
    not be one.
    """

    def __init__(self, blocks: int, warps_per_block: int, others_per_block: int = 0):
        self.warps_per_block = warps_per_block
        self.per_block = warps_per_block + others_per_block
        warps = blocks * self.per_block
        self.levels = 0
        while WIDTH ** (self.levels + 1) < warps:
            self.levels += 1
        tree = sum(-(-warps // WIDTH**level) for level in range(1, self.levels + 2))
        self.spare = 2 * (tree + self.levels + 1)  # what one step may take
        self.used = np.ones(1, np.int64)
        self.nodes = np.zeros((max(4096, 4 * self.spare) if warps else 1, WIDTH), np.int32)
        self.times = np.zeros(warps, np.int32)
        self.passed_on = np.full(
            (warps, MOMENTS), ALL_LANES
        )  # the lanes that passed_on on what they did, at a time: a ring
        self.lanes_known_until = np.zeros(
            warps, np.int32
        )  # until when a warp's lanes know what others of its lanes did
        self.clocks = np.zeros((2, warps), np.int32)
        self.left: dict[int, tuple] = {}
        if len(self.nodes) > MAX_NODES:
            self._give_up()

    def exchange(self, w, array, flat, lanes, changed, learns):
        """An atomic that changes an element passes on what its warp knows; one whose result is used learns what the
        warps before it passed_on on there. What one who changes nothing knows, nobody can learn of.
        """
        if not self.times.size:
            return
        _, left = self.left.setdefault(id(array.data), (array.data, np.zeros((2, array.data.size), np.int32)))
        self._run(_exchange, left, flat, lanes, changed, learns, w.warps, self.per_block)

    def barrier_clocks(self, owner, count) -> np.ndarray:
        """Clocks of so many barriers, for `pass_on` and `learn`; `forget_barriers` of the same owner ends them."""
        clocks = np.zeros((2, count), np.int32)
        self.left[id(clocks)] = owner, clocks
        return clocks

    def pass_on(self, w, clocks, flat, lanes):
        """What the warps of these lanes know is known at the barriers `flat`."""
        if self.times.size:
            self._run(_exchange, clocks, flat, lanes, w.all_lanes, False, w.warps, self.per_block)

    def learn(self, w, clocks, flat, lanes):
        """The warps of these lanes learn what is known at the barriers `flat`."""
        if self.times.size:
            self._run(_exchange, clocks, flat, lanes, ~w.all_lanes, True, w.warps, self.per_block)

    def heard_from_other_warp(self, block, thread, other_block, other_thread) -> bool:
        """Has this thread's warp heard, by an atomic, from a warp of the other's block that is not the other's?"""
        if not self.times.size:
            return False
        known = np.int64(self.clocks[KNOWN, block * self.per_block + thread // WARP_LANES])
        others = set(range(self.warps_per_block)) - {other_thread // WARP_LANES}
        first = other_block * self.per_block
        return any(time_of(self.nodes, self.levels, known, first + warp) > 0 for warp in others)

    def block_knows(self, block, other_block, warp, time) -> bool:
        """Has some warp of the block learned what a warp of the other block did before this time?"""
        known = self.clocks[KNOWN, self.of(block, np.arange(self.warps_per_block))]
        other = self.of(other_block, warp)
        return any(time_of(self.nodes, self.levels, np.int64(tree), other) >= time for tree in known)

    def knows_block_began(self, block, warp, other_block) -> bool:
        """Has a warp lanes_known_until anything of another block, so that this has begun?"""
        known, first = np.int64(self.clocks[KNOWN, self.of(block, warp)]), self.of(other_block, 0)
        others = range(first, first + self.warps_per_block)
        return any(time_of(self.nodes, self.levels, known, other) > 0 for other in others)

    def of(self, block, number):
        """The clock of a warp of a block, by the numbers of both; behind its warps stand the others with clocks."""
        return block * self.per_block + number

    def tell(self, warps, cores):
        """These tensor cores begin what a warp each has asked for: they know what it knows."""
        if self.times.size:
            self._run(_pass_to_cores, warps, cores)

    def note_done(self, cores, done):
        """These tensor cores are done with so many products."""
        if self.times.size:
            self.times[cores] = done

    def hear(self, warps, others, times):
        """These warps learn how far some that work beside them are."""
        if self.times.size:
            self._run(_learn_times, warps, others, times)

    def know_times(self, warps, others, time) -> np.ndarray:
        """Whether each of these warps has learned that another is as far as this time, or a time each."""
        trees = self.clocks[KNOWN, warps].astype(np.int64)
        return np.array([time_of(self.nodes, self.levels, *pair) for pair in zip(trees, others)]) >= time

    def forget(self, array):
        """The array is gone, and what atomics left at its elements."""
        self.left.pop(id(array.data), None)

    def forget_barriers(self, owner):
        """The barriers of this owner are gone."""
        self.left = {key: (of, clocks) for key, (of, clocks) in self.left.items() if of is not owner}

    def share(self, blocks):
        """The warps of each of these blocks learn, at a barrier, all that any of them knows."""
        self.meet(self.of(np.asarray(blocks)[:, None], np.arange(self.warps_per_block)))

    def meet(self, groups):
        """The warps of each row of `groups`, by their clocks, learn all that any of them knows."""
        if self.times.size:
            self._run(_share, groups)

    def note_collective(self, w, active):
        """The lanes of `active` meet in a collective: what they did before, any of their warp passes on.

        Only a `syncwarp` orders what they do for one another. But all have come this far, and an arrival behind that is
        a later instruction of the warp: so a thread may give back a tile that `mma` has taken from all lanes.
        """
        if self.times.size:
            _note_collective(self.times, self.passed_on, active, w.warps, self.per_block)

    def publish(self, w, mask):
        """`threadfence`: what a warp knows, it may pass on to other blocks."""
        if self.times.size:
            self._run(_publish, w.active(mask), w.warps, self.per_block)

    def _run(self, step, *arguments):
        begin = 0
        while begin >= 0 and self.nodes.shape[0] > 1:
            state = (
                self.nodes,
                self.used,
                self.levels,
                self.spare,
                self.times,
                self.passed_on,
                self.lanes_known_until,
                self.clocks,
            )
            begin = step(*state, *arguments, begin)
            if begin >= 0:
                self._collect()

    def _collect(self):
        """Keeps the trees that are in use, in twice the space if they fill half of it."""
        old, self.used = self.nodes, np.ones(1, np.int64)
        new, places = np.zeros_like(old), np.zeros(len(old), np.int32)
        for trees in (self.clocks, *(left for _, left in self.left.values())):
            _move_all(old, new, self.used, self.levels, trees.reshape(-1), places)
        if self.used[0] + self.spare > len(new) // 2:
            if 2 * len(new) > MAX_NODES:
                self._give_up()
                return
            new = np.concatenate([new, np.zeros_like(new)])
        self.nodes = new

    def _give_up(self):
        self.levels = 0
        self.nodes = np.full((1, WIDTH), np.iinfo(np.int32).max, np.int32)
        self.lanes_known_until[:] = np.iinfo(np.int32).max
        self.clocks[:] = EMPTY

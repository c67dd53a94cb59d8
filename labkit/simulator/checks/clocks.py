"""Vector clocks of the warps: what each has learned of the others through atomics, in bounded memory.

A clock holds a time for each warp of the launch: what that warp did before this time happened before the clock's own
warp continues. Two lanes of one warp learn of each other by an atomic or a barrier of their own, as warps do
(`Clocks.lanes_synced_until`). A lane passes on its own accesses, and those that other lanes made before a collective
with it. `Clocks.passed_on` keeps which lanes each of a warp's latest times belongs to.

Most blocks of a large grid learn nearly the same. So a clock is a tree that shares branches with the clocks that agree
there. Trees are never changed; a change copies one path (Driscoll and others, Making data structures persistent,
1989). Unused nodes are collected when space runs out.
"""

import numpy as np

from labkit.simulator.seam import inner_njit, njit
from labkit.simulator.warps import BLOCK, START, STOP, THREAD
from labkit.trace import WARP_LANES

WIDTH = 32  # children per node, times per leaf
MAX_NODES = 2**19  # 64 MB
EMPTY = 0  # the tree that knows of no warp
MOMENTS = 64  # times per warp in `passed_on`; a warp that knows a later time counts as knowing all earlier ones
ALL_LANES = np.uint32(2**WARP_LANES - 1)
NO_LANES = np.uint32(0)

# Each warp, and each element with atomics, has three clocks: all that it knows; the part that a `threadfence` has made
# visible to other blocks; and what others have so published, and the warp has learned as it took a lock: this it may
# rely on once it has made a `threadfence` itself.
KNOWN, PUBLISHED, TAKEN = range(3)

# Where only some lanes of a warp have waited, the others are behind until they meet those: their two clocks are as of
# before. `Clocks.behind` has, for each warp, the bits of these lanes, and until when the lanes that have waited know
# what others of the warp did.
KNOWN_BEFORE, PUBLISHED_BEFORE = range(3, 5)
LANES, SYNCED = range(2)

ENDED = 1  # the time of the previous launch, when it has ended


@njit(cache=True)
def time_of(nodes, levels, tree, warp):
    """Return the time that a clock holds for a warp."""
    for level in range(levels, 0, -1):
        tree = nodes[tree, warp // WIDTH**level % WIDTH]
    return nodes[tree, warp % WIDTH]


@inner_njit
def _with_time(nodes, used, level, tree, warp, time):
    """Return a clock that differs from `tree` in the time of one warp."""
    node = used[0]
    used[0] += 1
    nodes[node] = nodes[tree]
    if level == 0:
        nodes[node, warp % WIDTH] = time
        return node
    child = warp // WIDTH**level % WIDTH
    nodes[node, child] = _with_time(nodes, used, level - 1, np.int64(nodes[tree, child]), warp, time)
    return node


@inner_njit
def _join(nodes, used, level, first, second):
    """Return the clock that knows what either clock knows; one of the two if it knows all."""
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


@inner_njit
def _restrict(nodes, used, level, tree, first, last):
    """Return a clock that knows only of the warps from `first` to `last`."""
    if tree == EMPTY:
        return EMPTY
    node = used[0]
    used[0] += 1
    nodes[node] = 0
    step = WIDTH**level
    for child in range(max(0, first // step), min(WIDTH - 1, last // step) + 1):
        value = np.int64(nodes[tree, child])
        begin = child * step
        if level:
            value = _restrict(nodes, used, level - 1, value, first - begin, last - begin)
        nodes[node, child] = value
    return node


@njit(cache=True)
def was_passed_on(times, passed_on, warp, lane, time, known):
    """Return whether a lane passed on what it did at `time`, or met others of its warp, before time `known`.

    `known` is the time until which another warp knows this one. It does not matter which lanes it met.
    """
    if known > times[warp] or time < times[warp] - MOMENTS:  # clocks given up; a time that is no longer kept
        return True
    while time < known and not passed_on[warp, time % MOMENTS] >> np.uint32(lane) & np.uint32(1):
        time += 1
    return time < known


@njit(cache=True)
def _advance(nodes, used, levels, times, passed_on, clocks, warp, lanes):
    """Start a warp's next time; in the one that ends, these lanes pass on what they did."""
    passed_on[warp, times[warp] % MOMENTS] = lanes
    times[warp] += 1
    clocks[KNOWN, warp] = _with_time(nodes, used, levels, np.int64(clocks[KNOWN, warp]), warp, times[warp])


@inner_njit
def _changers(flat, lanes, changed, lane, start, stop):
    """Return a bit for each lane from `lane` on that accesses the element of `lane`; none if no lane changes it."""
    bits, is_changed = np.uint32(0), False
    for other in range(lane, stop):
        if lanes[other] and flat[other] == flat[lane]:
            bits |= np.uint32(1) << np.uint32(other - start)
            is_changed |= changed[other]
    return bits if is_changed else np.uint32(0)


@inner_njit
def _fall_behind(clocks, behind, warp, lanes):
    """Let these lanes of a warp keep what they know, while the others learn more."""
    if behind[LANES, warp]:
        behind[LANES, warp] &= lanes
    else:
        clocks[KNOWN_BEFORE, warp], clocks[PUBLISHED_BEFORE, warp] = clocks[KNOWN, warp], clocks[PUBLISHED, warp]
        behind[LANES, warp] = lanes


@njit(cache=True)
def _exchange(
    nodes, used, levels, spare_nodes, times, passed_on, lanes_synced_until, clocks, behind, element_clocks, flat, lanes,
    changed, result_used, may_take, left_out, warps, per_block, begin,
):  # fmt: skip
    """Run the warps' atomics from lane `begin` on; return the lane at which space ran out, or -1.

    `may_take`: an atomic that changes its element takes a lock. `left_out` has the bits of each warp's lanes that learn
    nothing of it.
    """
    for row in range(warps.shape[0]):
        start, stop = warps[row, START], warps[row, STOP]
        warp = warps[row, BLOCK] * per_block + warps[row, THREAD] // WARP_LANES
        element = -1
        for lane in range(max(start, begin), stop):
            if not lanes[lane] or flat[lane] == element:
                continue
            if used[0] + spare_nodes > nodes.shape[0]:
                return lane
            element = flat[lane]
            changers = _changers(flat, lanes, changed, lane, start, stop)
            takes = may_take and changers != 0
            if result_used:
                synced = time_of(nodes, levels, np.int64(element_clocks[KNOWN, element]), warp)
                if left_out[row]:
                    _fall_behind(clocks, behind, warp, left_out[row])
                    behind[SYNCED, warp] = max(behind[SYNCED, warp], synced)
                else:
                    lanes_synced_until[warp] = max(lanes_synced_until[warp], synced)
                    if behind[LANES, warp]:
                        for which in range(2):
                            own_clock = np.int64(clocks[KNOWN_BEFORE + which, warp])
                            element_clock = np.int64(element_clocks[which, element])
                            clocks[KNOWN_BEFORE + which, warp] = _join(nodes, used, levels, own_clock, element_clock)
                for which in range(3):
                    learned = TAKEN if takes and which == PUBLISHED else which
                    own_clock, element_clock = np.int64(clocks[learned, warp]), np.int64(element_clocks[which, element])
                    clocks[learned, warp] = _join(nodes, used, levels, own_clock, element_clock)
            _advance(nodes, used, levels, times, passed_on, clocks, warp, changers)
            if changers:
                for which in range(3):
                    own_clock, element_clock = np.int64(clocks[which, warp]), np.int64(element_clocks[which, element])
                    knows_all = result_used and not takes
                    element_clocks[which, element] = (
                        own_clock if knows_all else _join(nodes, used, levels, own_clock, element_clock)
                    )
    return -1


@njit(cache=True)
def _share(nodes, used, levels, spare_nodes, times, passed_on, lanes_synced_until, clocks, behind, groups, begin):
    """Let the warps of each group learn all that any of them knows, in the first one's clock; return as `_exchange`."""
    count = groups.shape[1]
    steps = 4 * count  # each warp advances, then adds what it knows, what it has published, and what it has taken
    for step in range(begin, len(groups) * steps):
        if used[0] + spare_nodes > nodes.shape[0]:
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
                lanes_synced_until[member] = times[member]
                behind[LANES, member] = 0
    return -1


@njit(cache=True)
def _publish(
    nodes, used, levels, spare_nodes, times, passed_on, lanes_synced_until, clocks, behind, lanes, warps, per_block,
    begin,
):  # fmt: skip
    """Let the warps with a lane in `lanes` publish what they know of their block; return as `_exchange`.

    What they know of other blocks, which these have not published, needs a fence of those blocks. What these have, and
    was learned with a lock, counts from now on.
    """
    for row in range(begin, warps.shape[0]):
        if used[0] + spare_nodes > nodes.shape[0]:
            return row
        if lanes[warps[row, START] : warps[row, STOP]].any():
            warp = warps[row, BLOCK] * per_block + warps[row, THREAD] // WARP_LANES
            _advance(nodes, used, levels, times, passed_on, clocks, warp, NO_LANES)
            first = np.int64(warps[row, BLOCK] * per_block)
            known = np.int64(clocks[KNOWN, warp])
            own_block = _restrict(nodes, used, levels, known, first, first + per_block - 1)
            for which in (PUBLISHED, PUBLISHED_BEFORE) if behind[LANES, warp] else (PUBLISHED, PUBLISHED):
                for other in (own_block, np.int64(clocks[TAKEN, warp])):
                    clocks[which, warp] = _join(nodes, used, levels, np.int64(clocks[which, warp]), other)
            clocks[TAKEN, warp] = EMPTY
    return -1


@njit(cache=True)
def _pass_to_cores(
    nodes, used, levels, spare_nodes, times, passed_on, lanes_synced_until, clocks, behind, warps, cores, begin
):
    """Let each of `cores` learn all that a warp knows; return as `_exchange`."""
    for i in range(begin, len(warps)):
        if used[0] + spare_nodes > nodes.shape[0]:
            return i
        _advance(nodes, used, levels, times, passed_on, clocks, warps[i], ALL_LANES)
        for which in range(3):
            own_clock, core_clock = np.int64(clocks[which, warps[i]]), np.int64(clocks[which, cores[i]])
            clocks[which, cores[i]] = _join(nodes, used, levels, core_clock, own_clock)
    return -1


@njit(cache=True)
def _learn_times(
    nodes, used, levels, spare_nodes, times, passed_on, lanes_synced_until, clocks, behind, warps, others, ahead, begin
):
    """Let each warp learn how far another is, and nothing of what that one knows; return as `_exchange`."""
    for i in range(begin, len(warps)):
        if used[0] + spare_nodes > nodes.shape[0]:
            return i
        for which in (KNOWN, KNOWN_BEFORE):
            tree = np.int64(clocks[which, warps[i]])
            if time_of(nodes, levels, tree, others[i]) < ahead[i]:
                clocks[which, warps[i]] = _with_time(nodes, used, levels, tree, others[i], ahead[i])
    return -1


@njit(cache=True)
def _note_collective(times, passed_on, active, warps, per_block):
    """Advance the warps of a collective; all of its lanes pass on what they did."""
    for row in range(warps.shape[0]):
        start, lanes = warps[row, START], np.uint32(0)
        for lane in range(start, warps[row, STOP]):
            lanes |= np.uint32(active[lane]) << np.uint32(lane - start)
        if lanes:
            warp = warps[row, BLOCK] * per_block + warps[row, THREAD] // WARP_LANES
            passed_on[warp, times[warp] % MOMENTS] = lanes
            times[warp] += 1


@njit(cache=True)
def _move(old, new, used, level, tree, numbers):
    """Copy a tree to `new`, unless it is there; return its number."""
    if tree == EMPTY or numbers[tree]:
        return np.int64(numbers[tree])
    node = used[0]
    used[0] += 1
    numbers[tree] = node
    for child in range(WIDTH):
        value = np.int64(old[tree, child])
        new[node, child] = value if level == 0 else _move(old, new, used, level - 1, value, numbers)
    return node


@njit(cache=True)
def _move_all(old, new, used, levels, trees, numbers):
    """Copy trees to `new`, in place of their old numbers."""
    for i in range(trees.size):
        trees[i] = _move(old, new, used, levels, np.int64(trees[i]), numbers)


class Clocks:
    """The clocks of a launch's warps, and those that atomics left at elements.

    Units that work with the warps of a block have clocks too, after the warps': the tensor cores of each warpgroup,
    whose time is the number of finished products, and the previous launch, whose time is ENDED when it has.

    Where even MAX_NODES do not suffice, every warp counts as knowing all others, so that no false race is reported.
    """

    def __init__(self, blocks: int, warps_per_block: int, others_per_block: int = 0):
        self.warps_per_block = warps_per_block
        self.per_block = warps_per_block + others_per_block
        warps = blocks * self.per_block
        self.levels = 0
        while WIDTH ** (self.levels + 1) < warps:
            self.levels += 1
        nodes_per_tree = sum(-(-warps // WIDTH**level) for level in range(1, self.levels + 2))
        self.spare_nodes = 8 * (nodes_per_tree + self.levels + 1)  # nodes that one step may use
        self.used = np.ones(1, np.int64)  # nodes in use, as an array that compiled steps change
        self.nodes = np.zeros((max(4096, self.spare_nodes) if warps else 1, WIDTH), np.int32)
        self.times = np.zeros(warps, np.int32)
        self.passed_on = np.full((warps, MOMENTS), ALL_LANES)  # a ring: the lanes that passed on what they did, by time
        self.lanes_synced_until = np.zeros(warps, np.int32)  # until when a warp's lanes know what its other lanes did
        self.clocks = np.zeros((5, warps), np.int32)
        self.behind = np.zeros((2, warps), np.int64)
        self.element_clocks: dict[int, tuple] = {}  # by the memory's id: its owner, and the clocks of its elements
        if len(self.nodes) > MAX_NODES:
            self._give_up()

    @property
    def are_kept(self) -> bool:
        """Whether this launch keeps clocks at all."""
        return self.times.size > 0

    def exchange(self, w, array, flat, lanes, changed, result_used, may_take=False):
        """Note an atomic: pass on what its warp knows if it changes an element, and learn if its result is used.

        `may_take`: where it changes the element, it takes a lock, and what it learns counts after a `threadfence`.
        """
        if not self.are_kept:
            return
        _, element_clocks = self.element_clocks.setdefault(
            id(array.data), (array.data, np.zeros((3, array.data.size), np.int32))
        )
        nobody = np.zeros(len(w.warps), np.int64)
        self._run(
            _exchange, element_clocks, flat, lanes, changed, result_used, may_take, nobody, w.warps, self.per_block
        )

    def barrier_clocks(self, owner, count) -> np.ndarray:
        """Return `count` clocks of barriers, for `pass_on` and `learn`, until `forget_barriers(owner)`."""
        clocks = np.zeros((3, count), np.int32)
        self.element_clocks[id(clocks)] = owner, clocks
        return clocks

    def pass_on(self, w, clocks, flat, lanes):
        """Pass what the warps of these lanes know to the barriers `flat`."""
        if self.are_kept:
            nobody = np.zeros(len(w.warps), np.int64)
            self._run(_exchange, clocks, flat, lanes, w.all_lanes, False, False, nobody, w.warps, self.per_block)

    def learn(self, w, clocks, flat, lanes):
        """Let these lanes learn what is known at the barriers `flat`; the others of their warps stay behind."""
        if self.are_kept:
            others = ~lanes if w.exited is False else ~(lanes | w.active(w.exited))
            bits = np.where(others, w.lane_bit, np.uint32(0))
            left_out = np.bitwise_or.reduceat(bits, w.warps[:, START]).astype(np.int64)
            self._run(_exchange, clocks, flat, lanes, ~w.all_lanes, True, False, left_out, w.warps, self.per_block)

    def heard_from_other_warp(self, block, thread, other_block, other_thread) -> bool:
        """Return whether the thread's warp heard, by an atomic, from the other block, but not from the other's warp."""
        if not self.are_kept:
            return False
        known = np.int64(self.clocks[KNOWN, block * self.per_block + thread // WARP_LANES])
        others = set(range(self.warps_per_block)) - {other_thread // WARP_LANES}
        first = other_block * self.per_block
        return any(time_of(self.nodes, self.levels, known, first + warp) > 0 for warp in others)

    def block_knows(self, block, other_block, warp, time) -> bool:
        """Return whether some warp of the block knows what a warp of another block did before a time."""
        known = self.clocks[KNOWN, self.of(block, np.arange(self.warps_per_block))]
        other = self.of(other_block, warp)
        return any(time_of(self.nodes, self.levels, np.int64(tree), other) >= time for tree in known)

    def knows_block_began(self, block, warp, other_block) -> bool:
        """Return whether a warp has heard anything of another block, so that this has begun."""
        known, first = np.int64(self.clocks[KNOWN, self.of(block, warp)]), self.of(other_block, 0)
        others = range(first, first + self.warps_per_block)
        return any(time_of(self.nodes, self.levels, known, other) > 0 for other in others)

    def of(self, block, number):
        """Return the number of the clock of a block's warp, or of a unit after its warps, such as the tensor cores."""
        return block * self.per_block + number

    def of_previous_launch(self, block):
        """Return the number of a block's clock of the previous launch, the last one, if the kernel begins early."""
        return self.of(block, self.per_block - 1)

    def inform_tensor_cores(self, warps, cores):
        """Pass what each warp knows to the tensor cores that begin its products."""
        if self.are_kept:
            self._run(_pass_to_cores, warps, cores)

    def set_finished_products(self, cores, done):
        """Set how many products these tensor cores have finished."""
        if self.are_kept:
            self.times[cores] = done

    def learn_times(self, warps, others, times):
        """Let these warps learn how far other units are."""
        if self.are_kept:
            self._run(_learn_times, warps, others, times)

    def have_heard_of(self, warps, others, time) -> np.ndarray:
        """Return for each of these warps whether it knows that another is as far as `time`."""
        trees = self.clocks[KNOWN, warps].astype(np.int64)
        return np.array([time_of(self.nodes, self.levels, *pair) for pair in zip(trees, others)]) >= time

    def forget(self, array):
        """Drop the clocks of an array's elements."""
        self.element_clocks.pop(id(array.data), None)

    def forget_barriers(self, owner):
        """Drop the clocks of this owner's barriers."""
        self.element_clocks = {k: entry for k, entry in self.element_clocks.items() if entry[0] is not owner}

    def join_blocks(self, blocks):
        """Let the warps of each of these blocks learn, at a barrier, all that any of them knows."""
        self.join_clocks(self.of(np.asarray(blocks)[:, None], np.arange(self.warps_per_block)))

    def join_clocks(self, groups):
        """Let the warps of each row of `groups` (clock numbers) learn all that any of them knows."""
        if self.are_kept:
            self._run(_share, groups)

    def note_collective(self, w, active):
        """Note that the lanes of `active` meet in a collective: any of the warp passes on what they did before.

        Only a `syncwarp` orders their accesses for one another. But all have come this far, and an arrival after it is
        a later instruction of the warp: so a thread may release a tile that `mma` has read in all lanes.
        """
        if self.are_kept:
            _note_collective(self.times, self.passed_on, active, w.warps, self.per_block)

    def note_warp_barrier(self, w, groups, active):
        """Note a `syncwarp` of groups of lanes: lanes that are behind, and meet others, know what those know."""
        if not self.are_kept:
            return
        warps = self.of(w.warps[:, BLOCK], w.warps[:, THREAD] // WARP_LANES)
        for row in np.flatnonzero(self.behind[LANES, warps]):
            warp, lanes = warps[row], slice(*w.warps[row, [START, STOP]])
            for group in np.unique(groups[lanes][active[lanes]]).tolist():
                if group & ~self.behind[LANES, warp]:
                    self.behind[LANES, warp] &= ~group
            if not self.behind[LANES, warp]:
                self.lanes_synced_until[warp] = max(self.lanes_synced_until[warp], self.behind[SYNCED, warp])

    def publish(self, w, mask):
        """Note a `threadfence`: what a warp knows, it may pass on to other blocks."""
        if self.are_kept:
            self._run(_publish, w.active(mask), w.warps, self.per_block)

    def _run(self, step, *arguments):
        """Run a compiled step, collecting nodes as often as space runs out."""
        begin = 0
        while begin >= 0 and self.nodes.shape[0] > 1:
            nodes = self.nodes, self.used, self.levels, self.spare_nodes
            begin = step(*nodes, *self._state(), *arguments, begin)
            if begin >= 0:
                self._collect()

    def _state(self):
        return self.times, self.passed_on, self.lanes_synced_until, self.clocks, self.behind

    def _collect(self):
        """Keep only the trees in use, in twice the space if they fill half of it."""
        old, self.used = self.nodes, np.ones(1, np.int64)
        new, numbers = np.zeros_like(old), np.zeros(len(old), np.int32)
        for trees in (self.clocks, *(clocks for _, clocks in self.element_clocks.values())):
            _move_all(old, new, self.used, self.levels, trees.reshape(-1), numbers)
        if self.used[0] + self.spare_nodes > len(new) // 2:
            if 2 * len(new) > MAX_NODES:
                self._give_up()
                return
            new = np.concatenate([new, np.zeros_like(new)])
        self.nodes = new

    def _give_up(self):
        """Let every warp count as knowing all others."""
        self.levels = 0
        self.nodes = np.full((1, WIDTH), np.iinfo(np.int32).max, np.int32)
        self.lanes_synced_until[:] = np.iinfo(np.int32).max
        self.clocks[:] = EMPTY

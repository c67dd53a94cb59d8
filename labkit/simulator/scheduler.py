"""Warp sets, barriers and spins: which warps run together, which wait, and deadlocks.

A chunk (some blocks, run in lockstep) starts as one warp set that holds all its warps. Where warps would diverge around
a wait, `guard` raises `Fork`, and the launch restarts with those warps in separate sets. A set that waits yields; any
set that can continue runs. When none can, that is a deadlock, or a barrier that some threads never reach.
"""

import math

import numpy as np

from labkit.layout import c_strides
from labkit.simulator import limits
from labkit.simulator.arrays import Array
from labkit.simulator.checks.in_flight import InFlight
from labkit.simulator.checks.shadow import SharedShadow
from labkit.simulator.disturbance import BARRIERS
from labkit.simulator.dynamic import DynamicMemory
from labkit.simulator.errors import KernelError
from labkit.simulator.parted import Part
from labkit.simulator.units import ShadowOfUnits, units_per_element
from labkit.simulator.warps import SLOT, START, WarpSet
from labkit.trace import WARP_LANES

# States of a thread; from WAITING on, it waits at a barrier of its block or of the grid.
RUNNING, RETURNED, ENDED, WAITING, AT_GRID = range(5)

# Rounds in which every live warp set only spins and no memory changes, before a deadlock is reported.
IDLE_ROUNDS = 200
# Of lanes that run on their own there can be thousands: fewer rounds, of this many turns in all.
MIN_IDLE_ROUNDS, IDLE_TURNS = 3, 20_000


class Fork(Exception):
    """Warps of one set must run as several; `classes` maps (block, warp) to a class."""

    def __init__(self, classes):
        self.classes = classes


class Deadlock(Exception):
    """No warp set can continue; the finding is in the log."""


class Chunk:
    """Some blocks of a launch, run together: their shared memory, barriers and warp sets."""

    def __init__(self, launch, blocks):
        self.launch = launch
        self.blocks = blocks
        self.trips = self.work = 0
        self.sets: list[_Set] = []
        self.barriers_passed = np.zeros(len(blocks), np.int64)  # by each block
        self.grid_epoch = 0  # `barriers_passed` of every block as of the last barrier of the whole grid
        self.kept = {}  # state that instructions keep of these blocks, by its kind
        self.end_checks = []  # checks to run when all warps have ended
        self.votes = np.zeros((2, len(blocks)), np.int32)  # at the next barrier: threads that vote yes, and no
        self.last_votes = self.votes.copy()
        if launch.dynamic_dtypes:
            self.dynamic = DynamicMemory(launch.dynamic_dtypes, launch.dynamic_bytes, launch, self.barriers_passed)
        self.shared = [self._shared(a, i) for i, a in enumerate(launch.program.allocations.values())]
        self.state = np.zeros((len(blocks), launch.threads_per_block), np.int8)  # of each thread: RUNNING, RETURNED ...
        self.wait_line = np.zeros((len(blocks), launch.threads_per_block), np.int64)
        self.sampled = [
            (slot, b) for slot, b in enumerate(blocks) if b in launch.recorded
        ]  # blocks in the trace's samples

    def _shared(self, allocation, number):
        if allocation.space != "shared":
            return None
        program, (shape, address) = self.launch.program, self.launch.shared_layout[number]
        if allocation.dynamic:
            array = self.dynamic.array(allocation, shape, address)
        else:
            elements = math.prod(shape)
            data = np.zeros(elements * len(self.blocks), allocation.dtype)
            array = self._array(allocation, data, shape, address, elements)
            units = units_per_element(data.dtype, program.pieces.get(allocation.name, ()))
            shadow = SharedShadow(data.size * units, self.launch, self.barriers_passed)
            array.shadow = shadow if units == 1 else ShadowOfUnits(shadow, units)
            array.in_flight = InFlight(data.size) if program.is_asynchronous else None
            array.states = program.shared_states(data.size)
        array.alignment = allocation.alignment
        return array

    def local(self, number, lanes):
        """Make a thread-local array for each lane of a warp set: the lanes of an element are adjacent."""
        allocation = list(self.launch.program.allocations.values())[number]
        data = np.zeros((int(np.prod(allocation.shape)), lanes), allocation.dtype)
        array = self._array(allocation, data, allocation.shape, 0, len(data))
        array.written = np.zeros(data.shape, np.bool_)
        array.states = self.launch.program.local_states(data.shape)
        return array

    def _array(self, allocation, data, shape, first_byte, elements):
        described = allocation.name, allocation.space, data, shape, c_strides(shape)
        return Array(*described, elements=elements, address=first_byte, line=allocation.line)

    # --- running ---

    def tick(self, line, work):
        """Count one iteration of a loop, or a call of a device function; stop a kernel that never ends."""
        self.trips += 1
        self.work += work
        if self.launch.pace.time_limit_s is not None:
            self.launch.end_checks_in_time()
        if self._is_too_much(0):
            raise KernelError(
                f"the kernel was stopped here after {self.trips:,} trips of its loops; make sure that each ends in "
                f"every thread, or {self.launch.describe_less_work()}",
                line,
            )

    def foresee(self, line, trips, work):
        """Stop a kernel before a loop of so many iterations, each of which is some work, that `tick` would stop it."""
        if self._is_too_much(work):
            raise KernelError(
                f"this loop would take {trips:,} iterations, more than are simulated; check its range, "
                f"or {self.launch.describe_less_work()}",
                line,
            )

    def _is_too_much(self, work):
        """Return whether so much more work goes beyond a limit."""
        work, patience = self.work + work, self.launch.patience
        return work > patience * limits.MAX_CHUNK_WORK or self.launch.work + work > patience * limits.MAX_WORK

    def run(self):
        """Run every warp of the chunk to its end, or until none can continue."""
        launch = self.launch
        warps = [(slot, warp) for slot in range(len(self.blocks)) for warp in range(launch.warps_per_block)]
        groups, parted = {}, []
        ranks = launch.order and launch.order.rank_warps(self.blocks, launch.warps_per_block, launch.blocks)
        for slot, warp in warps:
            if (self.blocks[slot], warp) in launch.parting.warps:
                parted.append((slot, warp))
                continue
            rank = 0 if ranks is None else ranks[slot, warp]
            groups.setdefault((rank, launch.label(self.blocks[slot], warp)), []).append((slot, warp))
        self.sets = [_Set(self, groups[key]) for key in sorted(groups, key=lambda key: key[0])]
        self.sets += [_Set(self, [(slot, warp)], lane) for slot, warp in parted for lane in range(self._lanes_of(warp))]
        self.alone = len(self.sets) == 1  # all warps run in lockstep
        if launch.program.blocking:
            for s in self.sets:
                s.start()
            self._schedule()
        else:
            for s in self.sets:
                launch.program.kernel(s.w, None, *launch.arguments)
        for check in self.end_checks:
            check()
        launch.clocks.forget_barriers(self)
        for array in filter(None, self.shared):
            launch.clocks.forget(array)
            array.shadow.forget()

    def _lanes_of(self, warp):
        """Return the number of lanes of a warp of a block."""
        return min(WARP_LANES, self.launch.threads_per_block - warp * WARP_LANES)

    def _schedule(self):
        """Run any set that can continue, until all have ended."""
        idle, idle_rounds = 0, IDLE_ROUNDS
        if self.launch.parting.warps:
            idle_rounds = min(IDLE_ROUNDS, max(MIN_IDLE_ROUNDS, IDLE_TURNS // len(self.sets)))
        while True:
            live = [s for s in self.sets if not s.done]
            if not live:
                return
            version = self.launch.version
            progressed = False
            for s in live:
                if s.barrier and not self._released(s):
                    continue
                was_spinning, was_at = s.spinning, s.at
                s.step()
                progressed |= not (s.spinning and was_spinning and all_equal(s.at, was_at))
                if s.done:
                    self._release()
            progressed |= version != self.launch.version
            idle = 0 if progressed else idle + 1
            if idle > idle_rounds or (idle and not any(s.spinning for s in live if not s.done)):
                self._stuck([s for s in live if not s.done])
                idle = 0

    def _stuck(self, live):
        """Report the deadlock, or the barrier that some threads never reach, and open that barrier."""
        log = self.launch.log
        spinning = [s for s in live if s.spinning]
        waiting = [s for s in live if s.barrier]
        if spinning:
            for s in live:
                s.fork_waiting()
            self._part_lanes(spinning)
            first = spinning[0]
            rest = [s for s in spinning[1:] if s.line != first.line or not s.w.is_lane]
            other = next(iter([*waiting, *rest]), None)
            waiter, line, reason = (other.waiting_thread(), other.line, other.reason()) if other else (None, None, "")
            cure = first.cure([other] if other else [])
            log.deadlock(first.line, first.waiting_thread(), waiter, line, first.reason(), reason, cure)
            raise Deadlock
        for slot in np.flatnonzero((self.state == WAITING).any(axis=1)):
            self._mismatch(slot)
            self._open(slot)
        if (self.state == AT_GRID).any():
            self._open_grid()

    def _part_lanes(self, spinning):
        """Raise Part if some lanes of a warp wait, and others could continue; warps that wait like it come along."""
        if self.launch.parting.is_possible and not self.launch.program.families:
            parted = [s for s in spinning if s.has_free_lanes()]
            if parted:
                warps = {(self.blocks[slot], warp) for s in spinning for slot, warp in s.w.members}
                raise Part(warps, parted[0].line)

    # --- barriers ---

    def barrier(self, w, mask, line) -> bool:
        """Make a `syncthreads` by the lanes of `mask`; return whether the set must wait for warps of other sets."""
        if self.launch.disturbance.leaves_out(BARRIERS):
            return False
        self.launch.events.note(w, mask, "block", line)
        if w.whole_blocks:
            self._meet(w, mask, line)
            return False
        return self._wait(w, mask, line, WAITING)

    def grid_barrier(self, w, mask, line) -> bool:
        """Make a grid barrier by the lanes of `mask`; return whether the set must wait for other sets."""
        return self._wait(w, mask, line, AT_GRID)

    def _wait(self, w, mask, line, state):
        """Let the lanes of `mask` wait (WAITING or AT_GRID); return whether the set must wait for other sets."""
        lanes = slice(None) if mask is None else mask
        slots, threads = w.slot[lanes], w.thread[lanes]
        self.state[slots, threads] = state
        self.wait_line[slots, threads] = line
        self.note_returned(w)
        owner = next(s for s in self.sets if s.w is w)
        owner.barrier = True
        owner.line = line
        owner.mask = mask
        self._release()
        if self._released(owner):
            owner.barrier = False
            return False
        return True

    def count_votes(self, w, mask, condition):
        """Count a condition in the lanes of `mask`, for the barrier that they come to next."""
        slots = w.slot if mask is None else w.slot[mask]
        yes = w.fill(condition) if mask is None else w.fill(condition)[mask]
        np.add.at(self.votes, (np.where(yes, 0, 1), slots), 1)

    def vote_result(self, w, call):
        """Return the last barrier's count of each lane's block: threads that voted yes, or whether all or any did."""
        yes, no = self.last_votes
        result = {"syncthreads_count": yes, "syncthreads_and": no == 0, "syncthreads_or": yes > 0}[call]
        return result.astype(np.int32)[w.slot]

    def _meet(self, w, mask, line):
        """Pass a barrier with a set of whole blocks, in which all threads that can come are here."""
        if mask is None:
            self._pass(w.slots, line)
            return
        active = w.active(mask)
        live = w.all_lanes if w.exited is False else ~w.active(w.exited)
        has_arrived = np.bincount(w.slot[active], minlength=len(self.blocks)) > 0
        missing = live & ~active & has_arrived[w.slot]
        if missing.any():
            lane = int(np.argmax(missing))
            slot = w.slot[lane]
            waiting = int(np.argmax(active & (w.slot == slot)))
            self.launch.log.barrier(
                line, (int(w.block[waiting]), int(w.thread[waiting])), (int(w.block[lane]), int(w.thread[lane]))
            )
        self._pass(np.flatnonzero(has_arrived), line)

    def _pass(self, slots, line):
        """Pass a barrier in the blocks of these slots: all of their warps know what came before it."""
        self.barriers_passed[slots] += 1
        self.last_votes[:, slots] = self.votes[:, slots]
        self.votes[:, slots] = 0
        self.launch.barriers += len(slots)
        if self.launch.program.keeps_clocks:
            self.launch.clocks.join_blocks([self.blocks[slot] for slot in slots])
        self._sample_barrier(line, slots)

    def note_returned(self, w):
        """Note the threads of a set that have returned from the kernel."""
        if w.exited is not False:
            lanes = slice(None) if w.exited is None else w.exited
            self.state[w.slot[lanes], w.thread[lanes]] = RETURNED

    def _release(self):
        """Open every barrier for which no thread is missing any more."""
        self._release_blocks()
        if (self.state == AT_GRID).any() and not np.isin(self.state, (RUNNING, WAITING)).any():
            self._open_grid()

    def _release_blocks(self):
        """Open the barrier of every block whose threads have all come, or have ended."""
        waiting = (self.state == WAITING).any(axis=1)
        for slot in np.flatnonzero(waiting & ~(self.state == RUNNING).any(axis=1)):
            if np.isin(self.state[slot], (ENDED, AT_GRID)).any():
                self._mismatch(slot)
            lines = np.unique(self.wait_line[slot][self.state[slot] == WAITING])
            if len(lines) > 1:
                self._mismatch(slot)
            self._open(slot)

    def _open_grid(self):
        arrived = self.state == AT_GRID
        empty = ~arrived.any(axis=1, keepdims=True)  # a block that has ended altogether cannot arrive
        missing = ~arrived & (self.state != RETURNED) | empty
        if missing.any():
            (slot, thread), (other_slot, other) = np.argwhere(arrived)[0], np.argwhere(missing)[0]
            self.launch.log.grid_barrier(
                int(self.wait_line[slot, thread]),
                (self.blocks[slot], int(thread)),
                (self.blocks[other_slot], int(other)),
            )
        self.state[arrived] = RUNNING
        self.barriers_passed[:] = self.barriers_passed.max() + 1
        self.grid_epoch = int(self.barriers_passed[0])
        self._sample_barrier(int(self.wait_line[arrived][0]), np.arange(len(self.blocks)))

    def _mismatch(self, slot):
        """Report the barrier of a block that some of its threads do not reach."""
        state, lines = self.state[slot], self.wait_line[slot]
        waiting = np.flatnonzero(state == WAITING)
        first = int(waiting[0])
        line = int(lines[first])
        block = self.blocks[slot]
        elsewhere = waiting[lines[waiting] != line]
        if elsewhere.size:
            other = int(elsewhere[0])
            self.launch.log.barrier(line, (block, first), (block, other), int(lines[other]))
            return
        missing = np.flatnonzero((state != WAITING) & (state != RETURNED))
        if missing.size:
            self.launch.log.barrier(line, (block, first), (block, int(missing[0])))

    def _open(self, slot):
        """Open the barrier of a block."""
        waiting = self.state[slot] == WAITING
        line = int(self.wait_line[slot][waiting][0])
        self.state[slot][waiting] = RUNNING
        self._pass([slot], line)

    def _released(self, s) -> bool:
        """Return whether a set's barrier has opened."""
        lanes = slice(None) if s.mask is None else s.mask
        return not (self.state[s.w.slot[lanes], s.w.thread[lanes]] >= WAITING).any()

    def has_ended(self, w):
        """Return which lanes of a warp set have ended."""
        return np.isin(self.state[w.slot, w.thread], (RETURNED, ENDED))

    # --- forks ---

    def guard(self, w, entering, outer, spins):
        """Raise Fork where some warps of the set enter a region that waits and others do not.

        `entering` is the region's mask, `outer` that of the code around it; `spins`: the region waits for one thread.
        """
        if entering is outer or entering is False or len(w.members) == 1:
            return
        starts = w.warps[:, START]
        inside = np.add.reduceat(w.active(entering).astype(np.int64), starts)
        in_outer = np.add.reduceat(w.active(outer).astype(np.int64), starts)
        kinds = np.where(inside == 0, 0, np.where(inside == in_outer, 1, 2))  # no lane of the warp enters, all, some
        concerned = in_outer > 0
        if spins or self.launch.cluster > 1:
            parted = len(set(kinds[concerned])) > 1
        else:
            slots = w.warps[:, SLOT]
            low = np.full(len(self.blocks), 3)
            high = np.full(len(self.blocks), -1)
            np.minimum.at(low, slots[concerned], kinds[concerned])
            np.maximum.at(high, slots[concerned], kinds[concerned])
            parted = bool((high > low).any() and (low < 3).any() and (high[low < 3] > low[low < 3]).any())
        if parted:
            raise Fork({(self.blocks[slot], warp): int(k) for (slot, warp), k in zip(w.members, kinds)})

    # --- samples ---

    def sample(self, w, site, array, mask, flat):
        """Keep the raw accesses of the recorded blocks."""
        if self.launch.sampled_lanes > limits.MAX_SAMPLED_LANES:
            return
        for slot, block, first, last in w.sampled:
            if mask is None and last - first == w.lanes:
                threads, offsets = w.thread, flat
            else:
                lanes = slice(first, last) if mask is None else first + np.flatnonzero(mask[first:last])
                threads, offsets = w.thread[lanes], flat[lanes]
            if len(threads):
                if array.space == "shared":
                    offsets = offsets - slot * array.elements
                self.launch.sampled.append((block, site, threads, array.c_order(offsets)))
                self.launch.sampled_lanes += WARP_LANES * -(-len(threads) // WARP_LANES)

    def _sample_barrier(self, line, slots):
        for slot, block in self.sampled:
            if slot in slots:
                self.launch.sampled.append((block, -1, line, None))


def all_equal(values, before) -> bool:
    """Return whether two sequences of numbers or arrays are equal."""
    return len(values) == len(before) and all(map(np.array_equal, values, before))


class _Set:
    """A warp set with its generator and what it waits for."""

    def __init__(self, chunk, members, lane=None):
        self.w = WarpSet(chunk, members, lane)
        self.chunk = chunk
        self.done = self.barrier = self.spinning = False
        self.line = 0
        self.mask = None
        self.at = ()  # the values that the condition of its spinning loop depends on
        self.generator = None

    def start(self):
        launch = self.chunk.launch
        self.generator = launch.program.kernel(self.w, self.w.own, *launch.arguments)

    def step(self):
        """Run to the next wait."""
        self.barrier = self.spinning = False
        w, events = self.w, self.chunk.launch.events
        events.resume()
        try:
            self.line, self.mask, self.at = next(self.generator)
        except StopIteration:
            self._end()
            return
        finally:
            events.pause(w)
        lanes = slice(None) if self.mask is None else self.mask
        self.barrier = bool((self.chunk.state[w.slot[lanes], w.thread[lanes]] >= WAITING).any())
        self.spinning = not self.barrier

    def _end(self):
        self.done = True
        self.chunk.launch.events.note(self.w, None, "end")
        w, state = self.w, self.chunk.state
        lanes = w.active(w.own)
        state[w.slot[lanes], w.thread[lanes]] = ENDED
        self.chunk.note_returned(w)

    def fork_waiting(self):
        """Raise Fork where some warps of the set wait, and others with them could continue."""
        lanes = self.w.active(self.mask)
        if self.barrier:
            lanes = lanes & (self.chunk.state[self.w.slot, self.w.thread] >= WAITING)
        waits = np.add.reduceat(lanes.astype(np.int64), self.w.warps[:, START]) > 0
        if not waits.all():
            blocks = self.chunk.blocks
            raise Fork({(blocks[slot], warp): int(k) for (slot, warp), k in zip(self.w.members, waits)})

    def has_free_lanes(self):
        """Return whether some of its lanes wait, and others could continue but for being of one warp with them."""
        w = self.w
        free = ~w.active(self.mask)
        if w.exited is not False:
            free &= ~w.active(w.exited)
        return not w.is_lane and bool(free.any())

    def waiting_thread(self):
        """Return (block, thread) of a lane that waits."""
        lane = int(np.argmax(self.w.active(self.mask)))
        return int(self.w.block[lane]), int(self.w.thread[lane])

    def reason(self):
        """Return what that lane waits for, where it is known."""
        return self.w.waits_for.reason(int(np.argmax(self.w.active(self.mask)))) if self.w.waits_for else ""

    def cure(self, others):
        """Return a sentence on how to end that lane's wait and those of other sets, where it is known."""
        if not hasattr(self.w.waits_for, "cure"):
            return ""
        waits = [(s.w.waits_for, int(np.argmax(s.w.active(s.mask)))) for s in (self, *others)]
        (wait, lane), *rest = waits
        return wait.cure(self.w.launch.source.tree, lane, rest)

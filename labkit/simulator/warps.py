"""A warp set: the same warps of some blocks, run in lockstep, and the position of each of their lanes."""

from functools import cached_property

import numpy as np

from labkit.simulator.errors import KernelError
from labkit.simulator.lanes import union
from labkit.simulator.limits import WORK_LANES
from labkit.trace import WARP_LANES

# Columns of `WarpSet.warps`, with a row per warp: its lanes, its block (linear), its first thread, its block's slot in
# the chunk, and its SM.
START, STOP, BLOCK, THREAD, SLOT, SM = range(6)

WARPGROUP_WARPS = 4  # that issue a tensor core product together
MAX_TERMS = 8  # cached offsets per warp set


class WarpSet:
    """The same warps of some blocks of a chunk, run in lockstep, and the position of each lane in the grid."""

    def __init__(self, chunk, members, lane=None):
        """`members`: (slot, warp in block) pairs, in slot order; `lane`: the only one of the warp that runs here."""
        self.chunk = chunk
        self.launch = launch = chunk.launch
        threads = launch.threads_per_block
        rows = []
        start = 0
        for slot, warp in members:
            first = warp * WARP_LANES
            lanes = min(WARP_LANES, threads - first)
            block = chunk.blocks[slot]
            rows.append((start, start + lanes, block, first, slot, launch.sm(block)))
            start += lanes
        self.members = members
        self.warps = np.array(rows, np.int64).reshape(-1, 6)
        self.lanes = start
        self.weight = 1 + start // WORK_LANES
        sizes = self.warps[:, STOP] - self.warps[:, START]
        within = np.arange(start) - np.repeat(self.warps[:, START], sizes)
        self.thread = np.repeat(self.warps[:, THREAD], sizes) + within
        self.slot = np.repeat(self.warps[:, SLOT], sizes)
        self.block = np.repeat(self.warps[:, BLOCK], sizes)
        self.sampled = [
            (slot, block, *np.searchsorted(self.slot, (slot, slot + 1)).tolist()) for slot, block in chunk.sampled
        ]
        self.all_lanes = np.ones(start, np.bool_)
        self.is_lane = lane is not None
        self.own = np.arange(start) == lane if self.is_lane else None  # the mask of the lanes that run here
        self.warp_epochs = np.zeros(len(rows), np.int64)
        self.lane_epochs = np.zeros((0, WARP_LANES, WARP_LANES), np.int32)
        self.warp_clock = np.zeros(len(rows), np.int64)
        self.exited = False
        self.work = 0.0, 0.0  # work of a lane on CUDA cores so far: operations, and exp2
        self.waits_for = None  # what an instruction waits for; its methods `reason` and, if it has it, `cure` tell
        self.kept = {}  # state that instructions and checks keep of these warps, by its kind
        self.expanded_lanes = {}  # `ExpandedLanes` for accesses of many elements by some lanes
        self._instances = {}  # `instance_base`, by array
        self._terms = {}  # `cached_term`; holds each index too, so that its id is not reused
        self._local = {}
        self.slots = np.unique(self.warps[:, SLOT])
        whole = len(members) == len({slot for slot, _ in members}) * launch.warps_per_block
        self.whole_blocks = whole and not self.is_lane
        self.threadIdx = _coordinates(self.thread, launch.block)
        self.blockIdx = _coordinates(self.block, launch.grid)
        self.blockDim = tuple(np.int32(n) for n in launch.block)
        self.gridDim = tuple(np.int32(n) for n in launch.grid)

    def allocated(self, number):
        """Return the array of the kernel's `number`-th allocation: the blocks' shared one, or this set's local one."""
        shared = self.chunk.shared[number]
        if shared is not None:
            return shared
        if number not in self._local:
            self._local[number] = self.chunk.local(number, self.lanes)
        return self._local[number]

    def local_arrays(self):
        """Return the threads' own arrays that have been made."""
        return self._local.values()

    def active(self, mask) -> np.ndarray:
        """Return the mask as a boolean array."""
        return self.all_lanes if mask is None else mask

    def count(self, mask) -> int:
        """Return the number of lanes in the mask."""
        return self.lanes if mask is None else int(np.count_nonzero(mask))

    def tally(self, mask):
        """Return the number of lanes in the mask; in a sample, the number in each block of the chunk."""
        if not self.launch.plan:
            return self.count(mask)
        return self._lanes_of_blocks if mask is None else np.bincount(self.slot[mask], minlength=len(self.chunk.blocks))

    @cached_property
    def _lanes_of_blocks(self):
        return np.bincount(self.slot, minlength=len(self.chunk.blocks))

    def instance_base(self, array):
        """Return the offset, in elements, of the copy of a shared array in each lane's block."""
        base = self._instances.get(array)
        if base is None:
            base = self.slot * array.elements
            self._instances[array] = base
        return base

    def cached_term(self, index, size, stride):
        """Return `index * stride`, if the same index was inside an axis of that size before; else None."""
        entry = self._terms.get((id(index), size, stride))
        return None if entry is None else entry[1]

    def cache_term(self, index, size, stride, term):
        """Keep `index * stride`: threadIdx and similar indices recur."""
        if len(self._terms) == MAX_TERMS:
            del self._terms[next(iter(self._terms))]
        self._terms[id(index), size, stride] = index, term

    def tick(self, line, work):
        """Count one iteration of a loop by this set's lanes."""
        self.chunk.tick(line, work * self.weight)

    def foresee(self, line, trips):
        """Stop a kernel before a loop of so many iterations that it would be stopped in the midst of them."""
        self.chunk.foresee(line, trips, trips * self.weight)

    def check_step(self, mask, step, line):
        """Raise KernelError for a `range` whose step is 0."""
        if np.any(self.active(mask) & (step == 0)):
            raise KernelError("the step of this `range` is 0 here, so it would never end; use another step", line)

    def check_entry(self, mask, index, count, name, line):
        """Raise KernelError where a tuple has no value of that number."""
        outside = self.active(mask) & ((index < -count) | (index >= count))
        if outside.any():
            number = self.fill(index)[outside][0]
            raise KernelError(
                f"`{name}` has {count} entries, and its index is {number} here; keep it below {count}", line
            )

    def mark_returned(self, mask):
        """Note that the lanes of `mask` returned from the kernel."""
        self.exited = union(self.exited, mask)

    def fill(self, value):
        """Return a value for every lane, as an array."""
        if isinstance(value, np.ndarray):
            return value
        return np.array([value]) if self.lanes == 1 else np.full(self.lanes, value)  # a fourth of the time

    # positions, as the kernel reads them

    def grid1(self):
        """Return `cuda.grid(1)`: the thread's position in the whole grid, along x."""
        return self._position(0)

    def _position(self, axis):
        position = self.blockIdx[axis].astype(np.int64) * int(self.blockDim[axis])
        return position + self.threadIdx[axis]

    def grid(self, axes):
        return tuple(self._position(axis) for axis in range(axes))

    def gridsize(self, axis):
        return np.int64(self.gridDim[axis]) * np.int64(self.blockDim[axis])

    @cached_property
    def lane(self):
        """Each lane's number within its warp."""
        return (self.thread % WARP_LANES).astype(np.int32)

    @cached_property
    def lane_bit(self):
        """Each lane's bit in a mask of its warp."""
        return np.uint32(1) << self.lane.astype(np.uint32)

    @cached_property
    def row(self):
        """The number of each lane's warp in this set."""
        return np.repeat(np.arange(len(self.warps)), self.warps[:, STOP] - self.warps[:, START])

    @cached_property
    def first_lane(self):
        """The first lane, in this set, of each lane's warp."""
        return self.warps[:, START].take(self.row)


def _coordinates(linear, shape):
    """Return (x, y, z) of linear indices; an axis of length 1 is a scalar."""
    x, y, _z = shape
    axes = (linear % x, linear // x % y, linear // (x * y))
    return tuple(np.int32(0) if n == 1 else axis.astype(np.int32) for n, axis in zip(shape, axes))

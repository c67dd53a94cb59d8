"""One launch: its arguments in simulated memory, its counters and caches, and the chunks that it runs."""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from labkit.simulator import limits
from labkit.simulator.arguments import flatten_arguments, tuple_entries
from labkit.simulator.arrays import Array, place_arguments
from labkit.simulator.caches import make_l1, resident_blocks
from labkit.simulator.checks.cells import SHADOW_BYTES
from labkit.simulator.checks.clocks import Clocks
from labkit.simulator.checks.findings import Log
from labkit.simulator.checks.overflow import Overflow
from labkit.simulator.checks.races import RACE_FIELDS
from labkit.simulator.counters import COUNTS
from labkit.simulator.disturbance import FENCES, Disturbance
from labkit.simulator.dynamic import unit_bytes
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.events import Events
from labkit.simulator.host import allocation_address, unwrap
from labkit.simulator.l2 import L2, NoL2
from labkit.simulator.pace import Pace
from labkit.simulator.parted import Parting
from labkit.simulator.reading.source import read_source
from labkit.simulator.sampling import Plan
from labkit.simulator.scheduler import Chunk, Deadlock
from labkit.simulator.tensor_maps import ALIGNMENT_BYTES, BoxedArray
from labkit.simulator.units import units_per_element
from labkit.simulator.warp_order import WarpOrder
from labkit.simulator.warps import WARPGROUP_WARPS
from labkit.trace import WARP_LANES, Raised, ThreadStep

CHUNK_LANES = 16_384  # lanes that run together, at most, unless one SM's blocks have more
SAMPLE = ", or a sample of its blocks, `labkit.simulate(..., sample=64)`"
STATIC_SHARED_BYTES = 48 * 1024  # limit of arrays whose size is known when a kernel is compiled


@dataclass(frozen=True)
class BlockCounts:
    """The counts of one block of a sample: by site, FLOPs by dtype, and barriers."""

    block: int
    sites: np.ndarray
    flops: dict[str, int]
    barriers: int


class Launch:
    """The state of one launch: arguments in simulated memory, counters, caches, findings."""

    def __init__(
        self, program, function, *, grid, block, cluster, register_limit, early, gpu, shared_bytes, arguments, blank,
        allocations, labels, undefined=0,
    ):  # fmt: skip
        """Prepare a launch.

        Parameters
        ----------
        cluster, register_limit
            Blocks per cluster, and greatest number of registers per thread (None: no limit).
        early
            Whether it may begin before the previous launch has ended.
        blank, allocations
            Masks of the unwritten elements of device arrays, and the addresses of their allocations, by name.
        labels
            Function of (block, warp): warps of one label run as one set.
        undefined
            Sign of the number that stands for an undefined value: 0, 1 or -1.
        """
        self.program = program
        self.function = function
        self.grid, self.block, self.gpu = grid, block, gpu
        self.blocks = grid[0] * grid[1] * grid[2]
        self.cluster = cluster
        self.register_limit = register_limit
        self.early = early
        self.sms = gpu.sms // cluster * cluster  # the blocks of a cluster run on as many SMs
        self.threads_per_block = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.threads_per_block // WARP_LANES)
        self.label = labels
        self.undefined = undefined
        self.sites = list(program.sites)
        self.counts = np.zeros((len(self.sites), 1, COUNTS), np.int64)  # of all blocks, or of each block of a chunk
        self.totals = self.counts[:, 0]
        self.flops = defaultdict(int)
        self.plan: Plan | None = None  # of a sample
        self.order: WarpOrder | None = None  # of blocks and warps; None: all of a chunk in lockstep
        self.pace = Pace()
        self.patience = 1  # by which the limits of its work are multiplied
        self.is_checked = True
        self.checked_blocks = self.blocks  # those that ran before the checks ended
        self.is_backwards = False  # the last block comes first, one at a time
        self.sampled_counts: list[BlockCounts] = []
        self.log = Log(self)
        self.source = read_source(function)
        self.shared_bytes, self.shared_layout = self._lay_out_shared(int(shared_bytes))
        self._check_residence()
        self._place_arguments(function, arguments, blank, allocations)
        self.noted_race = np.zeros(RACE_FIELDS, np.int64)  # the one race that is told of the current instruction
        self.instruction = 0  # number of the last instruction that wrote, times 2
        self.version = 0  # changes of memory so far
        self.barriers = 0  # barriers of a block that were passed
        self.disturbance = Disturbance()
        self.parting = Parting(is_possible=False)
        self.printed: list[str] = []
        self.raised: Raised | None = None  # the first exception of a thread
        self.work = self.printed_characters = self.sampled_lanes = self.inspected_values = 0
        copies = min(gpu.sms, self.blocks)
        self.l1 = make_l1(gpu, self.threads_per_block, self.shared_bytes, copies)
        self.l2 = L2(gpu, self.totals)
        self.warpgroups_per_block = -(-self.warps_per_block // WARPGROUP_WARPS)
        other_units = (
            self.warpgroups_per_block if program.has_warpgroup_clocks else 0
        ) + early  # early: a launch before
        self.clocks = Clocks(self.blocks if program.keeps_clocks else 0, self.warps_per_block, other_units)
        self.overflow = Overflow(program.keeps_clocks)
        self.sampled: list[tuple] = []  # raw accesses: (block, site, threads, elements)
        self.events = Events(self)
        self.inspected: list[ThreadStep] = []

    def _lay_out_shared(self, dynamic_bytes):
        """Return the shared bytes of a block, and (shape, first byte) of each shared array.

        Dynamic arrays share the bytes at the end.
        """
        layout, end = {}, 0
        allocations = list(enumerate(self.program.allocations.values()))
        for number, a in allocations:
            if a.space == "shared" and not a.dynamic:
                end = _round_up(end, max(16, a.alignment))
                layout[number] = (a.shape, end)
                end += math.prod(a.shape) * a.dtype.itemsize
        dynamic = [(n, a) for n, a in allocations if a.dynamic]
        self.dynamic_dtypes, self.dynamic_bytes = {a.dtype for _, a in dynamic}, dynamic_bytes
        end = _round_up(end, max(16, *(a.alignment for _, a in dynamic))) if dynamic else end
        for number, a in dynamic:
            layout[number] = (a.shape or (dynamic_bytes // a.dtype.itemsize,), end)
            used = (a.first_byte or 0) + math.prod(a.shape or (0,)) * a.dtype.itemsize
            if used > dynamic_bytes:
                raise LaunchError(
                    f"`{a.name}` takes dynamic shared memory up to byte {used}, and the launch gives {dynamic_bytes} "
                    "bytes: give more, `kernel[grid, block, stream, shared_bytes]`"
                )
        total, limit = end + dynamic_bytes, self.gpu.shared_bytes_per_block
        if self.program.static_shared_bytes > STATIC_SHARED_BYTES:
            raise LaunchError(
                f"a block needs {total} bytes of shared memory, and arrays of a fixed size get {STATIC_SHARED_BYTES}; "
                "use smaller tiles or a narrower dtype, or `ptx.shared_array(first_byte, shape, dtype)`, an array in "
                f"dynamic shared memory, of which a launch may ask for up to {limit} bytes on one {self.gpu.name}"
            )
        if total > limit:
            raise LaunchError(
                f"a block needs {total} bytes of shared memory, and one of a {self.gpu.name} gets {limit} at most; use "
                "smaller tiles, fewer stages or a narrower dtype"
            )
        return total, layout

    def _place_arguments(self, function, arguments, blank, allocations):
        """Copy the arguments into simulated memory; arrays that overlap keep overlapping."""
        names = function.__code__.co_varnames
        arrays = {n: a for n, a in flatten_arguments(names, arguments).items() if isinstance(a, np.ndarray)}
        captured = {n: unwrap(a) for n, a in self.program.captured.items()}
        allocations = {n: allocation_address(a) for n, a in self.program.captured.items()} | allocations
        self.regions = place_arguments(captured | arrays, allocations)
        for name in arrays.keys() & (self._raced() | blank.keys()):
            region = self.regions[name]
            sizes = {n for other in arrays if self.regions[other] is region for n in self.program.pieces.get(other, ())}
            region.watch(self.program.is_asynchronous, units_per_element(region.data.dtype, sizes))
        for name, marks in blank.items():
            self.regions[name].mark_blank(arrays[name], marks)
        self._blank_arguments = {name: arrays[name] for name in blank}
        self.captured = {n: self.regions[n].array(n, a) for n, a in captured.items()}
        self.arguments = [self._in_memory(n, a) for n, a in zip(names, arguments, strict=False)]
        self.arrays = {n: a for n, a in flatten_arguments(names, self.arguments).items() if n in arrays}

    def _raced(self):
        """Return the names of the arrays that threads may race for: one thread alone races with nobody."""
        alone = self.blocks * self.threads_per_block == 1 and not (self.program.is_asynchronous or self.early)
        return set() if alone else self.program.stored

    def _in_memory(self, name, value):
        """Return an argument as the kernel sees it."""
        if isinstance(value, tuple):
            return tuple(self._in_memory(*entry) for entry in tuple_entries(name, value))
        if isinstance(value, BoxedArray):
            array = self._in_memory(name, value.array)
            if (array.address + array.offset * array.itemsize) % ALIGNMENT_BYTES:
                raise LaunchError(
                    f"the array under the tensor map `{name}` does not begin at a multiple of "
                    f"{ALIGNMENT_BYTES} bytes; begin a slice there, or pass a copy"
                )
            return value.of(array)
        return self.regions[name].array(name, value) if isinstance(value, np.ndarray) else value

    def blank(self) -> dict[str, np.ndarray]:
        """Return a mask of the elements that are still unwritten, for each device array that came with such."""
        if not self.is_checked:  # what was written without checks is not known
            return {name: np.zeros(value.shape, np.bool_) for name, value in self._blank_arguments.items()}
        return {name: self.regions[name].blank(value) for name, value in self._blank_arguments.items()}

    def outputs(self, arguments):
        """Return the arguments after the run, from those that the kernel took."""

        def after(argument, value):
            if isinstance(value, tuple):
                entries = [after(a, v) for a, v in zip(argument, value)]
                return value._make(entries) if hasattr(value, "_make") else tuple(entries)
            if isinstance(value, BoxedArray):
                return after(argument.array, value.array)
            return self.regions[argument.name].view(value).copy() if isinstance(argument, Array) else value

        return tuple(after(a, v) for a, v in zip(self.arguments, arguments, strict=True))

    def _check_residence(self):
        """Raise LaunchError for a grid that waits for itself and does not fit the GPU at once."""
        limit = self.gpu.sms * resident_blocks(self.gpu, self.threads_per_block, self.shared_bytes)
        if self.program.cooperative and self.blocks > limit:
            raise LaunchError(
                "this kernel waits for its whole grid, so that all of its blocks must be on the GPU at once, and one "
                f"{self.gpu.name} has room for {limit} blocks of {self.threads_per_block} threads, not {self.blocks}; "
                "launch fewer blocks, and let each loop over more elements"
            )

    def sample(self, min_blocks, seed):
        """Run a sample of about `min_blocks` blocks in place of the whole grid, where that is larger."""
        if not isinstance(min_blocks, (int, np.integer)) or isinstance(min_blocks, bool) or min_blocks < 1:
            raise LaunchError(f"sample is how many blocks to run at least, such as 64, not {min_blocks!r}")
        if self.program.waits_for_all or self.program.acts_on_atomics or self.cluster > 1:
            raise LaunchError(
                "the blocks of this kernel wait for one another, or act on what an atomic returned, so a few of them "
                "do not behave as all would; leave `sample` out, and simulate a smaller grid"
            )
        resident = resident_blocks(self.gpu, self.threads_per_block, self.shared_bytes)
        required = [*self.recorded, *([self.inspecting[0]] if self.inspecting else [])]
        if min_blocks >= self.blocks:
            return
        plan = Plan(self.grid, self.gpu.sms, resident, int(min_blocks), required, seed)
        if plan.blocks_run == self.blocks:
            return
        self.plan = plan
        self.place_on_sm = {block: number for number, group in enumerate(plan.groups) for block in group.tolist()}
        self.l1 = make_l1(self.gpu, self.threads_per_block, self.shared_bytes, copies=len(plan.groups))
        self.l2 = NoL2()

    def sm(self, block):
        """Return the SM on which a block runs; in a sample each group of blocks has its own."""
        return self.place_on_sm[block] if self.plan else block % self.sms

    def run(self):
        """Run wave after wave of resident blocks, each wave in chunks of whole SMs."""
        self._check_size()
        self.pace.begin(self.plan.blocks_run if self.plan else self.blocks)
        try:
            if self.plan:
                self._run_sample()
                return
            if self.is_backwards:
                waves = self._waves_backwards()
            else:
                waves = [[[*range(self.blocks)]]] if self.program.waits_for_all else self._waves()
            for chunks in self.order.arrange(waves) if self.order else waves:
                for blocks in chunks:
                    self._run_chunk(blocks)
                self.l2.flush()
        except Deadlock:
            self.l2.flush()

    def _waves_backwards(self):
        """Return one wave: block after block, or cluster after cluster, from the last to the first."""
        if self.program.waits_for_all:
            return [[[*reversed(range(self.blocks))]]]
        ends = range(self.blocks, 0, -self.cluster)
        return [[[*range(end - self.cluster, end)] for end in ends]]

    def _waves(self):
        """Yield the chunks of each wave of resident blocks."""
        sms = self.sms
        wave = sms * resident_blocks(self.gpu, self.threads_per_block, self.shared_bytes)
        for start in range(0, self.blocks, wave):
            blocks = np.arange(start, min(start + wave, self.blocks))
            blocks_per_sm = -(-len(blocks) // sms)
            sms_per_chunk = min(CHUNK_LANES // self.threads_per_block, self._blocks_that_fit()) // blocks_per_sm
            sms_per_chunk = max(1, sms_per_chunk // self.cluster) * self.cluster
            sm = blocks % sms
            starts = range(0, min(sms, len(blocks)), sms_per_chunk)
            yield [blocks[(sm >= first) & (sm < first + sms_per_chunk)].tolist() for first in starts]

    def end_checks_in_time(self):
        """End the checks once the time limit has passed; asynchronous operations need theirs to run."""
        if self.is_checked and self.pace.is_over and not (self.plan or self.program.is_asynchronous):
            self.end_checks()

    def end_checks(self):
        """Run the rest without what costs most: checks of races and unwritten elements, counters and caches."""
        self.is_checked, self.checked_blocks = False, self.pace.done
        self.pace.mark()

    def _run_chunk(self, blocks):
        """Run some blocks together; raise KernelError when the launch has done too much work."""
        self.end_checks_in_time()
        chunk = Chunk(self, blocks)
        try:
            chunk.run()
        finally:
            chunk.sets.clear()  # a reference cycle, whose memory would wait for the garbage collector
        self.pace.done += len(blocks)
        self.work += chunk.work + limits.CHUNK_WORK + len(blocks) * self._bytes_per_block() // limits.WORK_BYTES
        if self.work > self.patience * limits.MAX_WORK:
            raise KernelError(
                f"the kernel was stopped before all of its blocks had run; {self.describe_less_work(SAMPLE)}",
                self.source.tree.lineno,
            )
        return chunk

    def describe_less_work(self, otherwise="") -> str:
        """Return what to do about too much work; `otherwise` is a further way, where no command runs the launch."""
        if self.pace.option and self.pace.time_limit_s is None:
            return (
                f"simulate a smaller problem, or pass `{self.pace.option} 60`: launches may then do "
                f"{limits.PATIENCE} times as much work, and each is checked for 60 s"
            )
        return f"simulate a smaller problem{'' if self.pace.option else otherwise}"

    def _run_sample(self):
        """Run the groups of the plan in chunks, and keep each block's counts."""
        groups = self.plan.groups
        groups_per_chunk = max(1, min(CHUNK_LANES // self.threads_per_block, self._blocks_that_fit()) // len(groups[0]))
        for first in range(0, len(groups), groups_per_chunk):
            blocks = np.sort(np.concatenate(groups[first : first + groups_per_chunk])).tolist()
            self.counts = np.zeros((len(self.sites), len(blocks), COUNTS), np.int64)
            self.flops = defaultdict(lambda: np.zeros(len(blocks), np.int64))  # noqa: B023
            barriers = self._run_chunk(blocks).barriers_passed
            for slot, block in enumerate(blocks):
                flops = {dtype: int(amounts[slot]) for dtype, amounts in self.flops.items()}
                self.sampled_counts.append(BlockCounts(block, self.counts[:, slot], flops, int(barriers[slot])))

    def _check_size(self):
        """Raise LaunchError for a launch that would take too much of this machine's time or memory."""
        lanes = (self.plan.blocks_run if self.plan else self.blocks) * self.threads_per_block
        if lanes > limits.MAX_LANES:
            raise LaunchError(
                f"the launch has {lanes:,} threads, and the simulator runs {limits.MAX_LANES:,} at most; simulate a "
                f"smaller problem{'' if self.pace.option else SAMPLE}"
            )
        if self.program.waits_for_all and (lanes > limits.MAX_LANES_TOGETHER or self.blocks > self._blocks_that_fit()):
            raise LaunchError(
                f"threads that wait for one another are simulated side by side, and {self.blocks:,} blocks of "
                f"{self.threads_per_block} are too many for that; simulate a smaller problem"
            )

    def _blocks_that_fit(self):
        """Return the number of blocks whose shared and local memory this machine holds at a time."""
        return limits.MAX_CHUNK_BYTES // (self._bytes_per_block() or 1)

    def _bytes_per_block(self):
        """Return the bytes that a block's shared and local memory takes here, with its shadow."""
        bytes_per_block = 0
        if self.dynamic_dtypes:
            bytes_per_block = self.dynamic_bytes * (1 + SHADOW_BYTES // unit_bytes(self.dynamic_dtypes))
        for a in self.program.allocations.values():
            if a.space == "shared":
                bytes_per_block += 0 if a.dynamic else math.prod(a.shape) * (a.dtype.itemsize + SHADOW_BYTES)
            else:
                bytes_per_block += math.prod(a.shape) * (a.dtype.itemsize + 1) * self.threads_per_block
        return bytes_per_block

    def memory(self) -> list[bytes]:
        """Return the contents of the arguments' memory."""
        return [region.data.tobytes() for region in self.regions.values()]

    def check_assigned(self, w, missing, name, value, line, column):
        """Note the lanes of `missing`, which read a variable that they have not assigned.

        `value` is the variable's; None is an error, since nothing stands for an array or a tuple.
        """
        if missing is not False:
            self.log.unassigned(w, missing, name, line, column)
            if value is None:
                raise KernelError(f"no thread that reads `{name}` has set it; give it a value on every path", line)

    def check_divisor(self, w, mask, divisor, sign, line, column):
        """Note the lanes that divide by an integer or complex zero."""
        if not np.all(divisor):
            missing = w.active(mask) & (divisor == 0)
            if missing.any():
                self.log.zero_division(w, missing, sign, line, column, divisor.dtype.kind == "c")

    def fence(self, w, mask):
        """Note a `threadfence` by the lanes of `mask`."""
        if not self.disturbance.leaves_out(FENCES):
            self.clocks.publish(w, mask)

    def print(self, w, mask, *values):
        """Print the values of each lane of `mask`."""
        for lane in np.flatnonzero(w.active(mask)):
            if len(self.printed) >= limits.MAX_PRINTED_LINES or self.printed_characters > limits.MAX_PRINTED_CHARACTERS:
                return
            shown = [v[lane] if isinstance(v, np.ndarray) else v for v in values]
            self.printed.append(" ".join(str(s.item() if isinstance(s, np.generic) else s) for s in shown))
            self.printed_characters += len(self.printed[-1])

    def record(self, record, inspect):
        """Set the blocks whose accesses are recorded, and the (block, thread) whose variables are kept."""
        self.recorded = {}
        if not isinstance(record, (tuple, list)):
            raise LaunchError(f"record is a list of blocks, such as ((0, 0, 0),), not {record!r}")
        for block in record:
            index = self._linear(block, self.grid, "recorded block", "grid")
            self.recorded[index] = tuple((*_as_index(block), 0, 0)[:3])
        self.inspecting = None
        if inspect is not None:
            if not isinstance(inspect, (tuple, list)) or len(inspect) != 2:
                raise LaunchError(f"inspect is a pair, (block, thread), such as (0, 5), not {inspect!r}")
            block, thread = inspect
            self.inspecting = (
                self._linear(block, self.grid, "inspected block", "grid"),
                self._linear(thread, self.block, "inspected thread", "block"),
            )

    def _linear(self, index, shape, name, within):
        """Return the linear number of a block or a thread; raise LaunchError for one that does not exist."""
        if not all(isinstance(i, (int, np.integer)) for i in (index if isinstance(index, (tuple, list)) else [index])):
            raise LaunchError(f"the {name} is one to three whole numbers, such as 5 or (1, 2), not {index!r}")
        index = (*_as_index(index), 0, 0)[:3]
        if not all(0 <= i < n for i, n in zip(index, shape)):
            raise LaunchError(f"the {name} {index} is outside the {within} {shape}; choose one inside")
        return index[0] + shape[0] * (index[1] + shape[1] * index[2])

    def watch(self, w, mask, line, variables):
        """Keep the inspected thread's variables after a statement.

        `variables` has, by name, each variable's value and the lanes that assigned it.
        """
        if self.inspecting is None or mask is False or self.inspected_values > limits.MAX_INSPECTED_VALUES:
            return
        block, thread = self.inspecting
        lane = np.flatnonzero((w.block == block) & (w.thread == thread))
        if lane.size == 0 or not w.active(mask)[lane[0]]:
            return
        values = {
            name: (value[lane[0]] if isinstance(value, np.ndarray) else value).item()
            for name, (value, lanes) in variables.items()
            if lanes is not False and w.active(lanes)[lane[0]]
        }
        self.inspected.append(ThreadStep(line, values))
        self.inspected_values += 1 + len(values)


def _round_up(size, multiple):
    """Round a size up to a multiple."""
    return -(-size // multiple) * multiple


def _as_index(index):
    return tuple(int(i) for i in index) if isinstance(index, (tuple, list)) else (int(index),)

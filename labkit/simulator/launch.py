"""One launch: its arguments in simulated memory, its counters and caches, and the chunks that it runs."""

from collections import defaultdict

import numpy as np

from labkit.simulator.arrays import place
from labkit.simulator.caches import make_l1, resident_blocks
from labkit.simulator.counters import COUNTS
from labkit.simulator.errors import LaunchError
from labkit.simulator.findings import Log
from labkit.simulator.host import unwrap
from labkit.simulator.l2 import L2
from labkit.simulator.races import RACE_FIELDS
from labkit.simulator.scheduler import Chunk, Deadlock
from labkit.simulator.translator.source import read_source
from labkit.trace import WARP_LANES, ThreadStep

CHUNK_LANES = 16_384
LAUNCH_SHARED_BYTES = 48 * 1024  # what a kernel gets without opting in to more
MAX_CLOCKED_WARPS = 1024
MAX_PRINTED_LINES = 10_000


class Launch:
    """The state of one launch: arguments in simulated memory, counters, caches, findings."""

    def __init__(self, program, function, grid, block, gpu, shared_bytes, arguments, labels, undefined=0):
        """`undefined` is the sign of what stands for an undefined value: 0, 1 or -1."""
        self.program = program
        self.function = function
        self.grid, self.block, self.gpu = grid, block, gpu
        self.blocks = grid[0] * grid[1] * grid[2]
        self.threads = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.threads // WARP_LANES)
        self.label = labels
        self.undefined = undefined
        self.sites = list(program.sites)
        self.totals = np.zeros((len(self.sites), COUNTS), np.int64)
        self.flops = defaultdict(int)
        self.log = Log(self)
        self.source = read_source(function)
        self.shared_bytes, self.shared_layout = self._lay_out_shared(int(shared_bytes))
        self._place_arguments(function, arguments)
        self.noted_race = np.zeros(RACE_FIELDS, np.int64)
        self.instruction = self.version = self.barriers = 0
        self.printed: list[str] = []
        copies = min(gpu.sms, self.blocks)
        self.l1 = make_l1(gpu, self.threads, self.shared_bytes, copies)
        self.l2 = L2(gpu, self.totals)
        warps = self.blocks * self.warps_per_block
        clocked = program.keeps_clocks and warps <= MAX_CLOCKED_WARPS
        self.clocks = np.zeros((warps, warps) if clocked else (0, 0), np.int32)
        self.cell_clocks: dict[tuple, np.ndarray] = {}
        self.sampled: list[tuple] = []
        self.inspected: list[ThreadStep] = []

    def _lay_out_shared(self, dynamic_bytes):
        """Where each shared array begins in its block, in bytes; the dynamic ones share what comes last."""
        layout, end = {}, 0
        allocations = list(enumerate(self.program.allocations.values()))
        for number, a in allocations:
            if a.space == "shared" and a.shape != 0:
                end = _multiple(end, max(16, a.alignment))
                layout[number] = (a.shape, end)
                end += int(np.prod(a.shape)) * a.dtype.itemsize
        dynamic = [(n, a) for n, a in allocations if a.space == "shared" and a.shape == 0]
        if len({a.dtype for _, a in dynamic}) > 1:
            raise LaunchError("dynamic shared arrays of several dtypes overlap; use one dtype, or static arrays")
        end = _multiple(end, max(16, *(a.alignment for _, a in dynamic))) if dynamic else end
        for number, a in dynamic:
            layout[number] = ((dynamic_bytes // a.dtype.itemsize,), end)
        total = end + dynamic_bytes
        if total > LAUNCH_SHARED_BYTES:
            raise LaunchError(
                f"a block needs {total} bytes of shared memory, and a launch gets {LAUNCH_SHARED_BYTES} at most; use "
                "smaller tiles or a narrower dtype"
            )
        return total, layout

    def _place_arguments(self, function, arguments):
        """Copies the arguments into simulated memory; arrays that overlap keep overlapping."""
        names = function.__code__.co_varnames
        given = {n: a for n, a in zip(names, arguments, strict=False) if isinstance(a, np.ndarray)}
        captured = {n: unwrap(a) for n, a in self.program.captured.items()}
        self.regions = place(captured | given)
        for name in given.keys() & self.program.stored:
            self.regions[name].watch()
        self.captured = {n: self.regions[n].array(n, a) for n, a in captured.items()}
        self.arguments = [
            self.regions[n].array(n, a) if n in given else a for n, a in zip(names, arguments, strict=False)
        ]

    def run(self):
        """Runs wave after wave of resident blocks, each wave in chunks of whole SMs."""
        try:
            if self.program.spins or self.program.keeps_clocks:
                Chunk(self, list(range(self.blocks))).run()
                self.l2.flush()
                return
            sms = self.gpu.sms
            wave = sms * resident_blocks(self.gpu, self.threads, self.shared_bytes)
            for start in range(0, self.blocks, wave):
                blocks = np.arange(start, min(start + wave, self.blocks))
                on_one_sm = -(-len(blocks) // sms)
                sms_a_chunk = max(1, CHUNK_LANES // (on_one_sm * self.threads))
                for first in range(0, min(sms, len(blocks)), sms_a_chunk):
                    sm = blocks % sms
                    chosen = blocks[(sm >= first) & (sm < first + sms_a_chunk)]
                    Chunk(self, chosen.tolist()).run()
                self.l2.flush()
        except Deadlock:
            self.l2.flush()

    def memory(self) -> list[bytes]:
        """What the arguments' memory holds."""
        return [region.data.tobytes() for region in self.regions.values()]

    def share_clocks(self, blocks):
        """The warps of each of these blocks learn, at a barrier, all that any of them knows."""
        if not self.clocks.size:
            return
        for block in blocks:
            first = block * self.warps_per_block
            warps = np.arange(first, first + self.warps_per_block)
            self.clocks[warps, warps] += 1
            self.clocks[warps] = self.clocks[warps].max(axis=0)

    def check_assigned(self, w, missing, name, line):
        """The lanes of `missing` read a variable to which they assigned nothing."""
        if missing is not False:
            self.log.unassigned(w, missing, name, line)

    def check_divisor(self, w, mask, divisor, sign, line, column):
        """Some lanes may divide by an integer or complex zero."""
        if not np.all(divisor):
            missing = w.active(mask) & (divisor == 0)
            if missing.any():
                self.log.zero_division(w, missing, sign, line, column, divisor.dtype.kind == "c")

    def print(self, w, mask, *values):
        for lane in np.flatnonzero(w.active(mask))[: MAX_PRINTED_LINES - len(self.printed)]:
            shown = [v[lane] if isinstance(v, np.ndarray) else v for v in values]
            self.printed.append(" ".join(str(s.item() if isinstance(s, np.generic) else s) for s in shown))

    def record(self, record, inspect):
        self.recorded = {}
        if not isinstance(record, (tuple, list)):
            raise LaunchError(f"record is a list of blocks, such as ((0, 0, 0),), not {record!r}")
        for block in record:
            index = self._linear(block, self.grid, "recorded block", "grid")
            self.recorded[index] = tuple((*_plain(block), 0, 0)[:3])
        self.inspecting = None
        if inspect is not None:
            if not isinstance(inspect, (tuple, list)) or len(inspect) != 2:
                raise LaunchError(f"inspect is a pair, (block, thread), such as (0, 5), not {inspect!r}")
            block, thread = inspect
            self.inspecting = (
                self._linear(block, self.grid, "inspected block", "grid"),
                self._linear(thread, self.block, "inspected thread", "block"),
            )

    def _linear(self, index, shape, what, within):
        if not all(isinstance(i, (int, np.integer)) for i in (index if isinstance(index, (tuple, list)) else [index])):
            raise LaunchError(f"the {what} is one to three whole numbers, such as 5 or (1, 2), not {index!r}")
        index = (*_plain(index), 0, 0)[:3]
        if not all(0 <= i < n for i, n in zip(index, shape)):
            raise LaunchError(f"the {what} {index} is outside the {within} {shape}; choose one inside")
        return index[0] + shape[0] * (index[1] + shape[1] * index[2])

    def watch(self, w, mask, line, variables):
        """Keeps the inspected thread's variables after a statement it ran."""
        if self.inspecting is None or mask is False:
            return
        block, thread = self.inspecting
        lane = np.flatnonzero((w.block == block) & (w.thread == thread))
        if lane.size == 0 or not w.active(mask)[lane[0]]:
            return
        values = {n: (v[lane[0]] if isinstance(v, np.ndarray) else v).item() for n, v in variables.items()}
        self.inspected.append(ThreadStep(line, values))


def _multiple(size, of):
    """The size, rounded up to a multiple."""
    return -(-size // of) * of


def _plain(index):
    return tuple(int(i) for i in index) if isinstance(index, (tuple, list)) else (int(index),)

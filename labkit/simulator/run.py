"""`simulate`: one launch of a kernel on the lockstep simulator, from arguments to `Trace`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import types
from numba.core.errors import NumbaError

from labkit.gpus import Gpu, UnknownDevice
from labkit.gpus import gpu as named_gpu
from labkit.simulator import findings as told
from labkit.simulator import lanes, translate
from labkit.simulator.caches import dirty_sectors, make_cache, make_l1, resident_blocks
from labkit.simulator.counters import (
    ACCESSES,
    CONFLICTS,
    COUNTS,
    L1_HITS,
    L2_HITS,
    REQUESTS,
    SECTORS,
    WAVEFRONTS,
    replay_l2,
)
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.memory import Array, place
from labkit.simulator.races import RACE_FIELDS
from labkit.simulator.scheduler import Chunk, Deadlock, Fork
from labkit.trace import (
    SECTOR_BYTES,
    WARP_LANES,
    ArrayInfo,
    Counters,
    Finding,
    Samples,
    SiteCounters,
    ThreadStep,
    Trace,
)

CHUNK_LANES = 16_384
LAUNCH_SHARED_BYTES = 48 * 1024  # what a kernel gets without opting in to more
MAX_CLOCKED_WARPS = 1024
MAX_WHILE_TRIPS = 300_000
MAX_PRINTED_LINES = 10_000
L2_BUFFER_ROWS = 8_000_000

_programs: WeakKeyDictionary = WeakKeyDictionary()

Dimensions = int | Sequence[int]


def simulate(
    kernel: Callable,
    grid: Dimensions,
    block: Dimensions,
    *args: Any,
    shared_bytes: int = 0,
    gpu: str = "H100 SXM",
    record: Sequence[tuple[int, ...]] = ((0, 0, 0),),
    inspect: tuple[Sequence[int] | int, Sequence[int] | int] | None = None,
) -> Trace:
    """Runs one launch in the lockstep simulator and returns what it did.

    Parameters
    ----------
    kernel
        What `cuda.jit` returned, or the Python function itself.
    grid, block
        Blocks in the grid and threads in a block: a number, or one to three of them (x, y, z).
    *args
        The kernel's arguments: NumPy arrays, device arrays, numbers. They stay as they are.
    shared_bytes
        Dynamic shared memory of each block, in bytes.
    gpu
        The GPU whose limits and caches count; a name in `labkit.gpus.GPUS`.
    record
        Blocks whose raw accesses are kept in `Trace.samples`.
    inspect
        (block, thread): keep this thread's variables after every statement in `Trace.steps`.

    Returns
    -------
    Trace
        Outputs, counters, findings and samples.

    Raises
    ------
    LaunchError
        For a grid, a block, shared memory or arguments that a GPU would refuse too.
    KernelError
        For code that the kernel language does not hold; it names the line.
    """
    function = getattr(kernel, "py_func", kernel)
    if not callable(function) or not hasattr(function, "__code__"):
        raise LaunchError(f"the kernel must be a function, not {_article(kernel)}; put `@cuda.jit` above a `def`")
    try:
        device = named_gpu(gpu)
    except UnknownDevice as error:
        raise LaunchError(str(error)) from None
    grid = _dimensions(grid, "grid")
    block = _dimensions(block, "block")
    _check_limits(grid, block, shared_bytes, device)
    names = translate.argument_names(translate.read_source(function))
    kinds, arguments, outputs = _arguments(names, args)
    program = _program(function, kinds, watch=inspect is not None)
    labels = _Labels()
    while True:
        launch = Launch(program, function, grid, block, device, shared_bytes, arguments, labels)
        launch.record(record, inspect)
        try:
            with np.errstate(all="ignore"):
                launch.run()
        except Fork as fork:
            labels.part(fork.classes)
            continue
        return launch.trace(function, outputs)


def _program(function, kinds, watch):
    """The translated kernel, as of its first use: its globals are frozen then, as numba freezes them."""
    known = _programs.setdefault(function, {})
    if (kinds, watch) not in known:
        try:
            known[kinds, watch] = translate.translate(function, kinds, watch)
        except RecursionError:
            raise KernelError(
                "this expression is nested too deeply; split it over several lines", function.__code__.co_firstlineno
            ) from None
    return known[kinds, watch]


# --- arguments ---------------------------------------------------------------------------------


def _article(thing):
    if thing is None:
        return "None"
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _dimensions(given, what):
    given = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(given) <= 3 or not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given):
        shown = given[0] if len(given) == 1 else tuple(given)
        cure = "; divide with `//`" if any(isinstance(n, (float, np.floating)) for n in given) else ""
        raise LaunchError(f"the {what} must be one to three whole numbers, such as 4 or (4, 2), not {shown!r}{cure}")
    if min(given) < 1:
        shown = given[0] if len(given) == 1 else tuple(given)
        raise LaunchError(f"the {what} is {shown}, so nothing would run; every size must be at least 1")
    return tuple(int(n) for n in (*given, 1, 1)[:3])


def _check_limits(grid, block, shared_bytes, gpu: Gpu):
    threads = block[0] * block[1] * block[2]
    if threads > gpu.threads_per_block:
        raise LaunchError(
            f"a block of {block[0]} x {block[1]} x {block[2]} has {threads} threads, and a GPU takes at most "
            f"{gpu.threads_per_block}; make the block smaller and the grid larger"
        )
    if block[2] > 64:
        raise LaunchError(f"a block may be 64 deep in z at most, not {block[2]}; use x and y")
    if grid[1] > 65535 or grid[2] > 65535 or grid[0] >= 2**31:
        raise LaunchError(f"the grid {grid} is too large: x may be up to 2**31 - 1, y and z up to 65535")
    if not isinstance(shared_bytes, (int, np.integer)) or shared_bytes < 0:
        raise LaunchError(f"shared_bytes is a number of bytes, 0 or more, not {shared_bytes!r}")


def _arguments(names, args):
    """numba's types of the arguments, the arguments as the kernel sees them, and how to give them back."""
    if len(args) != len(names):
        cure = f"pass `{'`, `'.join(names[len(args) :])}` as well" if len(args) < len(names) else "leave the others out"
        raise LaunchError(
            f"the kernel takes {len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)}), but "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given; {cure}"
        )
    kinds, values = [], []
    for name, value in zip(names, args):
        if hasattr(value, "copy_to_host"):
            value = value.copy_to_host()
        if isinstance(value, np.ndarray):
            kinds.append(translate.Array(_element_type(name, value), value.ndim, "global"))
        elif isinstance(value, (bool, np.bool_)):
            kinds.append(types.boolean)
            value = np.bool_(value)
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise LaunchError(f"the argument `{name}` = {value} does not fit into 64 bits")
            kinds.append(types.int64)
            value = np.int64(value)
        elif isinstance(value, (float, np.integer, np.floating)):
            value = value if isinstance(value, np.generic) else np.float64(value)
            kinds.append(_element_type(name, value))
        elif isinstance(value, (list, tuple)):
            raise LaunchError(
                f"the argument `{name}` is {_article(value)}, which a GPU cannot read; pass `np.array({name}, "
                "dtype=np.float32)`"
            )
        else:
            raise LaunchError(
                f"the argument `{name}` is {_article(value)}; a kernel takes NumPy arrays, device arrays and "
                "numbers alone"
            )
        values.append(value)
    return tuple(kinds), values, values


def _element_type(name, value):
    try:
        kind = lanes.type_of(value.dtype)
    except NumbaError:
        kind = None
    if kind is None or not isinstance(kind, (types.Integer, types.Float, types.Boolean)) or kind == types.float16:
        raise LaunchError(
            f"the argument `{name}` has dtype {value.dtype}, which the simulator does not hold; use float32, "
            "float64, an "
            "integer type or bool"
        )
    if isinstance(value, np.ndarray) and value.ndim == 0:
        raise LaunchError(
            f"the argument `{name}` is an array without dimensions; pass the number itself, `{name}.item()`"
        )
    return kind


class _Labels:
    """Which warps run together: a label a warp, longer with every fork; blocks not seen yet follow the first."""

    def __init__(self):
        self.of: dict[tuple[int, int], tuple] = {}
        self.by_warp: dict[int, tuple] = {}
        self.forks = 0

    def __call__(self, block, warp):
        if self.forks > 8:
            return (block, warp)
        return self.of.get((block, warp), self.by_warp.get(warp, ()))

    def part(self, classes):
        self.forks += 1
        new = {key: (*self(*key), kind) for key, kind in classes.items()}
        self.of |= new
        self.by_warp = {}
        for (_, warp), label in sorted(self.of.items()):
            self.by_warp.setdefault(warp, label)


# --- one launch --------------------------------------------------------------------------------


class Launch:
    """The state of one launch: arguments in simulated memory, counters, caches, findings."""

    def __init__(self, program, function, grid, block, gpu, shared_bytes, arguments, labels):
        self.program = program
        self.function = function
        self.grid, self.block, self.gpu = grid, block, gpu
        self.blocks = grid[0] * grid[1] * grid[2]
        self.threads = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.threads // WARP_LANES)
        self.label = labels
        self.sites = list(program.sites)
        self.totals = np.zeros((len(self.sites), COUNTS), np.int64)
        self.flops = defaultdict(int)
        self.log = told.Log(self)
        self.source = translate.read_source(function)
        self.shared_bytes, self.shared_layout = self._lay_out_shared(int(shared_bytes))
        self._place_arguments(function, arguments)
        self.noted_race = np.zeros(RACE_FIELDS, np.int64)
        self.instruction = self.version = self.barriers = 0
        self.printed: list[str] = []
        copies = min(gpu.sms, self.blocks)
        self.l1 = make_l1(gpu, self.threads, self.shared_bytes, copies)
        self.l2 = make_cache(gpu.l2_bytes, ways=16)
        self._l2_rows = np.empty((0, 3), np.int64)
        self._l2_waiting: list[tuple] = []
        self._l2_waiting_rows = 0
        self.l2_hits = self.l2_sectors = self.l2_read_misses = self.l2_written_back = 0
        warps = self.blocks * self.warps_per_block
        clocked = program.keeps_clocks and warps <= MAX_CLOCKED_WARPS
        self.clocks = np.zeros((warps, warps) if clocked else (0, 0), np.int32)
        self.cell_clocks: dict[tuple, np.ndarray] = {}
        self.sampled: list[tuple] = []
        self.inspected: list[ThreadStep] = []

    # --- memory ---

    def _lay_out_shared(self, dynamic_bytes):
        """Where each shared array begins in its block, in bytes; the dynamic ones share what comes last."""
        layout, end = {}, 0
        allocations = list(enumerate(self.program.allocations.values()))
        for number, a in allocations:
            if a.space == "shared" and a.shape != 0:
                end = -(-end // 16) * 16
                layout[number] = (a.shape, end)
                end += int(np.prod(a.shape)) * a.dtype.itemsize
        dynamic = [(n, a) for n, a in allocations if a.space == "shared" and a.shape == 0]
        if len({a.dtype for _, a in dynamic}) > 1:
            raise LaunchError("dynamic shared arrays of several dtypes overlap; use one dtype, or static arrays")
        end = -(-end // 16) * 16 if dynamic else end
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
        self.regions = place(given)
        everything = bool(self.program.compiled)  # a device function may store under another name
        for name in given if everything else given.keys() & self.program.stored:
            self.regions[name].watch()
        self.arguments = [
            self.regions[n].array(n, a) if n in given else a for n, a in zip(names, arguments, strict=False)
        ]

    # --- running ---

    def run(self):
        """Runs wave after wave of resident blocks, each wave in chunks of whole SMs."""
        try:
            if self.program.spins or self.program.keeps_clocks:
                Chunk(self, list(range(self.blocks))).run()
                self._flush_l2()
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
                self._flush_l2()
        except Deadlock:
            self._flush_l2()

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

    def tick(self, trips, line):
        """Counts one trip of a `while` loop; a loop that never ends stops here."""
        if trips >= MAX_WHILE_TRIPS:
            raise KernelError(
                f"this `while` loop was stopped after {trips:,} trips; make sure that its condition turns false "
                "in every thread",
                line,
            )
        return trips + 1

    def print(self, w, mask, *values):
        for lane in np.flatnonzero(w.active(mask))[: MAX_PRINTED_LINES - len(self.printed)]:
            shown = [v[lane] if isinstance(v, np.ndarray) else v for v in values]
            self.printed.append(" ".join(str(s.item() if isinstance(s, np.generic) else s) for s in shown))

    def record(self, record, inspect):
        self.recorded = {}
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

    # --- L2 ---

    def l2_rows(self, rows):
        if len(self._l2_rows) < rows:
            self._l2_rows = np.empty((rows, 3), np.int64)
        return self._l2_rows

    def send_to_l2(self, rows, site, writes):
        self._l2_waiting.append((rows.copy(), site, writes))
        self._l2_waiting_rows += len(rows)
        if self._l2_waiting_rows > L2_BUFFER_ROWS:
            self._flush_l2()

    def _flush_l2(self):
        """Feeds L2 what the SMs sent in this wave: in the order of the warps' own clocks, then of blocks."""
        if not self._l2_waiting:
            return
        rows = np.concatenate([r for r, _, _ in self._l2_waiting])
        lengths = [len(r) for r, _, _ in self._l2_waiting]
        sites = np.repeat([s for _, s, _ in self._l2_waiting], lengths)
        writes = np.repeat([w for _, _, w in self._l2_waiting], lengths)
        order = np.lexsort((rows[:, 1], rows[:, 0]))
        before = self.totals[:, L2_HITS].sum()
        hits, evicted = replay_l2(self.l2, order, np.ascontiguousarray(rows[:, 2]), sites, writes, self.totals)
        assert self.totals[:, L2_HITS].sum() - before == hits
        self.l2_hits += hits
        self.l2_sectors += len(rows)
        self.l2_written_back += evicted
        read_hits = sum(int(self.totals[i, L2_HITS]) for i, s in enumerate(self.sites) if s.kind == "load")
        reads = int((~writes).sum())
        self.l2_reads = getattr(self, "l2_reads", 0) + reads
        self.l2_read_misses = self.l2_reads - read_hits
        self._l2_waiting.clear()
        self._l2_waiting_rows = 0

    # --- the trace ---

    def trace(self, function, given) -> Trace:
        counted = [
            SiteCounters(
                site,
                accesses=int(row[ACCESSES]),
                requests=int(row[REQUESTS]),
                bytes=int(row[ACCESSES]) * np.dtype(_dtype_name(site.dtype)).itemsize,
                sectors=int(row[SECTORS]),
                wavefronts=int(row[WAVEFRONTS]),
                bank_conflicts=int(row[CONFLICTS]),
                l1_hits=int(row[L1_HITS]),
                l2_hits=int(row[L2_HITS]),
            )
            for site, row in zip(self.sites, self.totals)
        ]
        found = [*self.log.finished(), *self.program.advice.values()]
        if not any(f.kind == "deadlock" for f in found):
            found += told.unwritten(self)
        found += [*told.advice(self, counted), *self._changed_globals()]
        found.sort(key=lambda f: (f.severity != "error", f.line, f.column))
        return Trace(
            kernel=function.__name__,
            source=self.source.text,
            filename=self.source.filename,
            first_line=self.source.first_line,
            grid=self.grid,
            block=self.block,
            gpu=self.gpu.name,
            shared_bytes=self.shared_bytes,
            outputs=tuple(
                self.regions[a.name].view(value).copy() if isinstance(a, Array) else value
                for a, value in zip(self.arguments, given, strict=True)
            ),
            arrays=self._array_infos(),
            sites=tuple(counted),
            counters=self._totals(counted),
            findings=tuple(found),
            samples=self._samples(),
            steps=tuple(self.inspected),
            printed=tuple(self.printed),
        )

    def _array_infos(self):
        infos = [
            ArrayInfo(a.name, a.space, a.shape, str(a.dtype), a.itemsize, a.address + (a.offset * a.itemsize), a.line)
            for a in self.arguments
            if isinstance(a, Array)
        ]
        for number, a in enumerate(self.program.allocations.values()):
            shape, address = self.shared_layout[number] if a.space == "shared" else (a.shape, 0)
            infos.append(ArrayInfo(a.name, a.space, shape, str(a.dtype), a.dtype.itemsize, address, a.line))
        return tuple(infos)

    def _totals(self, counted) -> Counters:
        def total(space, kind, name):
            return sum(getattr(c, name) for c in counted if c.site.space == space and c.site.kind == kind)

        global_sites = [c for c in counted if c.site.space == "global"]
        return Counters(
            global_loads=total("global", "load", "accesses"),
            global_stores=total("global", "store", "accesses"),
            global_atomics=total("global", "atomic", "accesses"),
            shared_loads=total("shared", "load", "accesses"),
            shared_stores=total("shared", "store", "accesses"),
            shared_atomics=total("shared", "atomic", "accesses"),
            global_load_requests=total("global", "load", "requests"),
            global_store_requests=total("global", "store", "requests"),
            global_load_sectors=total("global", "load", "sectors"),
            global_store_sectors=total("global", "store", "sectors"),
            global_bytes=sum(c.bytes for c in global_sites),
            shared_load_wavefronts=total("shared", "load", "wavefronts"),
            shared_store_wavefronts=total("shared", "store", "wavefronts"),
            bank_conflicts=sum(c.bank_conflicts for c in counted),
            l1_hits=sum(c.l1_hits for c in counted),
            l2_hits=sum(c.l2_hits for c in counted),
            l2_sectors=self.l2_sectors,
            dram_read_bytes=self.l2_read_misses * SECTOR_BYTES,
            dram_write_bytes=(self.l2_written_back + int(dirty_sectors(self.l2))) * SECTOR_BYTES,
            flops=sum(self.flops.values()),
            flops_by_dtype=dict(self.flops),
            barriers=self.barriers,
        )

    def _changed_globals(self):
        for (function, name), value in self.program.frozen.items():
            now = translate.captured(function).get(name, value)
            if now is not value and now != value:
                line = self.source.first_line
                yield Finding(
                    "changed-global",
                    "advice",
                    f"`{name}` is {now} now, but the kernel was compiled when it was {value}, and numba keeps "
                    "that: run the "
                    f"kernel's cell again, or use `labkit.specialise(kernel, {name}={now})`.",
                    line,
                )

    def _samples(self) -> Samples:
        numbers = {block: number for number, block in enumerate(self.recorded)}
        warps = self.warps_per_block
        parts = []
        for block, site, threads, places in self.sampled:
            if site < 0:  # a barrier, whose line stands in place of the threads
                parts.append((numbers[block], site, np.arange(warps), threads, np.full((warps, WARP_LANES), -1)))
                continue
            index = np.full(warps * WARP_LANES, -1, np.int64)
            index[threads] = places
            index = index.reshape(warps, WARP_LANES)
            present = np.unique(threads // WARP_LANES) if len(threads) < self.threads else np.arange(warps)
            parts.append((numbers[block], site, present, self.sites[site].line, index[present]))
        lengths = [len(p[2]) for p in parts]

        def column(position):
            return np.repeat(np.array([p[position] for p in parts], np.int64), lengths)

        warp = np.concatenate([p[2] for p in parts]) if parts else np.zeros(0, np.int64)
        index = np.concatenate([p[4] for p in parts]) if parts else np.zeros((0, WARP_LANES), np.int64)
        return Samples(tuple(self.recorded.values()), column(0), column(1), warp, column(3), index)


def _plain(index):
    return tuple(int(i) for i in index) if isinstance(index, (tuple, list)) else (int(index),)


def _dtype_name(name):
    return "bool" if name in ("bool", "boolean") else name

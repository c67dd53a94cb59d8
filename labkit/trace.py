"""Trace of a simulated launch: plain, frozen data for views, checks, rooflines and grades.

A `Trace` does not depend on the simulator that made it. Line numbers are those of the kernel's file or notebook cell;
`Trace.source` holds the text, and `Trace.first_line` is the number of its first line.
"""

from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any, Literal

import numpy as np
from jaxtyping import Int, Integer

from labkit import layout
from labkit.formats import TYPES
from labkit.table import count_text

Space = Literal["global", "shared", "local", "constant"]
Kind = Literal["load", "store", "atomic"]
Severity = Literal["error", "advice"]

SECTOR_BYTES = 32
WARP_LANES = 32
BANKS = 32
TENSOR = " tensor"  # suffix of precisions on tensor cores

# NumPy's types by numba's names, if these differ or NumPy lacks the type.
_NUMPY_NAMES = {"boolean": "bool"} | {name: str(format.dtype) for name, format in TYPES.items() if format.is_bits}


@dataclass(frozen=True)
class Site:
    """One access to an array in the source: `s[t] += s[t + k]` has three.

    `line` and `column` are those of the subscript (1-based line, 0-based column), `text` is the subscript as written,
    `array` the array's name in the kernel. `elements` is the number of neighbours per access: more than one for a
    vector access, such as `ptx.load4`. `offset_bytes` is where in its element the access begins, for fields of records.
    """

    line: int
    column: int
    array: str
    kind: Kind
    space: Space
    dtype: str
    text: str
    elements: int = 1
    offset_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of one lane's access."""
        return self.elements * np.dtype(_NUMPY_NAMES.get(self.dtype, self.dtype)).itemsize


@dataclass(frozen=True)
class Sample:
    """Record that only some blocks of the grid ran, so that totals are estimates.

    relative_errors: the standard error of each total over the total, by its name in `Counters`; 0 if all blocks that
    ran in one part of the grid (its corners, edges, inside) did the same. L1 starts empty for the blocks that share an
    SM: hits on lines of earlier blocks are missing.
    """

    blocks_run: int
    blocks_in_grid: int
    relative_errors: dict[str, float]


@dataclass(frozen=True)
class SiteCounters:
    """Counters of the whole grid at one site.

    accesses: active lanes. requests: warp instructions. bytes: requested by the lanes. sectors: 32-byte sectors of
    global memory, summed over requests. wavefronts: passes through the shared-memory banks; bank_conflicts: those
    beyond one per request (two for 64 bits per lane, four for 128, and half as many for loads whose lanes read the same
    address in pairs). l1_hits: sectors of loads found in L1; stores never hit it. l2_hits: sectors that missed L1 and
    were found in the L2 partition next to the SM. alone: loads from a shared array with no copy to it in flight, in a
    kernel with asynchronous copies. For a sample of the grid these are estimates, and `l2_hits` is None. past_l1: loads
    that bypass L1.
    """

    site: Site
    accesses: int = 0
    requests: int = 0
    bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    bank_conflicts: int = 0
    l1_hits: int = 0
    l2_hits: int | None = 0
    alone: int = 0
    past_l1: bool = False


@dataclass(frozen=True)
class Counters:
    """Totals of a launch, counted at source level.

    Loads and stores are lane accesses; an atomic counts as `global_atomics` or `shared_atomics`. `flops` counts each
    floating-point add, subtract, multiply and divide of an active lane, and two for `fma`; a power with a constant
    integer exponent counts the multiplications to which it is compiled, a complex number the operations on its parts (6
    in a product, 9 in a quotient). Calls of functions such as `math.sqrt` count 0. `flops_by_dtype` splits them
    ("float32", "float64", ...); operations of tensor cores, also on integers, have names such as "bfloat16 tensor" and
    "int8 tensor", as in `gpus.Gpu.peak_tflops`. `l2_sectors` are those that SMs request from L2. DRAM
    bytes come from the cache model; of those written, `l2_dirty_bytes` are still in L2 when the kernel ends. `barriers`
    counts block barriers passed, summed over blocks. If only a sample of the grid ran, `sample` describes it: the
    totals are estimates, and `l2_hits` and the DRAM bytes are None.
    """

    global_loads: int = 0
    global_stores: int = 0
    global_atomics: int = 0
    shared_loads: int = 0
    shared_stores: int = 0
    shared_atomics: int = 0
    global_load_requests: int = 0
    global_store_requests: int = 0
    global_load_sectors: int = 0
    global_store_sectors: int = 0
    global_bytes: int = 0
    shared_load_wavefronts: int = 0
    shared_store_wavefronts: int = 0
    bank_conflicts: int = 0
    l1_hits: int = 0
    l2_hits: int | None = 0
    l2_sectors: int = 0
    dram_read_bytes: int | None = 0
    dram_write_bytes: int | None = 0
    l2_dirty_bytes: int | None = 0
    flops: int = 0
    flops_by_dtype: dict[str, int] = field(default_factory=dict)
    barriers: int = 0
    sample: Sample | None = None

    @property
    def dram_bytes(self) -> int:
        if self.sample or self.dram_read_bytes is None or self.dram_write_bytes is None:
            raise ValueError(
                "a sample of the grid does not tell DRAM bytes, since all blocks share L2: simulate a whole grid, of a "
                "smaller problem if need be"
            )
        return self.dram_read_bytes + self.dram_write_bytes

    @property
    def l1_hit_rate(self) -> float:
        """Share of global load sectors that hit in L1."""
        return self.l1_hits / self.global_load_sectors if self.global_load_sectors else 0.0


@dataclass(frozen=True)
class ThreadId:
    """A thread, given by the indices of its block and of the thread in it (x, y, z)."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def named(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> str:
        """Return the thread in words, with as many coordinates as the launch has: "thread (3, 1) of block 0"."""
        return f"thread {_coordinates(self.thread, block)} of block {_coordinates(self.block, grid)}"


def _coordinates(index, shape):
    rank = max((axis + 1 for axis, size in enumerate(shape) if size > 1), default=1)
    return str(index[0]) if rank == 1 else f"({', '.join(map(str, index[:rank]))})"


@dataclass(frozen=True, repr=False)
class Finding:
    """An error of a launch, or advice, from the simulator.

    kind is one of: race, in-flight, proxy, early (an access before `ptx.launch_wait`, while the previous launch may
    run), barrier, mbarrier, cluster, deadlock, mask, shuffle, warpgroup, bounds, misaligned, uninitialised,
    zero-division, raised (errors); uncoalesced, bank-conflict, float64, negative-index, idle-lanes, tail, one-axis (a
    launch along x of a kernel that uses `grid(2)`), lane-wait (lanes of a warp that wait for one another),
    repeated (elements that several blocks read before an atomic), changed-global, float-range (a float as a bound of
    `range`), same-memory, sample, time-limit (advice); unwritten (an error where a result is lost for certain); order
    (the result depends on the order of warps: an error, or advice where atomics decide it).
    `message` is written for learners; `remedy`, its last part, is the fix, if one is known. `threads` holds the two
    threads of a race (or the one at fault), `other_line` the second line of a race, `count` the occurrences.
    """

    kind: str
    severity: Severity
    message: str
    line: int
    column: int = 0
    array: str | None = None
    index: tuple[int, ...] | None = None
    threads: tuple[ThreadId, ...] = ()
    other_line: int | None = None
    count: int = 1
    remedy: str = ""

    @property
    def fact(self) -> str:
        """Message without its remedy, for learners who want to find it themselves."""
        fact = self.message.removesuffix(self.remedy).rstrip(" ,;:")
        return fact if fact.endswith(".") else f"{fact}."

    @property
    def is_between_blocks(self) -> bool:
        """Whether it is a race of threads in two blocks."""
        return self.kind == "race" and len({thread.block for thread in self.threads}) > 1

    def __repr__(self):
        return f"<{self.severity}, {self.kind}: {self.message}>"


@dataclass(frozen=True)
class Raised:
    """An exception of a thread: its built-in class, its arguments, and where it was raised."""

    error: str
    arguments: tuple
    function: str
    line: int
    thread: ThreadId


@dataclass(frozen=True)
class ArrayInfo:
    """An array that the kernel accessed; shared and local arrays are those of one block or thread.

    `base_address` is the first byte of its first element, `strides_bytes` the distances of neighbours along each axis,
    negative for a reversed axis. Elements are given by their flat index in C order, in any layout; -1 means none.
    `line` is where the kernel makes a shared or local array; 0 for an argument.
    """

    name: str
    space: Space
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    strides_bytes: tuple[int, ...]
    base_address: int = 0
    line: int = 0

    def addresses(self, elements: Integer[np.ndarray, "*any"]) -> Integer[np.ndarray, "*any"]:
        """Return the address of each element; -1 for none."""
        distances = layout.element_offsets(elements, self.shape, self.strides_bytes)
        return np.where(elements >= 0, self.base_address + distances, -1)

    def pieces(
        self, elements: Integer[np.ndarray, "*any"], piece_bytes: int, offset_bytes: int = 0
    ) -> Integer[np.ndarray, "*any"]:
        """Return the number of the piece of memory (a sector, a line) with a byte of each element; -1 for none.

        Pieces are counted from byte 0 of the memory. `offset_bytes` selects the byte of an element.
        """
        return np.where(elements >= 0, (self.addresses(elements) + offset_bytes) // piece_bytes, -1)

    def elements_in(self, piece: int, piece_bytes: int) -> Int[np.ndarray, " elements"]:
        """Return the elements in a piece of memory, also those only partly in it, in the order of their addresses."""
        if 0 in self.shape:
            return np.zeros(0, np.int64)
        bytes_ = np.arange(piece * piece_bytes - self.itemsize + 1, (piece + 1) * piece_bytes)
        elements = layout.elements_at_offsets(bytes_ - self.base_address, self.shape, self.strides_bytes)
        inside = (elements >= 0) & (elements < prod(self.shape))
        return elements[inside & (self.addresses(elements) == bytes_)]


@dataclass(frozen=True)
class Samples:
    """Raw accesses of a few chosen blocks, one row per warp instruction, in the order of execution.

    block: index into `blocks`; site: index into `Trace.sites`, or -1 for a block barrier; warp: warp in the block;
    line: source line; index: flat element index (C order) of each of the 32 lanes in the site's array, -1 for an
    inactive lane. `complete` is false if later accesses of a long run were not recorded.
    """

    blocks: tuple[tuple[int, int, int], ...]
    block: np.ndarray
    site: np.ndarray
    warp: np.ndarray
    line: np.ndarray
    index: np.ndarray
    complete: bool = True

    def __len__(self):
        return len(self.site)


@dataclass(frozen=True)
class Event:
    """A request, arrival or wait of a warp, in the order of its program.

    The kinds, with the meaning of `at`, `amount` and `count`:

    - "init": barrier `at` is initialised for phases of `amount` arrivals
    - "arrive": `count` arrivals at barrier `at`, which expects `amount` bytes more
    - "copy": TMA loads `amount` bytes to `array`, and counts them at barrier `at`
    - "wait": for the end of phase `amount` of barrier `at`; -1 is before the first
    - "barrier sync", "barrier arrive": arrival at named barrier `at` of `amount` threads, with or without a wait
    - "block": the barrier of the block
    - "product": the tensor cores execute `amount` FLOP of this warp, with a tile of `array`
    - "commit", "finish": the end of a group of products, and a wait for all but the `amount` newest groups
    - "store": TMA stores `amount` bytes from `array`
    - "commit stores", "finish stores": the same for stores
    - "end": the end of the kernel

    `operations` and `powers` are a lane's work on CUDA cores so far, counted at source level: adds, subtracts,
    multiplies and divides, and calls of `ptx.exp2`. They are means over the warps that ran together.
    """

    block: tuple[int, int, int]
    warp: int
    line: int
    kind: str
    at: str = ""
    array: str = ""
    amount: int = 0
    count: int = 1
    operations: float = 0.0
    powers: float = 0.0


@dataclass(frozen=True)
class ThreadStep:
    """One executed statement of the inspected thread: its line, and the variables after it."""

    line: int
    variables: dict[str, Any]


class BaseTrace:
    """Base of the traces of kernels and of CPU loops: access to `arrays` and `findings`."""

    arrays: tuple[ArrayInfo, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def advice(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "advice")

    def array(self, name: str) -> ArrayInfo:
        """Return an array by its name; a KeyError lists the existing names."""
        for info in self.arrays:
            if info.name == name:
                return info
        raise KeyError(f"the code has no array {name!r}; it has {', '.join(a.name for a in self.arrays)}")


@dataclass(frozen=True)
class Trace(BaseTrace):
    """Trace of a simulated launch.

    `outputs` are the arguments after the run; empty if only a sample of the grid ran (`counters.sample`), whose results
    are incomplete. `blank` marks the elements that no launch has written yet, by the argument's name, for each device
    array that had some before this launch. `events` are those of the blocks in `samples`, for kernels with mbarriers,
    named barriers or `wgmma`; empty if there were too many to store. `raised` is the first exception of a thread.
    `float64_lines` are the lines that compute in float64.
    """

    kernel: str
    source: str
    filename: str
    first_line: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    gpu: str
    shared_bytes: int
    outputs: tuple[Any, ...]
    arrays: tuple[ArrayInfo, ...]
    sites: tuple[SiteCounters, ...]
    counters: Counters
    findings: tuple[Finding, ...]
    samples: Samples
    events: tuple[Event, ...] = ()
    steps: tuple[ThreadStep, ...] = ()
    printed: tuple[str, ...] = ()
    blank: dict[str, np.ndarray] = field(default_factory=dict)
    raised: Raised | None = None
    float64_lines: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return source, launch, layouts of arrays, sites, findings and counters as data for JSON, without contents."""
        names = "kernel source filename first_line grid block gpu shared_bytes printed".split()
        data = {name: getattr(self, name) for name in names}
        for name in ("arrays", "sites", "findings"):
            data[name] = [asdict(item) for item in getattr(self, name)]
        data["counters"] = asdict(self.counters)
        return data

    def __repr__(self):
        sample = self.counters.sample
        part = f" ({sample.blocks_run} blocks of it)" if sample else ""
        return (
            f"<Trace of {self.kernel}: grid {self.grid}{part}, block {self.block}, "
            f"{count_text(len(self.errors), 'error')}, {count_text(len(self.advice), 'piece')} of advice>"
        )

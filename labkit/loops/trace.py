"""`trace(loop, *args)`: runs a loop and sends every access through a model of a CPU's caches."""

import ast
import re
import textwrap
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from labkit.loops.instrument import Instrumented, instrument, source_line
from labkit.loops.loop_trace import LoopCounters, LoopSamples, LoopSite, LoopTrace
from labkit.loops.memory import FLOPS, ITERATIONS, LOGGED, WHOLE_INDEX, Notes, count_accesses, look_up_lines
from labkit.machine.gpus import Cpu
from labkit.machine.gpus import cpu as named_cpu
from labkit.simulator.caches import dirty_sectors, make_cache
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.seam import NumbaError, is_installed, njit
from labkit.trace import ArrayInfo, Finding

PAGE_BYTES = 4096
LOG_CAPACITY = 1 << 16
MAX_ACCESSES = 20_000_000  # some seconds of work
MAX_ITERATIONS = 50_000_000  # of all loops together, also where `most_accesses` is given: a loop may access nothing
MAX_ELEMENTS = 10**6  # that are counted one by one


def trace(
    loop: Callable,
    *args,
    cpu: str | Cpu = "Ryzen 7 5800X",
    most_accesses: int | None = None,
    record: int = 0,
) -> LoopTrace:
    """Run a loop on copies of its arguments and count which cache level serves each access.

    Parameters
    ----------
    loop
        Python function of `for` and `while` loops over array elements, decorated with `njit` or plain.
    *args
        Its arguments, NumPy arrays of up to three dimensions and numbers; they are not modified.
    cpu
        Name in `labkit.machine.gpus.CPUS`, or a `Cpu`, whose caches are modelled.
    most_accesses
        Number of accesses after which to stop, a sample of a long run. By default a loop with more than 20 million is
        refused. More than 50 million iterations are refused in either case.
    record
        Number of first accesses to keep one by one, in `LoopTrace.samples`.

    Raises
    ------
    KernelError
        The loop has a construct that cannot be traced, or fails; the message names the line.
    LaunchError
        An argument has an unsupported type.
    ModuleNotFoundError
        numba is not installed.
    """
    if not is_installed:
        raise ModuleNotFoundError("a loop has the types that numba gives it: pip install numba", name="numba")
    machine = named_cpu(cpu) if isinstance(cpu, str) else cpu
    copies = tuple(_copy(position, value) for position, value in enumerate(args))
    try:
        instrumented = instrument(loop, copies)
    except TypeError as error:
        raise LaunchError(str(error)) from None
    memory = _SimulatedMemory(machine, instrumented, _arrays_by_name(instrumented, copies), record)
    complete = _run(instrumented, copies, memory, most_accesses)
    return _result(instrumented, machine, copies, memory, complete)


def _copy(position, value):
    if isinstance(value, np.ndarray):
        if value.ndim not in (1, 2, 3) or value.dtype.kind not in "iufb":
            raise LaunchError(
                f"argument {position} is an array of {value.dtype} with {value.ndim} dimensions: "
                "a loop takes arrays of numbers with one to three"
            )
        copy = value.copy(order="K")
        return copy if copy.flags.forc else np.ascontiguousarray(copy)
    if isinstance(value, bool | int | float | np.number):
        return value
    raise LaunchError(f"argument {position} is a {type(value).__name__}: a loop takes NumPy arrays and numbers")


def _arrays_by_name(instrumented, copies):
    code = instrumented.generator.__code__
    names = code.co_varnames[: len(copies)]
    return {name: value for name, value in zip(names, copies, strict=True) if isinstance(value, np.ndarray)}


class _SimulatedMemory:
    """A CPU's caches and memory, in which each array begins on a page of its own."""

    def __init__(self, machine: Cpu, instrumented: Instrumented, arrays: dict[str, np.ndarray], record: int):
        sites = instrumented.sites
        levels, sizes = len(machine.caches) + 1, [array.size for array in arrays.values()]
        pages = [-(-array.nbytes // PAGE_BYTES) for array in arrays.values()]
        names = list(arrays)
        self.arrays = arrays
        self.line_bytes = machine.caches[0].line_bytes
        self.caches = [make_cache(c.bytes, c.ways, self.line_bytes, self.line_bytes) for c in machine.caches]
        self.addresses = np.cumsum([1, *pages[:-1]]) * PAGE_BYTES
        self.offsets = np.cumsum([0, *sizes[:-1]])
        self.array_of_site = np.array([names.index(site.array) for site in sites], np.int64)
        self.itemsizes = np.array([array.itemsize for array in arrays.values()])
        self.is_store = np.array([site.kind == "store" for site in sites], bool)
        self.notes = Notes(
            tally=np.zeros(3, np.int64),
            log=np.zeros((LOG_CAPACITY, 2), np.int64),
            strays=np.zeros((len(sites), 2, 4), np.int64),
            rounds=np.zeros(len(instrumented.loops), np.int64),
        )
        self.served = np.zeros((len(sites), levels), np.int64)
        self.elements = np.zeros((sum(sizes) if sum(sizes) <= MAX_ELEMENTS else 0, levels), np.uint32)
        self.written_back = 0
        self.record = record
        self.recorded: list[np.ndarray] = []

    def drain(self, most: int) -> int:
        """Send at most `most` of the logged accesses through the caches; return how many the log had, and empty it."""
        logged = int(self.notes.tally[LOGGED])
        log = self.notes.log[: min(logged, most)]
        self.notes.tally[LOGGED] = 0
        site = log[:, 0]
        array = self.array_of_site[site]
        lines = (self.addresses[array] + log[:, 1] * self.itemsizes[array]) // self.line_bytes
        level = np.zeros(len(log), np.int64)
        for depth, cache in enumerate(self.caches):
            evicted = look_up_lines(cache, depth, lines, self.is_store[site], level)  # 1 is added to `level` of misses
        self.written_back += evicted  # dirty lines of the last cache, which go to DRAM
        count_accesses(log, level, self.offsets[self.array_of_site], self.served, self.elements)
        if self.record:
            first = slice(0, self.record)
            self.recorded.append(np.column_stack([log[first], level[first]]))
            self.record -= len(self.recorded[-1])
        return logged


def _run(instrumented: Instrumented, copies, memory: _SimulatedMemory, most_accesses: int | None) -> bool:
    """Run the loop, and return whether it ran to its end with no more than `most_accesses`."""
    loop = _compile(instrumented)
    left = most_accesses or MAX_ACCESSES
    try:
        for _ in loop(*copies, memory.notes, *instrumented.outer_numbers.values()):  # pauses when the log is full
            left -= memory.drain(left)
            if left <= 0 and most_accesses:
                return False
            if left < 0 or memory.notes.tally[ITERATIONS] > MAX_ITERATIONS:
                raise _timeout_error(instrumented.loops, memory.notes)
    except NumbaError as error:
        raise _explain_error(error, instrumented) from None
    except RuntimeError:  # numba's own analysis gives up on some loops that cannot end
        raise KernelError(
            "numba cannot compile this loop; make sure that each `while` loop changes what its condition reads",
            instrumented.first_line,
        ) from None
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        lines = instrumented.dividing or (instrumented.first_line,)
        others = f", or in line {' or '.join(map(str, lines[1:]))}" if lines[1:] else ""
        raise KernelError(f"the loop stopped here{others}: {error}", lines[0]) from None
    left -= memory.drain(left)
    if left < 0 and not most_accesses:
        raise _timeout_error(instrumented.loops, memory.notes)
    return left >= 0


def _timeout_error(loops, notes):
    """Return the error for the running `while` loop with most iterations, else for such a `for` loop."""
    rounds = zip(loops, notes.rounds.tolist(), strict=True)
    is_while, count, line = max((is_while, count, line) for (line, is_while), count in rounds if count)
    if is_while:
        message = f"this `while` loop was stopped in round {count:,}; make sure that its condition turns false"
    else:
        reason = "for tracing it takes too long; use smaller arrays or fewer rounds, such as a `range` with a step"
        message = f"this loop was stopped in round {count:,}, {reason}"
    return KernelError(message, line)


@lru_cache(maxsize=64)
def _compile(instrumented: Instrumented) -> Callable:
    return njit(instrumented.generator)


def _explain_error(error, instrumented):
    location = getattr(error, "loc", None)
    line = location.line if location else instrumented.first_line
    reason = str(error)
    message = next((text for text in reason.splitlines() if WHOLE_INDEX in text), None)
    text = source_line(instrumented.filename, line)
    if message is None and (whole := re.search(r"range\((?:.*, )?(\w+\.shape)\)", text)):
        message = (
            f"`{whole[1]}` has one length per axis: write `{whole[1]}[0]` for the rows, `{whole[1]}[1]` for columns"
        )
    if message is None:
        message = f"numba cannot compile `{text}`: its types do not go together, or a name has no value yet"
    return KernelError(message.removeprefix("TypingError: ").strip(), line)


def _result(instrumented, machine, copies, memory: _SimulatedMemory, complete) -> LoopTrace:
    sites = tuple(
        LoopSite(site, tuple(map(int, served))) for site, served in zip(instrumented.sites, memory.served, strict=True)
    )
    infos = []
    for (name, array), address in zip(memory.arrays.items(), memory.addresses, strict=True):
        layout = array.shape, str(array.dtype), array.itemsize, array.strides
        infos.append(ArrayInfo(name, "global", *layout, int(address)))
    return LoopTrace(
        kernel=instrumented.generator.__name__,
        source=instrumented.source,
        filename=instrumented.filename,
        first_line=instrumented.first_line,
        cpu=machine.name,
        levels=(*(level.name for level in machine.caches), "DRAM"),
        outputs=copies,
        arrays=tuple(infos),
        sites=sites,
        counters=_counters(sites, memory),
        findings=tuple(_findings(instrumented, infos, memory.notes.strays)),
        elements=_elements(memory),
        samples=_samples(memory),
        complete=complete,
    )


def _counters(sites, memory):
    served = memory.served.sum(axis=0)
    return LoopCounters(
        loads=sum(s.accesses for s in sites if s.site.kind == "load"),
        stores=sum(s.accesses for s in sites if s.site.kind == "store"),
        served=tuple(map(int, served)),
        flops=int(memory.notes.tally[FLOPS]),
        dram_read_bytes=int(served[-1]) * memory.line_bytes,
        dram_write_bytes=(memory.written_back + dirty_sectors(memory.caches[-1])) * memory.line_bytes,
    )


def _elements(memory):
    if not memory.elements.size:
        return {}
    parts = np.split(memory.elements, memory.offsets[1:])
    return {
        name: np.stack([level.reshape(array.shape, order=_memory_order(array)) for level in part.T], axis=-1)
        for (name, array), part in zip(memory.arrays.items(), parts, strict=True)
    }


def _samples(memory):
    rows = np.concatenate([np.zeros((0, 3), np.int64), *memory.recorded])
    arrays = list(memory.arrays.values())
    for number, array in enumerate(arrays):
        rows_of_array = memory.array_of_site[rows[:, 0]] == number
        position = np.unravel_index(rows[rows_of_array, 1], array.shape, order=_memory_order(array))
        rows[rows_of_array, 1] = np.ravel_multi_index(position, array.shape)
    return LoopSamples(*rows.T.copy())


def _memory_order(array):
    return "C" if array.flags.c_contiguous else "F"


def _findings(instrumented, infos, all_strays):
    shapes = {info.name: info.shape for info in infos}
    strayed = {site.array for site, (row, _) in zip(instrumented.sites, all_strays, strict=True) if row[0]}
    for site, strays in zip(instrumented.sites, all_strays, strict=True):
        shape = shapes[site.array]
        for row, make_finding in zip(strays, (_bounds_finding, _wrapped_finding), strict=True):
            count, *first = map(int, row)
            if count:
                index = tuple(first[: len(shape)])
                yield make_finding(site, shape, index, count, instrumented, strayed - {site.array})


def _bounds_finding(site, shape, index, count, instrumented, others):
    size = f"is {' x '.join(map(str, shape))}" if len(shape) > 1 else f"has {shape[0]} element{'s' * (shape[0] != 1)}"
    doing = "reads" if site.kind == "load" else "writes"
    cure = _cure_outside(site, shape, index, instrumented, others)
    message = (
        f"Line {site.line}: `{site.text}` {doing} {site.array}[{_join_index(index)}], but {site.array} {size}. {cure}"
    )
    return Finding("bounds", "error", message, site.line, site.column, site.array, index, count=count, remedy=cure)


def _cure_outside(site, shape, index, instrumented, others):
    """Say at which loop an index goes outside; ask for the order of the indices, or for the lengths of both loops.

    It is the loops if there are `others`, arrays that an index leaves as well.
    """
    axis = next(axis for axis, (i, size) in enumerate(zip(index, shape, strict=True)) if not -size <= i < size)
    subscript = ast.parse(site.text, mode="eval").body
    indices = getattr(subscript.slice, "elts", [subscript.slice]) if isinstance(subscript, ast.Subscript) else []
    name = ast.unparse(indices[axis]) if len(indices) == len(shape) else ""
    what = {1: ("elements",), 2: ("rows", "columns")}.get(len(shape))
    line = _line_of_loop(instrumented, name, site.line)
    if not line or not what or index[axis] < 0:
        return "Stop the loop at its edge, or guard the access with `if` or `min`."
    is_swapped = len(shape) == 2 and all(0 <= i < size for i, size in zip(index[::-1], shape, strict=True))
    limit = f"`{name}`, of the loop in line {line}, must stay below {shape[axis]:,}, the {what[axis]} of {site.array}"
    cure = f"{limit}: "
    if not is_swapped:
        return f"{cure}end its `range` there."
    other = ast.unparse(indices[1 - axis])
    if not others:
        swapped = ", ".join(ast.unparse(i) for i in indices[::-1])
        return f"{cure}end its `range` there, or write `{site.array}[{swapped}]` if that is the element that you mean."
    other_line = _line_of_loop(instrumented, other, site.line)
    if not other_line:
        return f"{cure}end its `range` there."
    first, second = sorted((line, other_line))
    exchange = _exchange_of_lengths(_read_tree(instrumented), first, second)
    return f"{limit}. Have the loops of lines {first} and {second} each other's lengths? Exchange them{exchange}."


def _read_tree(instrumented):
    tree = ast.parse(textwrap.dedent(instrumented.source))
    ast.increment_lineno(tree, instrumented.first_line - 1)
    return tree


def _exchange_of_lengths(tree, *lines):
    """Return what to write so that the loops of two lines have each other's lengths; "" if it takes more than a line.

    The lengths are exchanged where one line reads both from an array; else each range gets the other's end.
    """
    loops = {node.lineno: node for node in ast.walk(tree) if isinstance(node, ast.For)}
    ends = [_names_behind(tree, loops[line].iter) for line in lines]
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Tuple([ast.Name(one), ast.Name(other)])], ast.Attribute(ast.Name(array), "shape")):
                if [names & {one, other} for names in ends] in ([{one}, {other}], [{other}, {one}]):
                    return f", in line {node.lineno}: write `{other}, {one} = {array}.shape`"
    one, other = (ast.unparse(loops[line].iter) for line in lines)
    if not all(text.startswith("range(") and "," not in text for text in (one, other)):
        return ""
    return f": write `{other}` in line {lines[0]}, and `{one}` in line {lines[1]}"


def _names_behind(tree, node):
    """Return the names in an expression, and those of which they are made."""
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    for _ in made:
        for line in made:
            if ast.unparse(line.targets[0]) in names:
                names |= {name.id for name in ast.walk(line.value) if isinstance(name, ast.Name)}
    return names


def _line_of_loop(instrumented, name, line):
    """Return the line of the innermost loop over a name around a line; None if there is none."""
    tree = _read_tree(instrumented)
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max((n.lineno for n in loops if ast.unparse(n.target) == name), default=None)


def _wrapped_finding(site, shape, index, count, *_):
    cure = "check where the loop starts."
    message = (
        f"Line {site.line}: `{site.text}` uses the negative index {site.array}[{_join_index(index)}], "
        f"which counts from the end: {cure}"
    )
    where = site.line, site.column, site.array, index
    return Finding("negative-index", "advice", message, *where, count=count, remedy=cure)


def _join_index(index):
    return ", ".join(map(str, index))

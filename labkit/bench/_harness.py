"""The harness that times operations: steps and baselines, interleaved in one run.

Launches are replayed from a graph, over enough sets of operands that L2 holds none of them. Before that, each contender
runs once on fresh operands, and its error against float64 is recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from math import ceil, inf
from pathlib import Path
from statistics import median, quantiles

import numpy as np

from labkit import cuda
from labkit.arrays.workspace import CountingWorkspace, Workspace
from labkit.bench import _record
from labkit.calls import timing
from labkit.cuda import cpp
from labkit.formats import Format
from labkit.ladder import Ladder, Problem, Step, ladders, relative_error
from labkit.results.computed import add_computed

# Takes problem, format and device operands; returns a launch on a stream, which may have `facts` to record.
Contender = Callable[..., Callable[[object], object]]
TWIN = "CUDA C++"
MAX_SETS = 64
TIMES_L2 = 2  # bytes of all sets of operands together, at least
MAX_LAUNCH_MS = 200  # slower launches are left out
CALLING_MS = 100  # of calls, over which host time is measured


@dataclass(frozen=True)
class Table:
    """The contenders that a bench measures, and its record.

    Attributes
    ----------
    name
        Name of the record.
    title
        Title of the printed table.
    ladders
        Ladders whose steps are timed, on the problems and in the formats that they state.
    formats
        Further formats, for steps that support them.
    ours
        Contenders of this package other than steps, by name.
    baselines
        Returns the contenders from other libraries for a problem and format, by name.
    yardsticks
        Contenders that bound the time from below, such as a copy of equally many bytes.
    fastest
        Number of steps of a ladder that are timed in other formats than its first.
    times_l2
        Least size of all sets of operands together, as a multiple of L2.
    """

    name: str
    title: str
    ladders: tuple[Ladder, ...]
    formats: tuple[Format, ...] = ()
    ours: Mapping[str, Contender] = field(default_factory=dict)
    baselines: Callable[[Problem, Format], Mapping[str, Contender]] = lambda problem, format: {}
    yardsticks: Mapping[str, Contender] = field(default_factory=dict)
    fastest: int = 2
    times_l2: int = TIMES_L2


@dataclass(frozen=True)
class Time:
    """The time of a launch: median, interquartile range relative to it, and host time."""

    time_ms: float
    spread: float
    host_us: float


def run(table: Table, record: bool = False, out: Path | None = None) -> None:
    """Measure a table, print it, and store it if requested."""
    found = _record.require_gpu("times kernels")
    rows = [row for ladder in table.ladders for row in rows_of_ladder(table, ladder)]
    show(f"{table.title} on {found.name}", rows)
    _record.finish(table.name, rows, found.name, record, out)


def run_all(tables: Sequence[Table], record: bool = False, out: Path | None = None) -> None:
    """Run several tables, one after the other."""
    for table in tables:
        run(table, record, out)


def table_of(ladder: Ladder, title: str, formats: Sequence[Format] = (), **fields) -> Table:
    """Return the table of one ladder, which times all its steps in each format."""
    return Table(ladder.record, title, (ladder,), tuple(formats), fastest=len(ladder), **fields)


def of_operation(operation: str) -> Table:
    """Return the default table of an operation: all its steps, without baselines."""
    return Table(operation, operation, ladders(operation))


def rows_of_ladder(table: Table, ladder: Ladder) -> list[dict]:
    """Return a row for each step, problem, format and baseline."""
    rows: list[dict] = []
    for format in dict.fromkeys((*ladder.formats, *table.formats)):
        steps = [step for step in ladder if format in step.formats]
        if format != ladder.formats[0]:
            steps = sorted(steps, key=lambda step: _last_ms(rows, step, ladder.formats[0]))[: table.fastest]
        cases = [(problem, step) for step in steps for problem in step.benched]
        for problem, together in groupby(sorted(cases, key=_by_problem), key=_problem):
            timed = [step for _, step in together if _predicted_ms(rows, step, problem, format) <= MAX_LAUNCH_MS]
            rows += measure(table, problem, format, timed)
    return rows


def measure(table: Table, problem: Problem, format: Format, steps: Sequence[Step] = ()) -> list[dict]:
    """Return a row for each contender of ours and each of its baselines, timed in turns."""
    before = problem.operands(format)
    expected = problem.expected(problem.part(before), format)
    sets = on_gpu(before, number_of_sets(problem.min_bytes(format), table.times_l2))
    steps = [step for step in steps if step.takes(*sets[0], format=format)]
    ours = {step.slug: partial(_step, step, Workspace(cuda)) for step in steps} | table.ours
    twins = {step.slug: partial(_twin, step) for step in steps if _has_twin(step, format)}
    baselines = table.baselines(problem, format)
    kinds = {"ours": ours, "twin": twins, "baseline": baselines, "yardstick": table.yardsticks}
    launches = {
        (kind, name): [way(problem, format, *operands) for operands in sets]
        for kind, ways in kinds.items()
        for name, way in ways.items()
    }
    errors = {
        key: _error(problem, expected, of_sets[0], before, sets[0], format)
        for key, of_sets in launches.items()
        if key[0] != "yardstick"
    }
    resources = {step.slug: _resources(step, sets[0], format) for step in steps}
    time_of = times(launches)
    others = [key for key in launches if key[0] in ("baseline", "yardstick")]
    rows = []
    for name in ours:
        time = time_of["ours", name]
        row = {"operation": table.name, "step": name, "problem": str(problem), **problem.fields, "dtype": format.name}
        row |= {"time_ms": time.time_ms, "spread": time.spread, "host_us": time.host_us}
        row |= {"flops": int(problem.flops), "min_bytes": int(problem.min_bytes(format))}
        row = add_computed(row | {"error": errors["ours", name]} | resources.get(name, {}))
        keys = [("twin", name)] * (name in twins) + others
        rows += [_with_baseline(row, key, time_of[key], errors.get(key), launches[key][0]) for key in keys] or [row]
    return rows


def _with_baseline(row, key, time, error, launch):
    kind, name = key
    baseline = {"": TWIN if kind == "twin" else name, "time_ms": time.time_ms, "spread": time.spread}
    baseline |= getattr(launch, "facts", {})
    if error is not None:
        baseline["error"] = error
    return add_computed(row | {f"baseline_{field}".rstrip("_"): value for field, value in baseline.items()})


def times(contenders: Mapping) -> dict:
    """Time contenders in turns; each is a list of launches on operands of its own."""
    found = {}
    for name, samples in timing.gpu_samples_ms(contenders).items():
        time_ms, (low, _, high) = median(samples), quantiles(samples, n=4)
        calls = int(min(200, max(5, CALLING_MS / time_ms)))
        found[name] = Time(time_ms, (high - low) / time_ms, timing.host_time_us(contenders[name][0], calls))
    return found


def show(title: str, rows: list[dict]) -> None:
    """Print a line for each contender of ours, with its speed relative to each baseline."""
    lines: dict = {}
    for row in rows:
        line = lines.setdefault((row["dtype"], row["problem"], row["step"]), dict(row))
        if "baseline" in row:
            line[f"of_{row['baseline']}"] = row["ratio"]
    shares = dict.fromkeys(name for line in lines.values() for name in line if name.startswith("of_"))
    columns = {"dtype": "", "problem": "", "step": "", "time_ms": ".4f", "spread": ".1%", "host_us": ".0f"}
    columns |= {"tflops": ".2f", "gb_s": ".0f", **dict.fromkeys(shares, ".1%"), "error": ".1e"}
    for line in lines.values():
        if "workspace_bytes" in line:
            line["workspace_mb"], columns["workspace_mb"] = line["workspace_bytes"] / 1e6, ".1f"
    _record.show(title, list(lines.values()), columns)


# --- contenders ------------------------------------------------------------------------------------


def _step(step, workspace, problem, format, *operands):
    """Return a launch whose workspace is reused by later launches, as in a plan."""

    def launch(stream):
        for one in step.launches(*operands, format=format, workspace=workspace):
            one.run(stream)

    return launch


def _has_twin(step, format):
    """Say if a step has a CUDA C++ version; it is compiled for the step's first format."""
    return step.path in cpp.names() and format == step.formats[0]


def _twin(step, problem, format, *operands):
    (launch,) = step.launches(*operands, format=format)
    kernel = cpp.kernel(step.path)
    arrays = [argument for argument in launch.arguments if not np.isscalar(argument)]
    arguments = *arrays, *problem.cpp_sizes(format)
    return lambda stream: kernel[launch.grid, launch.block, stream, launch.shared_bytes](*arguments)


def _resources(step, operands, format) -> dict:
    """Return the largest number of registers per thread and the bytes of workspace, without those that are 0."""
    workspace = CountingWorkspace()
    kernels = [launch.kernel for launch in step.launches(*operands, format=format, workspace=workspace)]
    counts = [kernel.get_regs_per_thread() for kernel in kernels if hasattr(kernel, "get_regs_per_thread")]
    registers = max((count for of in counts for count in of.values()), default=0)
    found = {"registers": registers, "workspace_bytes": workspace.size_bytes}
    return {name: number for name, number in found.items() if number}


def _problem(case):
    return case[0]


def _by_problem(case):
    return type(case[0]).__name__, case[0].flops, tuple(case[0].fields.values())


def _last_ms(rows, step, format) -> float:
    """Return a step's time in the last problem of a format; infinite if it was left out."""
    problems = [row["problem"] for row in rows if row["dtype"] == format.name]
    found = (row["time_ms"] for row in rows if (row["step"], row["problem"]) == (step.slug, *problems[-1:]))
    return next(found, inf)


def _predicted_ms(rows, step, problem, format) -> float:
    """Predict a launch's time from the speed in the largest problem before; 0 if there was none."""
    before = [row for row in rows if row["step"] == step.slug and row["dtype"] == format.name and row["tflops"]]
    return problem.flops / before[-1]["tflops"] / 1e9 if before else 0.0


def copy_one_and_a_half(target, first, second):
    """Return a launch of one and a half matrix copies: three halves are read and three are written."""
    half = -(-target.shape[0] // 2)

    def launch(stream):
        target.copy_to_device(first, stream=stream)
        target[:half].copy_to_device(second[:half], stream=stream)

    return launch


# --- operands --------------------------------------------------------------------------------------


def number_of_sets(bytes_of_one: int, times_l2: int = TIMES_L2) -> int:
    """Return the number of operand sets whose total size is at least `times_l2` times that of L2."""
    return min(MAX_SETS, max(1, ceil(times_l2 * cuda.get_current_device().L2_CACHE_SIZE / max(1, bytes_of_one))))


def on_gpu(operands: tuple, count: int) -> list[tuple]:
    """Return several copies of the operands on the GPU."""
    return [tuple(cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in operands) for _ in range(count)]


def _error(problem, expected, launch, before, operands, format) -> float:
    """Return the relative error of a contender, which runs on operands as they were made."""
    for place in expected:
        operands[place].copy_to_device(before[place])
    cuda.synchronize()
    stream = timing.timing_stream()
    launch(stream)
    stream.synchronize()
    after = tuple(X.copy_to_host() if place in expected else before[place] for place, X in enumerate(operands))
    return relative_error(problem, expected, after, format)

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

# Takes problem, format and device operands; returns launch(stream), whose attribute `facts`, if any, is recorded.
Contender = Callable[..., Callable[[object], object]]
CUDA_CPP = "CUDA C++"
MAX_SETS = 64
L2_MULTIPLE = 2  # all sets of operands together are at least so many times as large as L2, which then keeps none
MAX_LAUNCH_MS = 200
CALLING_MS = 100  # of calls, over which host time is measured


@dataclass(frozen=True)
class Benchmark:
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
    steps_in_other_formats
        Number of a ladder's steps, the fastest first, that are timed in formats other than its first.
    l2_multiple
        Smallest total size of all operand sets, as a multiple of L2's size.
    max_launch_ms
        Steps that are predicted to take longer are left out.
    """

    name: str
    title: str
    ladders: tuple[Ladder, ...]
    formats: tuple[Format, ...] = ()
    ours: Mapping[str, Contender] = field(default_factory=dict)
    baselines: Callable[[Problem, Format], Mapping[str, Contender]] = lambda problem, format: {}
    yardsticks: Mapping[str, Contender] = field(default_factory=dict)
    steps_in_other_formats: int = 2
    l2_multiple: int = L2_MULTIPLE
    max_launch_ms: float = MAX_LAUNCH_MS


@dataclass(frozen=True)
class Time:
    """The time of a launch: median, interquartile range relative to it, and host time."""

    time_ms: float
    spread: float
    host_us: float


def run(benchmark: Benchmark, record: bool = False, out: Path | None = None) -> None:
    """Run a benchmark, print its table, and store it if requested."""
    gpu = _record.require_gpu("times kernels")
    rows = [row for ladder in benchmark.ladders for row in rows_of_ladder(benchmark, ladder)]
    print_comparison(f"{benchmark.title} on {gpu.name}", rows)
    _record.store_if_requested(benchmark.name, rows, gpu.name, record, out)


def run_all(benchmarks: Sequence[Benchmark], record: bool = False, out: Path | None = None) -> None:
    """Run several benchmarks, one after the other."""
    for benchmark in benchmarks:
        run(benchmark, record, out)


def benchmark_of_ladder(ladder: Ladder, title: str, formats: Sequence[Format] = (), **fields) -> Benchmark:
    """Return the benchmark of one ladder, which times all its steps in each format."""
    return Benchmark(ladder.record, title, (ladder,), tuple(formats), steps_in_other_formats=len(ladder), **fields)


def default_benchmark(operation: str) -> Benchmark:
    """Return the default benchmark of an operation: all its steps, without baselines."""
    return Benchmark(operation, operation, ladders(operation))


def rows_of_ladder(benchmark: Benchmark, ladder: Ladder) -> list[dict]:
    """Return a row for each step, problem, format and baseline."""
    rows: list[dict] = []
    for format in dict.fromkeys((*ladder.formats, *benchmark.formats)):
        steps = [step for step in ladder if format in step.formats]
        if format != ladder.formats[0]:
            steps = sorted(steps, key=lambda step: _last_time_ms(rows, step, ladder.formats[0]))
            steps = steps[: benchmark.steps_in_other_formats]
        cases = [(problem, step) for step in steps for problem in step.benched]
        for problem, same_problem in groupby(sorted(cases, key=_by_problem), key=lambda case: case[0]):
            timed = [
                step
                for _, step in same_problem
                if _predicted_ms(rows, step, problem, format) <= benchmark.max_launch_ms
            ]
            _record.report_progress(f"timing {benchmark.name} {problem} in {format.name}")
            rows += measure(benchmark, problem, format, timed)
    return rows


def measure(benchmark: Benchmark, problem: Problem, format: Format, steps: Sequence[Step] = ()) -> list[dict]:
    """Return a row for each contender of ours and each of its baselines, timed in turns."""
    host_operands = problem.operands(format)
    expected = problem.expected(problem.checked_part(host_operands), format)
    sets = copies_on_gpu(host_operands, count_operand_sets(problem.min_bytes(format), benchmark.l2_multiple))
    steps = [step for step in steps if step.takes(*sets[0], format=format)]
    ours = {step.slug: partial(_step_launch, step, Workspace(cuda)) for step in steps} | benchmark.ours
    cuda_cpp = {step.slug: partial(_cuda_cpp_launch, step) for step in steps if _has_cuda_cpp(step, format)}
    baselines = benchmark.baselines(problem, format)
    contenders_by_kind = {"ours": ours, "cuda_cpp": cuda_cpp, "baseline": baselines, "yardstick": benchmark.yardsticks}
    launches = {
        (kind, name): [contender(problem, format, *operands) for operands in sets]
        for kind, contenders in contenders_by_kind.items()
        for name, contender in contenders.items()
    }
    errors = {
        key: _error(problem, expected, launches_of_sets[0], host_operands, sets[0], format)
        for key, launches_of_sets in launches.items()
        if key[0] != "yardstick"
    }
    resources = {step.slug: _resources(step, sets[0], format) for step in steps}
    times = time_in_turns(launches)
    baseline_keys = [key for key in launches if key[0] in ("baseline", "yardstick")]
    rows = []
    for name in ours:
        time = times["ours", name]
        row = {"operation": benchmark.name, "step": name, "problem": str(problem), **problem.fields}
        row |= {"dtype": format.name, "time_ms": time.time_ms, "spread": time.spread, "host_us": time.host_us}
        row |= {"flops": int(problem.flops), "min_bytes": int(problem.min_bytes(format))}
        row = add_computed(row | {"error": errors["ours", name]} | resources.get(name, {}))
        keys = [("cuda_cpp", name)] * (name in cuda_cpp) + baseline_keys
        rows += [_with_baseline(row, key, times[key], errors.get(key), launches[key][0]) for key in keys] or [row]
    return rows


def _with_baseline(row, key, time, error, launch):
    kind, name = key
    baseline = {"": CUDA_CPP if kind == "cuda_cpp" else name, "time_ms": time.time_ms, "spread": time.spread}
    baseline |= getattr(launch, "facts", {})
    if error is not None:
        baseline["error"] = error
    return add_computed(row | {f"baseline_{field}".rstrip("_"): value for field, value in baseline.items()})


def time_in_turns(contenders: Mapping) -> dict:
    """Time contenders in turns; each is a list of launches on operands of its own."""
    times = {}
    for name, samples in timing.gpu_samples_ms(contenders).items():
        time_ms, (low, _, high) = median(samples), quantiles(samples, n=4)
        calls = int(min(200, max(5, CALLING_MS / time_ms)))
        times[name] = Time(time_ms, (high - low) / time_ms, timing.host_time_us(contenders[name][0], calls))
    return times


def print_comparison(title: str, rows: list[dict]) -> None:
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
    _record.print_table(title, list(lines.values()), columns)


# --- contenders ------------------------------------------------------------------------------------


def _step_launch(step, workspace, problem, format, *operands):
    """Return a launch whose workspace is reused by later launches, as in a plan."""

    def launch(stream):
        for kernel_launch in step.launches(*operands, format=format, workspace=workspace):
            kernel_launch.run(stream)

    return launch


def _has_cuda_cpp(step, format):
    """Say if a step has a CUDA C++ version; it is compiled for the step's first format."""
    return step.path in cpp.names() and format == step.formats[0]


def _cuda_cpp_launch(step, problem, format, *operands):
    (launch,) = step.launches(*operands, format=format)
    kernel = cpp.kernel(step.path)
    arrays = [argument for argument in launch.arguments if not np.isscalar(argument)]
    arguments = *arrays, *problem.cpp_sizes(format)
    return lambda stream: kernel[launch.grid, launch.block, stream, launch.shared_bytes](*arguments)


def _resources(step, operands, format) -> dict:
    """Return the largest number of registers per thread and the bytes of workspace, without those that are 0."""
    workspace = CountingWorkspace()
    kernels = [launch.kernel for launch in step.launches(*operands, format=format, workspace=workspace)]
    counts = [kernel.get_regs_per_thread() for kernel in kernels] if cuda.on_gpu() else []
    registers = max((count for by_signature in counts for count in by_signature.values()), default=0)
    found = {"registers": registers, "workspace_bytes": workspace.size_bytes}
    return {name: number for name, number in found.items() if number}


def _by_problem(case):
    """Return a key that sorts equal problems next to each other, and problems of one type by their FLOPs."""
    return type(case[0]).__name__, case[0].flops, tuple(case[0].fields.values())


def _last_time_ms(rows, step, format) -> float:
    """Return a step's time in the last problem of a format; infinite if it was left out."""
    problems = [row["problem"] for row in rows if row["dtype"] == format.name]
    found = (row["time_ms"] for row in rows if (row["step"], row["problem"]) == (step.slug, *problems[-1:]))
    return next(found, inf)


def _predicted_ms(rows, step, problem, format) -> float:
    """Predict a launch's time from the speed in the largest problem before; 0 if there was none."""
    earlier_rows = [row for row in rows if row["step"] == step.slug and row["dtype"] == format.name and row["tflops"]]
    return problem.flops / earlier_rows[-1]["tflops"] / 1e9 if earlier_rows else 0.0


def one_and_a_half_copies(target, first, second):
    """Return a launch of one and a half matrix copies: three halves are read and three are written."""
    half = -(-target.shape[0] // 2)

    def launch(stream):
        target.copy_to_device(first, stream=stream)
        target[:half].copy_to_device(second[:half], stream=stream)

    return launch


# --- operands --------------------------------------------------------------------------------------


def count_operand_sets(bytes_of_one: int, l2_multiple: int = L2_MULTIPLE) -> int:
    """Return the number of operand sets whose total size is at least `l2_multiple` times that of L2."""
    return min(MAX_SETS, max(1, ceil(l2_multiple * cuda.get_current_device().L2_CACHE_SIZE / max(1, bytes_of_one))))


def copies_on_gpu(operands: tuple, count: int) -> list[tuple]:
    """Return several copies of the operands on the GPU."""
    return [tuple(cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in operands) for _ in range(count)]


def _error(problem, expected, launch, host_operands, operands, format) -> float:
    """Return the relative error of a contender, which runs on operands as they were made."""
    for index in expected:
        operands[index].copy_to_device(host_operands[index])
    cuda.synchronize()
    stream = timing.timing_stream()
    launch(stream)
    stream.synchronize()
    results = tuple(X.copy_to_host() if index in expected else host_operands[index] for index, X in enumerate(operands))
    return relative_error(problem, expected, results, format)

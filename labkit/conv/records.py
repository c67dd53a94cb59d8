"""Recorded times of convolutions: those of our algorithms and of other libraries, by problem.

An algorithm is a step of a ladder, which is a series of kernels for one operation, each with one idea more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from statistics import median

from labkit import ladder, results
from labkit.conv.problem import BackwardData, BackwardFilter, Convolution, Forward
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS, Gpu

PREFIX = "conv_"
BATCHES = "conv_batches"  # with TF32 as a baseline
CHOICES = "conv_choices"  # prefix of the records with all algorithms in one run
KINDS = {"y": Forward, "x": BackwardData, "w": BackwardFilter}


@dataclass(frozen=True)
class Timed:
    """A recorded time of one algorithm or library for one problem.

    `workspace_bytes` is None if not recorded; `detail` is the choice of a library's own search.
    """

    time_ms: float
    workspace_bytes: int | None = None
    detail: str = ""


@dataclass(frozen=True)
class Measured:
    """A problem with times of our algorithms ("winograd/f4x4") and of other libraries ("torch"), the fastest first."""

    problem: Convolution
    dtype: str
    ours: Mapping[str, Timed] = field(default_factory=dict)
    baselines: Mapping[str, Timed] = field(default_factory=dict)

    @property
    def fastest(self) -> str:
        """Name of our fastest algorithm."""
        return next(iter(self.ours))

    @property
    def fastest_baseline(self) -> str:
        """Name of the fastest other library; "" without one."""
        return next(iter(self.baselines), "")

    @property
    def ratio(self) -> float | None:
        """Time of the fastest other library over our fastest time; None without one."""
        baseline = self.baselines.get(self.fastest_baseline)
        return baseline.time_ms / self.ours[self.fastest].time_ms if baseline else None

    def tflops(self, time_ms: float) -> float:
        """Return the effective TFLOP/s of a time, with the FLOPs of the definition."""
        return self.problem.flops / time_ms / 1e9


def machines() -> list[str]:
    """Return the GPUs with records of convolutions, as `labkit.results` names them."""
    return list(dict.fromkeys(machine for machine, operation in results.recorded() if operation.startswith(PREFIX)))


def gpu_of(machine: str) -> Gpu | None:
    """Return the data of a GPU; None if labkit does not know it."""
    return next((GPUS[gpu] for driver, gpu in GPU_BY_DRIVER_NAME.items() if results.slug(driver) == machine), None)


@cache
def measured(machine: str, dtype: str = "float32", result: str = "y") -> tuple[Measured, ...]:
    """Return every problem recorded on a GPU, for one result ("y": outputs; "x", "w": gradients).

    A library with several times gets their median; one that multiplies in another format, such as TF32, is left out.
    Records of `conv_choices`, with all algorithms in one run, replace those of single ladders.
    """
    ours, baselines = {}, {}
    steps = {f"{conv_ladder.name}/{step.slug}": step for conv_ladder in ladder.ladders("conv") for step in conv_ladder}
    operations = [name for gpu, name in results.recorded() if gpu == machine and name.startswith(PREFIX)]
    for operation in sorted(operations, key=lambda name: name.startswith(CHOICES)):  # these last
        for row in results.load(operation, machine).select(dtype=dtype):
            names = row["step"], f"{operation.removeprefix(PREFIX)}/{row['step']}"
            name = next((name for name in names if name in steps), None) or _unique_name(row["step"], steps)
            if name and steps[name].problem.result == result:  # `problem` is a class of problems
                _add_row(row, name, KINDS[result], ours, baselines)
    return tuple(
        Measured(problem, dtype, _by_time(times), _by_time(_medians(baselines.get(problem, {}))))
        for problem, times in ours.items()
    )


def timed_in_tf32(machine: str) -> dict[Convolution, tuple[str, float]]:
    """Return the library and time of each problem that was timed in TF32; none if nothing was."""
    if (machine, BATCHES) not in results.recorded():
        return {}
    rows = results.load(BATCHES, machine).select(baseline_dtype="tf32")
    return {problem_of(row, Forward): (row["baseline"], row["baseline_time_ms"]) for row in rows}


def _unique_name(slug, steps):
    """Return the only algorithm with this slug, or None."""
    names = [name for name in steps if name.endswith(f"/{slug}")]
    return names[0] if len(names) == 1 else None


def _add_row(row, name, kind, ours, baselines):
    problem = problem_of(row, kind)
    ours.setdefault(problem, {})[name] = Timed(row["time_ms"], row.get("workspace_bytes"))
    if row.get("baseline_time_ms") and row.get("baseline_dtype", row["dtype"]) == row["dtype"]:
        timed = Timed(row["baseline_time_ms"], row.get("baseline_workspace_bytes"), row.get("baseline_algorithm") or "")
        baselines.setdefault(problem, {}).setdefault(row["baseline"], []).append(timed)


def problem_of(row: Mapping, kind: type[Convolution]) -> Convolution:
    """Return the problem of a recorded row; `kind` is its class."""
    return kind(**{field.name: row[field.name] for field in fields(kind)})


def _medians(baselines):
    """Return the median time of each library, with the detail of its last run that has one."""
    medians = {}
    for name, times in baselines.items():
        last = next((timed for timed in reversed(times) if timed.detail), times[-1])
        medians[name] = Timed(median(timed.time_ms for timed in times), last.workspace_bytes, last.detail)
    return medians


def _by_time(times):
    return dict(sorted(times.items(), key=lambda item: item[1].time_ms))

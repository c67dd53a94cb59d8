"""What was measured of convolutions on a GPU: each problem with the times of our algorithms and of other libraries."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from statistics import median

from labkit import ladder, results
from labkit.conv.problem import BackwardData, BackwardFilter, Convolution, Forward
from labkit.machine.gpus import GPUS, NAMES_OF_DRIVER, Gpu

PREFIX = "conv_"
CHOICES = "conv_choices"  # so begin the records that have all algorithms, measured in one run
KINDS = {"y": Forward, "x": BackwardData, "w": BackwardFilter}


@dataclass(frozen=True)
class Timed:
    """One algorithm, or one library, on one problem.

    `workspace_bytes` is None where it was not recorded; `detail` is what a library's own search chose.
    """

    time_ms: float
    workspace_bytes: int | None = None
    detail: str = ""


@dataclass(frozen=True)
class Measured:
    """A problem that was measured: ours by algorithm ("winograd/f4x4"), baselines by name ("torch").

    Attributes
    ----------
    ours, baselines
        By their names, in the order of their times.
    """

    problem: Convolution
    dtype: str
    ours: Mapping[str, Timed] = field(default_factory=dict)
    baselines: Mapping[str, Timed] = field(default_factory=dict)

    @property
    def fastest(self) -> str:
        """The name of the fastest of ours."""
        return next(iter(self.ours))

    @property
    def fastest_baseline(self) -> str:
        """The name of the fastest baseline; "" where none was measured."""
        return next(iter(self.baselines), "")

    @property
    def ratio(self) -> float | None:
        """The fastest baseline's time over ours: above 1 we are faster."""
        if not self.baselines:
            return None
        return self.baselines[self.fastest_baseline].time_ms / self.ours[self.fastest].time_ms

    def tflops(self, time_ms: float) -> float:
        """Effective speed: FLOPs of the definition, however many were made."""
        return self.problem.flops / time_ms / 1e9


def machines() -> list[str]:
    """The GPUs on which convolutions were measured, as `labkit.results` names them."""
    return list(dict.fromkeys(machine for machine, operation in results.recorded() if operation.startswith(PREFIX)))


def gpu_of(machine: str) -> Gpu | None:
    """The figures of such a GPU; None where it is none that labkit knows."""
    return next((GPUS[ours] for theirs, ours in NAMES_OF_DRIVER.items() if results.slug(theirs) == machine), None)


@cache
def measured(machine: str, dtype: str = "float32", result: str = "y") -> tuple[Measured, ...]:
    """Every problem that was measured on a GPU, in one direction ("y": outputs, "x", "w": gradients).

    A baseline that was measured beside several ladders has the median of its times. What `conv_choices` has measured,
    all algorithms in one run, stands before the records of single ladders.
    """
    ours, baselines = {}, {}
    steps = {f"{each.name}/{step.slug}": step for each in ladder.ladders("conv") for step in each}
    operations = [operation for where, operation in results.recorded() if (where, operation[:5]) == (machine, PREFIX)]
    for operation in sorted(operations, key=lambda operation: operation.startswith(CHOICES)):
        for row in results.load(operation, machine).select(dtype=dtype):
            known = row["step"], f"{operation.removeprefix(PREFIX)}/{row['step']}"
            name = next((name for name in known if name in steps), None) or _alone(row["step"], steps)
            if name and steps[name].problem.result == result:
                _note(row, name, KINDS[result], ours, baselines)
    return tuple(
        Measured(problem, dtype, _in_order(times), _in_order(_medians(baselines.get(problem, {}))))
        for problem, times in ours.items()
    )


def _alone(slug, steps):
    """The algorithm with this slug, where there is one alone."""
    found = [name for name in steps if name.endswith(f"/{slug}")]
    return found[0] if len(found) == 1 else None


def _note(row, name, kind, ours, baselines):
    """One row of a record, put where it belongs."""
    problem = kind(**{each.name: row[each.name] for each in fields(kind)})
    ours.setdefault(problem, {})[name] = Timed(row["time_ms"], row.get("workspace_bytes"))
    if row.get("baseline_time_ms"):
        found = baselines.setdefault(problem, {}).setdefault(row["baseline"], [])
        detail = row.get("baseline_algorithm") or ""
        found.append(Timed(row["baseline_time_ms"], row.get("baseline_workspace_bytes"), detail))


def _medians(baselines):
    """Each baseline by the median of its times, and what it chose in the last run that tells."""
    chosen = {}
    for name, times in baselines.items():
        told = next((each for each in reversed(times) if each.detail), times[-1])
        chosen[name] = Timed(median(each.time_ms for each in times), told.workspace_bytes, told.detail)
    return chosen


def _in_order(times):
    return dict(sorted(times.items(), key=lambda item: item[1].time_ms))

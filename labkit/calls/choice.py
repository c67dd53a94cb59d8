"""Choice of what computes a call of an operation.

A candidate is a kernel with its tiling, or a step: one kernel of a ladder, which goes from naive to fastest. The best
available source orders the candidates:

1. times of this very call on this GPU (`labkit.calls.tuner`);
2. else recorded times (`labkit.results`) of this GPU, else of the most similar GPU with its compute capability; a step
   uses the records of the nearest problems;
3. else the estimate of a model, if the operation has one;
4. else the order of the ladder: later steps come first.

A candidate that does not accept the operands' layout yields to the next one.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import lru_cache
from math import inf, log, log2, prod
from typing import Any, NamedTuple

from labkit import cuda, results
from labkit.arrays.addresses import VECTOR_BYTES, address_of
from labkit.arrays.workspace import Workspace
from labkit.calls import tuning
from labkit.formats import FORMATS, Format
from labkit.ladder import Ladder, Launch, Problem, Step, TooLarge, ladders
from labkit.ptx.capabilities import can_run
from labkit.ptx.tensor_copies import TensorMap

MIN_DISTANCE = 1e-3  # octaves to another problem with the same compared sizes
OTHER_SIZE = 2  # octaves that a record in a format of another size adds to the distance
DOUBT = 0.02  # penalty, as a share of the time, per octave by which other steps have a nearer record
SM_THREADS = 2048  # that a multiprocessor of the recorded GPUs holds at a time


class CurrentGpu(NamedTuple):
    """Properties of this thread's GPU on which choices depend."""

    name: str
    capability: tuple[int, ...]
    sms: int

    @classmethod
    def now(cls) -> "CurrentGpu":
        gpu = cuda.get_current_device()
        return cls(tuning.gpu_name(), capability=tuple(gpu.compute_capability), sms=gpu.MULTIPROCESSOR_COUNT)


@dataclass(frozen=True)
class StepCandidate:
    """A step of a ladder, for `labkit.calls.tuning`."""

    step: Step

    def __str__(self):
        return f"{self.step.ladder.name}/{self.step.slug}"

    def as_data(self) -> str:
        """The name under which JSON stores the step."""
        return str(self)

    @property
    def kernels(self) -> list:
        """The functions from which `labkit.calls.tuning` finds all sources of the step."""
        return [self.step.module.launches]


class ChosenStep(NamedTuple):
    """A step and its launches."""

    step: Step
    launches: list[Launch]


def any_step(step: Step, problem: Problem) -> bool:
    """Return True: any step suits any problem."""
    return True


@dataclass(frozen=True)
class StepChooser:
    """Choice of the step that computes a problem, among all steps of an operation's ladders.

    Attributes
    ----------
    operation
        Name of the operation. Every step of its ladders that computes such problems may be chosen.
    sizes
        Attributes of a problem that give its distance to a record. The number counts octaves for a factor of 2, or for
        another value that is not a number.
    suits
        Predicate of a step and a problem: whether the step has the features that the call needs.
    features
        The features that the call needs; part of the question under which `labkit.calls.tuning` stores a choice.
    advice
        What to do if no step accepts the arrays.
    """

    operation: str
    sizes: tuple[tuple[str, float], ...]
    suits: Callable[[Step, Problem], bool] = any_step
    features: str = ""
    advice: str = "convert them to float32"

    def fastest(self, arrays: Sequence, problem: Problem, format: Format, workspace: Workspace) -> ChosenStep:
        """Return the fastest step that accepts arrays, in the order of the problem's operands, in their layout.

        Raise ValueError if no step accepts them; the message has each step's reason.
        """
        candidates = list(map(StepCandidate, self._in_order(problem, format)))
        question = f"{type(problem).__name__} {problem}, {format}{self.features}"
        refused = {}
        for candidate in fastest_first(self.operation, question, candidates):
            try:
                launches = candidate.step.launches(*arrays, problem, format=format, workspace=workspace)
                refused[candidate] = _misfit(candidate.step, launches)
            except TooLarge as error:
                refused[candidate] = error.why
            if not refused[candidate]:
                return ChosenStep(candidate.step, launches)
        capability = ".".join(map(str, CurrentGpu.now().capability[:2]))
        reasons = f" ({'; '.join(f'{candidate}: {why}' for candidate, why in refused.items())})" if refused else ""
        raise ValueError(
            f"no step takes {problem.message_name} {problem} in {format} on a GPU of compute capability {capability}"
            f"{reasons}: {self.advice}"
        )

    def ranked(self, problem: Problem, format: Format) -> tuple[Step, ...]:
        """Return the steps that suit a problem, in a format on this GPU, the fastest first.

        The order ignores each step's limits on sizes. It omits steps that fail their ladder's hard operands, such as
        huge scores. It also omits records of a step for problems that the step does not suit.
        """
        return _ranked(self, problem, format, CurrentGpu.now())

    def _in_order(self, problem, format) -> list[Step]:
        """Return the steps of `ranked`; in the simulator the steps that it runs fastest come first, suited or not."""
        simulated_first = [
            step
            for ladder in ladders(self.operation)
            for step in ladder
            if is_quick(step) and _computes(step, problem, format)
        ]
        return list(dict.fromkeys([*simulated_first, *self.ranked(problem, format)]))


def is_quick(step: Step) -> bool:
    """Return whether the simulator runs kernels, and the step declares itself `QUICK_TO_SIMULATE`."""
    return not cuda.on_gpu() and getattr(step.module, "QUICK_TO_SIMULATE", False)


def _misfit(step: Step, launches: Sequence[Launch]) -> str:
    """Return why launches do not run on this GPU, or run badly; "" if they run well."""
    gpu = cuda.get_current_device()
    max_bytes = gpu.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    copied = [value.array for launch in launches for value in launch.arguments if isinstance(value, TensorMap)]
    if any(address_of(X) % VECTOR_BYTES for X in copied):
        return f"an array does not begin at a multiple of {VECTOR_BYTES} bytes"
    if any(launch.shared_bytes > max_bytes for launch in launches):
        return f"a block takes more than the {max_bytes} bytes of shared memory that this GPU gives it"
    threads = max(_count(launch.grid) * _count(launch.block) for launch in launches)
    if getattr(step.module, "ONE_WAVE_ONLY", False) and threads > SM_THREADS * gpu.MULTIPROCESSOR_COUNT:
        return "it has more blocks than the GPU runs at the same time"
    return ""


def _count(extent: int | tuple[int, ...]) -> int:  # blocks of a grid, or threads of a block
    return prod(extent) if isinstance(extent, tuple) else extent


# --- the order of candidates ---------------------------------------------------------------------


def fastest_first(operation: str, question: str, candidates: Sequence) -> list:
    """Return the candidates, first the one that tuning, if it ran, found fastest on this GPU for the question.

    A question is a text that names the computation, its format, shape and layout. The others keep their order, which
    should be that of estimates (`sort_by_estimates`).
    """
    tuned = tuning.stored_choice(operation, question, candidates) if candidates else None
    ordered = sorted(candidates, key=lambda candidate: candidate != tuned)
    override = _override.get()
    return ordered if override is None else override(operation, question, ordered)


_override: ContextVar[Callable[[str, str, list], list] | None] = ContextVar("override", default=None)


@contextmanager
def override_choice(override: Callable[[str, str, list], list]) -> Iterator[None]:
    """Let a function of operation, question and ordered candidates order these, within a context."""
    token = _override.set(override)
    try:
        yield
    finally:
        _override.reset(token)


def sort_by_estimates(candidates: Sequence, *estimates: Callable[[Any], float | None]) -> list:
    """Return candidates, the fastest first.

    The first estimate that is not None gives a candidate's time. Candidates without an estimate come last, in their
    order.
    """

    def time(candidate):
        times = (estimate(candidate) for estimate in estimates)
        return next((time for time in times if time is not None), inf)

    return sorted(candidates, key=time)


# --- steps, by their records ---------------------------------------------------------------------


@lru_cache(1024)  # problems
def _ranked(chooser: StepChooser, problem, format, gpu: CurrentGpu) -> tuple[Step, ...]:
    steps = [
        step
        for ladder in ladders(chooser.operation)
        for step in reversed(ladder)
        if _computes(step, problem, format)
        and can_run(step.kernel, format.number, gpu.capability)
        and chooser.suits(step, problem)
    ]
    costs = _costs(problem, format, chooser.sizes, _times(steps, format, chooser.suits, gpu))
    return tuple(sort_by_estimates(steps, costs.get))


def _computes(step, problem, format) -> bool:
    # SUPPORTED of a step's file, or of its ladder, has the values of the problem's fields that the step takes
    supported = getattr(step.module, "SUPPORTED", getattr(step.ladder.module, "SUPPORTED", {}))
    is_of_kind = step.problem is type(problem) and format in step.formats
    return is_of_kind and not problem.misfit(supported) and _is_exact(step)


@lru_cache(1024)  # steps
def _is_exact(step) -> bool:
    """Return whether a step is as exact as its ladder, whose tested EXAMPLES may have kinds of `hard` operands.

    A step with a LOOSER_PROBLEM, which has larger error bounds, is not.
    """
    examples = [step.problem(*sizes) for sizes in getattr(step.ladder.module, "EXAMPLES", ())]
    required, computed = (
        {getattr(problem, "hard", None) for problem in problems} for problems in (examples, step.examples)
    )
    return not hasattr(step.module, "LOOSER_PROBLEM") and required <= computed


def _costs(problem, format, sizes, times) -> dict[Step, float]:
    """Return the logarithm of each step's time relative to the fastest step.

    For a recorded problem it is the recorded value, 0 for the fastest. For others it is the mean over all recorded
    problems, weighted by the inverse square of their distance. A step whose nearest record is farther off than other
    steps' gets a penalty.
    """
    relative = {}
    for (recorded, itemsize), step_times in times.items():
        if len(step_times) == 1:  # no other step to compare with
            continue
        distance = _octaves(problem, recorded, sizes) + OTHER_SIZE * (itemsize != format.itemsize)
        fastest = min(step_times.values())
        for step, time_ms in step_times.items():
            relative.setdefault(step, []).append((distance, log(time_ms / fastest)))
    nearest = min((distance for pairs in relative.values() for distance, _ in pairs), default=0)
    return {step: _mean(pairs) + DOUBT * (min(pairs)[0] - nearest) for step, pairs in relative.items()}


def _mean(pairs: list[tuple[float, float]]) -> float:
    """Return the mean of costs, given with the distance of their records in octaves."""
    exact = [(1, cost) for distance, cost in pairs if distance == 0]
    weighted = exact or [(distance**-2, cost) for distance, cost in pairs]
    return sum(weight * cost for weight, cost in weighted) / sum(weight for weight, _ in weighted)


def _octaves(problem: Problem, other: Problem, sizes) -> float:
    """Return the distance of two problems in octaves, by the compared sizes."""
    distance = 0.0
    for name, weight in sizes:
        x, y = getattr(problem, name), getattr(other, name)
        are_numbers = all(isinstance(size, int) and not isinstance(size, bool) for size in (x, y))
        distance += weight * (abs(log2(x / y)) if are_numbers else x != y)
    return 0 if problem == other else max(distance, MIN_DISTANCE)


def _times(steps, format, suits, gpu: CurrentGpu) -> dict[tuple[Problem, int], dict[Step, float]]:
    """Return the recorded times of steps in ms, by problem and bytes per element.

    A record in another format of the same size counts if there is none in this format.
    """
    times = {}
    for ladder in dict.fromkeys(step.ladder for step in steps):
        for step, problem, recorded, time_ms in _recorded(ladder, machine_for(ladder.record, gpu)):
            if step in steps and suits(step, problem):
                step_times = times.setdefault((problem, recorded.itemsize), {})
                if recorded == format or step not in step_times:
                    step_times[step] = time_ms
    return times


def recorded_ms(step: Step, problem: Problem, format: Format) -> float | None:
    """Return the time in ms recorded for a step and this very problem, on this GPU, else on the most similar one.

    Without a record in this format, it is that of another format of the same size; without any, None.
    """
    machine = machine_for(step.ladder.record, CurrentGpu.now())  # `record` names a file in labkit/results
    times = _by_problem(step.ladder, machine).get((step, tuple(problem.fields.values())), {})
    same_size = (time_ms for other, time_ms in times.items() if other.itemsize == format.itemsize)
    return times.get(format) or next(same_size, None)


@lru_cache(64)  # ladders
def _by_problem(ladder, machine):
    times = {}
    for step, problem, format, time_ms in _recorded(ladder, machine):
        times.setdefault((step, tuple(problem.fields.values())), {})[format] = time_ms
    return times


@lru_cache(64)  # ladders
def _recorded(ladder: Ladder, machine: str | None) -> list[tuple[Step, Problem, Format, float]]:
    """Return a machine's records of existing steps, for problems that have all fields."""
    if machine is None:
        return []
    steps, records = {step.slug: step for step in ladder}, []
    for row in results.load(ladder.record, machine).rows:
        step = steps.get(row.get("step", ""))
        names = [] if step is None else [field.name for field in fields(step.problem)]
        if step is not None and row.keys() >= {*names, "time_ms"} and row.get("dtype") in FORMATS:
            problem = step.problem(**{name: row[name] for name in names})
            records.append((step, problem, FORMATS[row["dtype"]], row["time_ms"]))
    return records


@lru_cache(256)  # records
def machine_for(record: str, gpu: CurrentGpu) -> str | None:
    """Return the machine whose records count for a GPU: the GPU itself, else the nearest of its compute capability."""
    for machine, capability in results.nearest(record, gpu.name, gpu.capability).items():
        if machine == results.slug(gpu.name):
            return machine
        if capability == gpu.capability[:2]:
            if cuda.on_gpu():
                _warn_about_gpu(machine, gpu.name)
            return machine
    return None


@lru_cache(64)  # machines
def _warn_about_gpu(machine, gpu):
    warnings.warn(
        f"some operations have no recorded times on this GPU, {gpu}, and those of {machine} choose their kernels: "
        "`python -m labkit tune` times them here",
        stacklevel=2,
    )

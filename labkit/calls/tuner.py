"""Tuning: times the candidates for a call on this GPU, and stores the fastest for later calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import ceil
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from labkit import cuda
from labkit.arrays.operands import as_view
from labkit.arrays.owners import owner_of
from labkit.arrays.views import OperandSlot
from labkit.arrays.workspace import CountingWorkspace
from labkit.calls import tuning
from labkit.calls.call import forget
from labkit.calls.choice import override_choice
from labkit.calls.memory import PlanWorkspace
from labkit.calls.operation import Operation, bind_call
from labkit.calls.plan import Plan, make_plan
from labkit.calls.route import new_array
from labkit.formats import Format
from labkit.ladder import Problem
from labkit.machine import device

MAX_CANDIDATES = 16  # candidates, the most promising ones
MAX_SETS = 128  # of operands; if even these fit in L2, kernels may hit in it


def tune(call: Callable, *arrays, most: int = MAX_CANDIDATES, **options) -> dict[object, float]:
    """Time the candidates for a call on this GPU; later calls on such arrays use the fastest.

    Compiling each candidate takes seconds; a progress bar shows the progress. The choice is stored on disk, for this
    GPU, until the source of the candidate changes. Tuning writes the arrays that the call writes, many times.

    Parameters
    ----------
    call
        A function of an operation: `norm.layer_norm`, `attention.attend` and so on.
    arrays, options
        Arrays and options of the call; arrays are on the device.
    most
        Number of timed candidates, the most promising ones.

    Returns
    -------
    The median time in ms of each candidate, the fastest first.

    Raises
    ------
    TypeError, ValueError
        `call` is no call of an operation, or it refuses the arrays.
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> tune(norm.layer_norm, x, weight, bias)
    """
    operation, operands, _ = bind_call(call, arrays, options, "tuned")
    return tune_sets(operation, [_with_outputs(operation, operands)], most)


def tune_problem(
    call: Callable,
    problem: Problem,
    format: Format,
    left_out: Sequence[str] = (),
    most: int = MAX_CANDIDATES,
    **options,
) -> dict[object, float]:
    """Time the candidates for a call on random operands of a problem, with enough sets of them that none stays in L2.

    Results and errors are those of `tune`.

    Parameters
    ----------
    problem
        The problem: its operands have the order of the call's arrays, and its sizes are options of the call.
    left_out
        Names of arrays that the call does not get.
    options
        Further options of the call.
    """
    check_gpu()
    operation, operands = bind_problem(call, problem, format, left_out, **options)
    set_bytes = sum(X.nbytes for X in operands.values())
    sets = make_operand_sets(set_bytes, lambda: {name: cuda.to_device(X) for name, X in operands.items()}, MAX_SETS)
    return tune_sets(operation, sets, most)


def bind_problem(
    call: Callable, problem: Problem, format: Format, left_out: Sequence[str] = (), **options
) -> tuple[Operation, dict[str, np.ndarray]]:
    """Return the operation of a call for a problem, and random operands by their names; see `tune_problem`."""
    operation = operation_of(call, problem, format, **options)
    arrays = [X for X in problem.operands(format)[:-1] if X is not None]
    operands = {name: X for name, X in zip(operation.arrays, arrays, strict=True) if name not in left_out}
    return operation, operands


def operation_of(call: Callable, problem: Problem, format: Format, **options) -> Operation:
    """Return the operation of a call for a problem, whose sizes are options of the call."""
    kind = call.operation
    names = {field.name for field in fields(kind)}
    options = {name: value for name, value in problem.fields.items() if name in names} | options
    return kind(**options, format=str(format))


def warm(operation: Operation, operands: Mapping[str, np.ndarray]) -> None:
    """Compile the kernels that a call takes for such arrays; the disk keeps them for other processes.

    Raises
    ------
    RuntimeError
        There is no GPU.
    """
    if device.current().kind != "gpu":
        raise RuntimeError("kernels are compiled for a GPU, and none is in use here; see `python -m labkit doctor`")
    make_plan(operation, {name: cuda.to_device(X) for name, X in operands.items()})


def make_operand_sets(
    set_bytes: int, make: Callable[[], Mapping[str, object]], most: int
) -> list[Mapping[str, object]]:
    """Make sets of operands of `set_bytes` each, until they are twice as large as L2, or their number is `most`."""
    l2_bytes = cuda.get_current_device().L2_CACHE_SIZE
    return [make() for _ in range(min(most, max(1, ceil(2 * l2_bytes / set_bytes))))]


def check_gpu() -> None:
    """Raise RuntimeError if there is no GPU to time kernels on."""
    if device.current().kind != "gpu":
        raise RuntimeError("tuning times kernels on a GPU, and none is in use here; see `python -m labkit doctor`")


def tune_sets(
    operation: Operation, sets: Sequence[Mapping[str, object]], most: int = MAX_CANDIDATES
) -> dict[object, float]:
    """Time the candidates for an operation on sets of arrays by their names, which have equal layouts.

    Results and errors are those of `tune`.
    """
    check_gpu()
    question, candidates = _find_question(operation, sets[0])
    stream, workspace, launches = cuda.stream(), PlanWorkspace(), {}
    fitting = _select_fitting(operation, sets[0], question, candidates, most)
    for candidate in tqdm(fitting, desc=question, unit="candidate"):
        with override_choice(_always(operation, question, candidate)):
            plans = [make_plan(operation, arrays, stream=stream, workspace=workspace) for arrays in sets]
        launches[candidate] = [_launch(plan) for plan in plans]
        launches[candidate][0](stream)
        stream.synchronize()
    times_ms = tuning.tune(_name(operation), question, launches)
    forget(type(operation))
    return times_ms


def _launch(plan: Plan) -> Callable[[object], None]:
    return lambda stream: plan(stream=stream)


def _name(operation: Operation) -> str:
    """Return the name under which an operation's choices are stored: that of its package."""
    return type(operation).__module__.split(".")[1]


def _with_outputs(operation, operands) -> dict[str, object]:
    """Return the arrays, and new ones for missing outputs."""
    results = operation.new_results({name: owner_of(X).as_array(X) for name, X in operands.items()})
    models = {name: operands[result.like] for name, result in results.items()}
    return {**operands, **{name: new_array(owner_of(X), X, results[name]) for name, X in models.items()}}


def _find_question(operation, arrays) -> tuple[str, list]:
    """Return the question of the choice that an operation makes for arrays, and the candidates."""
    questions = []

    def record(name, question, candidates):
        if name == _name(operation):  # skip an operation that is a part of this one
            questions.append((question, candidates))
        return candidates

    with override_choice(record):
        make_plan(operation, arrays)
    if not questions:
        raise ValueError(f"{_name(operation)} has one way to compute this, and nothing to choose")
    return questions[0]


def _always(operation, question, candidate):
    """Return a function for `override_choice` that selects a candidate for a question."""
    key = _name(operation), question
    return lambda name, question, candidates: [candidate] if (name, question) == key else candidates


def _select_fitting(operation, arrays, question, candidates, most) -> list:
    """Return the first candidates that accept arrays, by falling workspace, so that all share the first one's."""
    operands = {name: arrays[name] for name in operation.arrays if name in arrays}
    views = {name: as_view(X, OperandSlot(number)) for number, (name, X) in enumerate(operands.items())}
    needed_bytes: dict[Any, int] = {}
    for candidate in candidates:
        workspace = CountingWorkspace(first_slot=len(views))
        try:
            with override_choice(_always(operation, question, candidate)):
                operation.with_format(operands).launches(views, workspace)
        except ValueError:
            continue
        needed_bytes[candidate] = workspace.size_bytes
        if len(needed_bytes) == most:
            break
    return sorted(needed_bytes, key=needed_bytes.__getitem__, reverse=True)

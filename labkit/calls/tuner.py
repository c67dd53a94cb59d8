"""Tuning: times the candidates for a call on this GPU, and stores the fastest for later calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from math import ceil
from typing import Any

from tqdm.auto import tqdm

from labkit import cuda
from labkit.arrays.operands import as_view
from labkit.arrays.owners import owner_of
from labkit.arrays.views import OperandSlot
from labkit.arrays.workspace import CountingWorkspace
from labkit.calls import tuning
from labkit.calls.call import forget
from labkit.calls.choice import choosing
from labkit.calls.memory import Reserve
from labkit.calls.operation import Operation
from labkit.calls.plan import Plan, make_plan
from labkit.calls.route import new_array
from labkit.formats import Format
from labkit.ladder import Problem
from labkit.machine import device

MOST = 16  # candidates, the most promising ones
MOST_SETS = 128  # of operands; if so many still fit in L2, the kernel may find them there


def tune(call: Callable, *arrays, most: int = MOST, **options) -> dict[object, float]:
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
    if not hasattr(call, "operation"):
        raise TypeError(f"{call!r} is not tuned: give a call of an operation, such as norm.layer_norm")
    bound = signature(call).bind(*arrays, **options)
    bound.apply_defaults()
    given, kind = bound.arguments, call.operation
    given.pop("stream")
    operands = {name: X for name in kind.arrays if (X := given.pop(name)) is not None}
    operation = kind(**given)
    return tune_sets(operation, [_with_outputs(operation, operands)], most)


def tune_problem(
    call: Callable, problem: Problem, format: Format, left_out: Sequence[str] = (), most: int = MOST, **options
) -> dict[object, float]:
    """Time the candidates for a call on random operands of a problem, with so many sets that none stays in L2.

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
    kind = call.operation
    known = {field.name for field in fields(kind)}
    options = {name: value for name, value in problem.fields.items() if name in known} | options
    operands = [X for X in problem.operands(format)[:-1] if X is not None]
    given = {name: X for name, X in zip(kind.arrays, operands, strict=True) if name not in left_out}
    set_bytes = sum(X.nbytes for X in given.values())
    sets = sets_beyond_l2(set_bytes, lambda: {name: cuda.to_device(X) for name, X in given.items()}, MOST_SETS)
    return tune_sets(kind(**options, format=str(format)), sets, most)


def sets_beyond_l2(set_bytes: int, make: Callable[[], Mapping[str, object]], most: int) -> list[Mapping[str, object]]:
    """Make sets of operands of `set_bytes` each, until they are twice as large as L2, or their number is `most`."""
    l2_bytes = cuda.get_current_device().L2_CACHE_SIZE
    return [make() for _ in range(min(most, max(1, ceil(2 * l2_bytes / set_bytes))))]


def check_gpu() -> None:
    """Raise RuntimeError if there is no GPU to time kernels on."""
    if device.current().kind != "gpu":
        raise RuntimeError("tuning times kernels on a GPU, and none is in use here; see `python -m labkit doctor`")


def tune_sets(operation: Operation, sets: Sequence[Mapping[str, object]], most: int = MOST) -> dict[object, float]:
    """Time the candidates for an operation on sets of arrays by their names, which have equal layouts.

    Results and errors are those of `tune`.
    """
    check_gpu()
    question, candidates = _asked(operation, sets[0])
    stream, reserve, launches = cuda.stream(), Reserve(), {}
    fitting = _that_fit(operation, sets[0], question, candidates, most)
    for candidate in tqdm(fitting, desc=question, unit="candidate"):
        with choosing(_only(operation, question, candidate)):
            plans = [make_plan(operation, arrays, stream=stream, reserve=reserve) for arrays in sets]
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


def _with_outputs(operation, given) -> dict[str, object]:
    """Return the arrays, and new ones for missing outputs."""
    adopted, whole = {name: owner_of(X).adopt(X) for name, X in given.items()}, dict(given)
    for name in operation.outputs:
        if name not in given:
            result = operation.result(name, adopted)
            whole[name] = new_array(owner_of(given[result.like]), given[result.like], result)
    return whole


def _asked(operation, arrays) -> tuple[str, list]:
    """Return the question of the choice that an operation makes for arrays, and the candidates."""
    made = []

    def note(name, question, candidates):
        if name == _name(operation):  # skip an operation that is a part of this one
            made.append((question, candidates))
        return candidates

    with choosing(note):
        make_plan(operation, arrays)
    if not made:
        raise ValueError(f"{_name(operation)} has one way to compute this, and nothing to choose")
    return made[0]


def _only(operation, question, candidate):
    """Return a function for `choosing` that selects a candidate for a question."""

    def choose(name, asked, candidates):
        return [candidate] if (name, asked) == (_name(operation), question) else candidates

    return choose


def _that_fit(operation, arrays, question, candidates, most) -> list:
    """Return the first candidates that accept arrays, by falling workspace, so that all share the first one's."""
    given = {name: arrays[name] for name in operation.arrays if name in arrays}
    views = {name: as_view(X, OperandSlot(number)) for number, (name, X) in enumerate(given.items())}
    needed_bytes: dict[Any, int] = {}
    for candidate in candidates:
        workspace = CountingWorkspace(first_slot=len(views))
        try:
            with choosing(_only(operation, question, candidate)):
                operation.declared(given).launches(views, workspace)
        except ValueError:
            continue
        needed_bytes[candidate] = workspace.size_bytes
        if len(needed_bytes) == most:
            break
    return sorted(needed_bytes, key=needed_bytes.__getitem__, reverse=True)

"""`check(id, kernel)`: runs a learner's code in the simulator and says what is wrong, and where."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from labkit.checking.budget import FLOAT64, most_over, share, used
from labkit.checking.compare import wrong_output
from labkit.checking.exercise import Exercise, Launch
from labkit.checking.own_text import borrowed, helpers_of_kernel, not_its_own
from labkit.checking.plain import answers
from labkit.checking.source import python_function, stub_line
from labkit.checking.verdict import Verdict
from labkit.loops import LoopTrace
from labkit.loops import trace as trace_loop
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.run import simulate, simulate_disturbed
from labkit.trace import Trace

FIRST_KINDS = ("bounds", "deadlock", "barrier", "race")  # what is said first where there are several findings
ADVICE = ("uncoalesced", "bank-conflict", "float64")  # what a learner can change in the code of an exercise


def judge(exercise: Exercise, kernel: Any, seed: int, draws: int = 1) -> Verdict:
    """The verdict on a kernel, from runs on the exercise's own problems and on those that `seed` draws.

    More `draws` add those of the next seeds.
    """
    return dataclasses.replace(_judge(exercise, kernel, seed, draws), seed=seed)


def _judge(exercise, kernel, seed, draws):
    function = python_function(kernel)
    verdict = _before_running(exercise, function)
    if verdict is not None:
        return verdict
    try:
        launches = list(exercise.launches(seed, draws, **constants_of(exercise, function)))
    except ValueError as error:  # constants with which there is no launch
        return _verdict(exercise, "launch", str(error))
    if exercise.machine == "python":
        return _judge_answers(exercise, function, launches)
    first = None
    for launch in launches:
        trace, verdict = _judge_launch(exercise, kernel, launch)
        if verdict is not None:
            return dataclasses.replace(verdict, launch=launch.label, trace=trace)
        first = first or trace
    verdict = _independent(exercise, kernel, launches, seed)
    return verdict or _verdict(exercise, "solved", _praise(launches[: len(exercise.sizes)], first))


def _judge_answers(exercise, function, asked):
    """The verdict on a plain function, by its answers."""
    for questions in asked:
        parameters = function.__code__.co_argcount
        if parameters != len(questions.calls[0]):
            return _verdict(exercise, "launch", _other_parameters(exercise, parameters, len(questions.calls[0])))
        try:
            wrong = questions.wrong(answers(function, questions.calls))
        except KernelError as error:
            verdict = _verdict(exercise, "refused", str(error), line=error.line)
            return dataclasses.replace(verdict, launch=questions.label)
        if wrong:
            return dataclasses.replace(_verdict(exercise, "result", wrong), launch=questions.label)
    labels = "; ".join(questions.label for questions in asked[: len(exercise.sizes)])
    return _verdict(exercise, "solved", f"Right on {labels}; and on others, drawn at random.")


def _other_parameters(exercise, has, given):
    return (
        f"`{exercise.function}` takes {has} arguments and is given {given}: "
        "keep the parameters that the exercise came with."
    )


def _praise(launches, trace):
    """What the right answer did on the first run beside its budget, and the advice that the simulator has for it."""
    labels = "; ".join(launch.label for launch in launches)
    lines = [f"Right, and without errors, on {labels}; and on sizes drawn at random."]
    budgets = [budget for budget in launches[0].budgets if budget.at_most]
    scores = [f"{used(budget.counter, trace):,} of {budget.at_most:,} {budget.counter}" for budget in budgets]
    if scores:
        lines.append(f"Used on the first of them: {', '.join(scores)}.")
    advice = next((finding.message for finding in trace.findings if finding.kind in ADVICE), None)
    return "\n".join([*lines, f"Advice: {advice}"] if advice else lines)


def _before_running(exercise, function):
    if not inspect.isfunction(function):
        return _verdict(
            exercise,
            "not a kernel",
            f"`{exercise.function}` should be your function, and this is of type {type(function).__name__}: "
            f"hand over its name alone, `check({exercise.id!r}, {exercise.function})`.",
        )
    try:
        line = stub_line(function)
    except (OSError, TypeError, SyntaxError):
        return _verdict(
            exercise,
            "not a kernel",
            "The source of this function cannot be read: define it with `def` in a cell or a file.",
        )
    if line is not None:
        return _verdict(exercise, "unfinished", f"Not written yet: line {line} still holds `...`.", line=line)
    wrong = not_its_own(function, exercise.function)
    return _verdict(exercise, "not a kernel", wrong) if wrong else None


def constants_of(exercise: Exercise, function: Callable) -> dict[str, int]:
    """The whole numbers that the learner chose, such as TILE."""
    values = {}
    for name in exercise.constants:
        value = function.__globals__.get(name)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1: write for example `{name} = 16` above it.")
        values[name] = int(value)
    return values


def _judge_launch(exercise, kernel, launch) -> tuple[Trace | LoopTrace | None, Verdict | None]:
    """A run, and what is wrong with it, or None."""
    function = python_function(kernel)
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != len(launch.args):
        return None, _verdict(exercise, "launch", _other_parameters(exercise, len(parameters), len(launch.args)))
    try:
        trace = _run(exercise, kernel, launch)
        helpers = helpers_of_kernel(kernel, *launch.args) if exercise.machine == "gpu" else []
    except KernelError as error:
        return None, _verdict(exercise, "refused", str(error), line=error.line)
    except LaunchError as error:
        return None, _verdict(exercise, "launch", str(error))
    except Exception as error:  # a check reports, whatever a learner's code does
        return None, _verdict(exercise, "refused", f"The run ended with {type(error).__name__}: {error}")
    wrong = borrowed(function, helpers)
    if wrong:
        return trace, _verdict(exercise, "not a kernel", wrong)
    for complaint in (_changed_input, _finding, _output, _over_budget, _short_of_duty):
        verdict = complaint(exercise, trace, launch, parameters)
        if verdict is not None:
            return trace, verdict
    return trace, None


def _run(exercise: Exercise, kernel: Any, launch: Launch) -> Trace | LoopTrace:
    if exercise.machine == "cpu":
        return trace_loop(kernel, *launch.args)
    if getattr(kernel, "device", False):
        raise LaunchError(
            f"`{exercise.function}` is a device function: leave out `device=True`, so that it is a kernel."
        )
    ends = (0, 0, 0), tuple(size - 1 for size in launch.grid)
    return simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes, record=ends)


def _finding(exercise, trace, launch, parameters):
    found = [finding for finding in trace.errors if finding.kind != "unwritten"]  # `_output` says it better
    if not found:
        return None
    order = {kind: place for place, kind in enumerate(FIRST_KINDS)}
    first = min(found, key=lambda finding: order.get(finding.kind, len(order)))
    return _verdict(exercise, first.kind, with_line(first.line, first.fact), line=first.line)


def with_line(line: int, message: str) -> str:
    """The message, headed by the line if it does not name it itself."""
    return message if re.search(rf"\b[Ll]ine {line}\b", message) else f"Line {line}: {message}"


def _changed_input(exercise, trace, launch, parameters):
    """An input that is stored to, whatever it holds in the end."""
    inputs = {name for position, name in enumerate(parameters) if position not in launch.outputs}
    for counters in trace.sites:
        site = counters.site
        if site.array in inputs and site.kind != "load" and counters.accesses:
            message = f"Line {site.line}: `{site.text}` changes {site.array}, which is an input: only load from it."
            return _verdict(exercise, "input changed", message, line=site.line)
    return None


def _output(exercise, trace, launch, parameters):
    wrong = wrong_output(launch, parameters, trace.outputs)
    if wrong is None:
        return None
    sites = (counters.site for counters in trace.sites)
    line = next((site.line for site in sites if site.array == wrong.name and site.kind != "load"), None)
    where = f"Line {line} is what stores into {wrong.name}" if line else f"No line stores into {wrong.name}"
    where += "; what it stores may have gone wrong before." if line and wrong.reason == "result" else "."
    return _verdict(exercise, wrong.reason, f"{wrong.message}\n{where}", line=line)


def _over_budget(exercise, trace, launch, parameters):
    for budget in launch.budgets:
        count = used(budget.counter, trace)
        if count > budget.at_most:
            message = (
                f"The result is right, but not within the budget: {count:,} {budget.counter}, "
                f"and at most {budget.at_most:,} are allowed ({budget.formula})."
            )
            if budget.counter == FLOAT64:
                slip = next((finding for finding in trace.findings if finding.kind == "float64"), None)
                why, line = (slip.fact, slip.line) if slip else ("The code asks for float64 itself.", None)
                return _verdict(exercise, "budget", f"{message}\n{why}", line=line)
            place, of_array = most_over(budget, trace)
            most, line = share(budget.counter, place), place.site.line
            if not most:
                return _verdict(exercise, "budget", message)
            if budget.shares:
                array, its_share = place.site.array, budget.shares.get(place.site.array, 0)
                message += f"\n{of_array:,} of them are of {array}, whose share is {its_share:,}: "
                message += f"look at `{place.site.text}` in line {line}."
            else:
                message += f"\n{most:,} of them are made by `{place.site.text}` in line {line}."
            return _verdict(exercise, "budget", message, line=line)
    return None


def _short_of_duty(exercise, trace, launch, parameters):
    for duty in launch.duties:
        count = used(duty.counter, trace)
        if not duty.at_least <= count <= duty.at_most:
            few = count < duty.at_least
            limit = f"at least {duty.at_least:,} are needed" if few else f"at most {duty.at_most:,} are allowed"
            message = f"{count:,} {duty.counter}, and {limit} ({duty.why})."
            return _verdict(exercise, "duty", f"{ANOTHER_WAY}: {message}")
    return None


ANOTHER_WAY = "The result is right, but not in the way that the exercise is about"


def _independent(exercise, kernel, launches, seed):
    """What the result must depend on and does not, seen in disturbed runs of one of the launches."""
    rng = np.random.default_rng([seed, 1])
    telling = [launch for launch in launches if launch.dependences]
    if not telling:
        return None
    launch = telling[rng.integers(len(telling))]
    names = list(inspect.signature(python_function(kernel)).parameters)
    for dependence in launch.dependences:
        missing = dependence.shortfall(rng, names, launch, partial(_disturbed, kernel, launch))
        if missing:
            return dataclasses.replace(_verdict(exercise, "duty", f"{ANOTHER_WAY}.\n{missing}"), launch=launch.label)
    return None


def _disturbed(kernel, launch, args, disturbance) -> Trace | None:
    """The trace of a run that is disturbed or has other arguments, if it came to its end."""
    shared = {"shared_bytes": launch.shared_bytes, "disturbance": disturbance}
    try:
        return simulate_disturbed(kernel, launch.grid, launch.block, *args, **shared)
    except KernelError:
        return None


def _verdict(exercise: Exercise, reason: str, message: str, line: int | None = None) -> Verdict:
    return Verdict(exercise.id, exercise.title, exercise.points, reason, message, line, number=exercise.number)

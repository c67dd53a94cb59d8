"""The judge of an answer: runs a learner's code in the simulator and says what is wrong, and where."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from labkit.checking.budget import FLOAT64, find_worst_site, read_counter, read_site_counter
from labkit.checking.compare import find_wrong_output
from labkit.checking.exercise import Exercise, Launch
from labkit.checking.own_code import collect_helpers, explain_foreign_function, find_foreign_helper
from labkit.checking.restricted_python import run_calls
from labkit.checking.source import find_stub_line, python_function
from labkit.checking.verdict import Verdict
from labkit.loops import LoopTrace
from labkit.loops import trace as trace_loop
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.run import simulate, simulate_disturbed
from labkit.trace import Trace

FIRST_KINDS = ("bounds", "deadlock", "barrier", "race")  # reported first if there are several findings
ADVICE = ("uncoalesced", "bank-conflict", "float64")  # what a learner can change in the code of an exercise
ANOTHER_WAY = "The result is right, but not in the way that the exercise is about"


def judge(exercise: Exercise, kernel: Any, seed: int, draws: int = 1) -> Verdict:
    """Judge a kernel by runs on the exercise's fixed sizes and on random ones.

    Parameters
    ----------
    seed, draws
        The random sizes are drawn with `seed` and the next `draws` - 1 seeds.
    """
    return dataclasses.replace(_judge(exercise, kernel, seed, draws), seed=seed)


def _judge(exercise, kernel, seed, draws):
    function = python_function(kernel)
    verdict = _check_before_run(exercise, function)
    if verdict is not None:
        return verdict
    try:
        launches = list(exercise.make_launches(seed, draws, **read_constants(exercise, function)))
    except ValueError as error:  # constants with which there is no launch
        return _make_verdict(exercise, "launch", str(error))
    if exercise.machine == "python":
        return _judge_answers(exercise, function, launches)
    first_trace = None
    for launch in launches:
        trace, verdict = _judge_launch(exercise, kernel, launch)
        if verdict is not None:
            return dataclasses.replace(verdict, launch=launch.label, trace=trace)
        first_trace = first_trace or trace
    verdict = _check_dependences(exercise, kernel, launches, seed)
    fixed = launches[: len(exercise.sizes)]
    return verdict or _make_verdict(exercise, "solved", _summarise_success(fixed, first_trace))


def _judge_answers(exercise, function, questionnaires):
    """Judge a plain function by its answers."""
    for questions in questionnaires:
        complaint = _check_parameters(exercise, function.__code__.co_argcount, len(questions.calls[0]))
        if complaint:
            return complaint
        try:
            mistake = questions.find_mistake(run_calls(function, questions.calls))
        except KernelError as error:
            return _make_verdict(exercise, "refused", str(error), error.line, launch=questions.label)
        if mistake:
            return _make_verdict(exercise, "result", mistake, launch=questions.label)
    labels = "; ".join(questions.label for questions in questionnaires[: len(exercise.sizes)])
    return _make_verdict(exercise, "solved", f"Right on {labels}; and on others, drawn at random.")


def _check_parameters(exercise, count, given):
    if count == given:
        return None
    message = f"`{exercise.function}` takes {count} arguments and is given {given}: "
    return _make_verdict(exercise, "launch", f"{message}keep the parameters that the exercise came with.")


def _summarise_success(launches, first_trace):
    """Return the message on a right answer: what its first run used of the budgets, and the simulator's advice."""
    labels = "; ".join(launch.label for launch in launches)
    lines = [f"Right, and without errors, on {labels}; and on sizes drawn at random."]
    budgets = [budget for budget in launches[0].budgets if budget.at_most]
    scores = [f"{read_counter(b.counter, first_trace):,} of {b.at_most:,} {b.counter}" for b in budgets]
    if scores:
        lines.append(f"Used on the first of them: {', '.join(scores)}.")
    advice = next((finding.message for finding in first_trace.findings if finding.kind in ADVICE), None)
    return "\n".join([*lines, f"Advice: {advice}"] if advice else lines)


def _check_before_run(exercise, function):
    if not inspect.isfunction(function):
        return _make_verdict(
            exercise,
            "not a kernel",
            f"`{exercise.function}` should be your function, and this is of type {type(function).__name__}: "
            f"hand over its name alone, `check({exercise.id!r}, {exercise.function})`.",
        )
    try:
        line = find_stub_line(function)
    except (OSError, TypeError, SyntaxError):
        message = "The source of this function cannot be read: define it with `def` in a cell or a file."
        return _make_verdict(exercise, "not a kernel", message)
    if line is not None:
        return _make_verdict(exercise, "unfinished", f"Not written yet: line {line} still holds `...`.", line)
    complaint = explain_foreign_function(function, exercise.function)
    return _make_verdict(exercise, "not a kernel", complaint) if complaint else None


def read_constants(exercise: Exercise, function: Callable) -> dict[str, int]:
    """Return the positive integers that the learner chose, such as TILE."""
    values = {}
    for name in exercise.constants:
        value = function.__globals__.get(name)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1: write for example `{name} = 16` above it.")
        values[name] = int(value)
    return values


def _judge_launch(exercise, kernel, launch) -> tuple[Trace | LoopTrace | None, Verdict | None]:
    """Run a launch; return its trace, and the verdict if something is wrong with it."""
    function = python_function(kernel)
    parameters = list(inspect.signature(function).parameters)
    verdict = _check_parameters(exercise, len(parameters), len(launch.args))
    if verdict is not None:
        return None, verdict
    try:
        trace = _run(exercise, kernel, launch)
        helpers = collect_helpers(kernel, *launch.args) if exercise.machine == "gpu" else []
    except KernelError as error:
        return None, _make_verdict(exercise, "refused", str(error), error.line)
    except LaunchError as error:
        return None, _make_verdict(exercise, "launch", str(error))
    except Exception as error:  # a check reports, whatever a learner's code does
        return None, _make_verdict(exercise, "refused", f"The run ended with {type(error).__name__}: {error}")
    complaint = find_foreign_helper(function, helpers)
    if complaint:
        return trace, _make_verdict(exercise, "not a kernel", complaint)
    for check in (_check_inputs, _check_findings, _check_outputs, _check_budgets, _check_duties):
        verdict = check(exercise, trace, launch, parameters)
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


def _check_findings(exercise, trace, launch, parameters):
    errors = [finding for finding in trace.errors if finding.kind != "unwritten"]  # `_check_outputs` says it better
    if not errors:
        return None
    order = {kind: rank for rank, kind in enumerate(FIRST_KINDS)}
    first = min(errors, key=lambda finding: order.get(finding.kind, len(order)))
    return _make_verdict(exercise, first.kind, add_line(first.line, first.fact), first.line)


def add_line(line: int, message: str) -> str:
    """Put the line in front of a message that does not name it."""
    return message if re.search(rf"\b[Ll]ine {line}\b", message) else f"Line {line}: {message}"


def _check_inputs(exercise, trace, launch, parameters):
    """Find a store to an input, even one that changes no value."""
    inputs = {name for position, name in enumerate(parameters) if position not in launch.outputs}
    for counters in trace.sites:
        site = counters.site
        if site.array in inputs and site.kind != "load" and counters.accesses:
            message = f"Line {site.line}: `{site.text}` changes {site.array}, which is an input: only load from it."
            return _make_verdict(exercise, "input changed", message, site.line)
    return None


def _check_outputs(exercise, trace, launch, parameters):
    wrong = find_wrong_output(launch, parameters, trace.outputs)
    if wrong is None:
        return None
    sites = (counters.site for counters in trace.sites)
    line = next((site.line for site in sites if site.array == wrong.name and site.kind != "load"), None)
    where = f"Line {line} is what stores into {wrong.name}" if line else f"No line stores into {wrong.name}"
    where += "; what it stores may have gone wrong before." if line and wrong.reason == "result" else "."
    return _make_verdict(exercise, wrong.reason, f"{wrong.message}\n{where}", line)


def _check_budgets(exercise, trace, launch, parameters):
    for budget in launch.budgets:
        count = read_counter(budget.counter, trace)
        if count > budget.at_most:
            message, line = _explain_overrun(budget, count, trace)
            return _make_verdict(exercise, "budget", message, line)
    return None


def _explain_overrun(budget, count, trace):
    """Return the message on an exceeded budget, and the line that uses most of it."""
    message = (
        f"The result is right, but not within the budget: {count:,} {budget.counter}, "
        f"and at most {budget.at_most:,} are allowed ({budget.formula})."
    )
    if budget.counter == FLOAT64:
        finding = next((finding for finding in trace.findings if finding.kind == "float64"), None)
        why, line = (finding.fact, finding.line) if finding else ("The code asks for float64 itself.", None)
        return f"{message}\n{why}", line
    worst, array_count = find_worst_site(budget, trace)
    site, site_count = worst.site, read_site_counter(budget.counter, worst)
    if not site_count:
        return message, None
    if budget.shares:
        message += (
            f"\n{array_count:,} of them are of {site.array}, whose share is {budget.shares.get(site.array, 0):,}: "
        )
        return f"{message}look at `{site.text}` in line {site.line}.", site.line
    return f"{message}\n{site_count:,} of them are made by `{site.text}` in line {site.line}.", site.line


def _check_duties(exercise, trace, launch, parameters):
    for duty in launch.duties:
        count = read_counter(duty.counter, trace)
        if not duty.at_least <= count <= duty.at_most:
            few = count < duty.at_least
            limit = f"at least {duty.at_least:,} are needed" if few else f"at most {duty.at_most:,} are allowed"
            message = f"{count:,} {duty.counter}, and {limit} ({duty.why})."
            return _make_verdict(exercise, "duty", f"{ANOTHER_WAY}: {message}")
    return None


def _check_dependences(exercise, kernel, launches, seed):
    """Find what the result must depend on and does not, by disturbed runs of one of the launches."""
    rng = np.random.default_rng([seed, 1])
    candidates = [launch for launch in launches if launch.dependences]
    if not candidates:
        return None
    launch = candidates[rng.integers(len(candidates))]
    names = list(inspect.signature(python_function(kernel)).parameters)
    for dependence in launch.dependences:
        shortfall = dependence.find_shortfall(rng, names, launch, partial(_run_disturbed, kernel, launch))
        if shortfall:
            return _make_verdict(exercise, "duty", f"{ANOTHER_WAY}.\n{shortfall}", launch=launch.label)
    return None


def _run_disturbed(kernel, launch, args, disturbance) -> Trace | None:
    """Return the trace of a run that is disturbed or has other arguments, None if it failed."""
    options = {"shared_bytes": launch.shared_bytes, "disturbance": disturbance}
    try:
        return simulate_disturbed(kernel, launch.grid, launch.block, *args, **options)
    except KernelError:
        return None


def _make_verdict(exercise: Exercise, reason: str, message: str, line: int | None = None, launch: str = "") -> Verdict:
    return Verdict(exercise.id, exercise.title, exercise.points, reason, message, line, launch, number=exercise.number)

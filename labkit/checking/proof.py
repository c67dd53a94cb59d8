"""What proves that an exercise's check holds: answers with known verdicts, kernels of its usual mistakes, mutants.

Each function returns sentences on what is wrong, as predicates: "is accepted". None means that nothing is.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from labkit.checking.answers import REFUSED, Answer
from labkit.checking.check import judge, read_constants
from labkit.checking.exercise import Exercise, Launch, Questions
from labkit.checking.mistake import Mistake, explains, find_mistake
from labkit.checking.restricted_python import run_calls
from labkit.checking.source import python_function
from labkit.ladder import Expected
from labkit.loops import trace as trace_loop
from labkit.simulator.errors import SimulatorError
from labkit.simulator.run import simulate

SEED = 1  # of the launches on which mistakes are compared
SOLVED = "solved"
MOST_SIZE = {"gpu": 60, "cpu": 12, "python": 40}  # of launches beside the check's own
FAILURES = SimulatorError, IndexError, NameError, TypeError, ValueError, ZeroDivisionError


class Judged(Protocol):
    """A verdict, or why there is none."""

    @property
    def reason(self) -> str: ...

    @property
    def message(self) -> str: ...


def find_wrong_verdict(answer: Answer, verdicts: Iterable[Judged]) -> str:
    """Return what is wrong with the verdicts on an answer, one for each seed; they are read as far as is needed."""
    for verdict in verdicts:
        if answer.reason in REFUSED:
            if verdict.reason != SOLVED:
                return ""
        elif verdict.reason != answer.reason:
            return f"gets the reason {verdict.reason!r} and not {answer.reason!r}: {verdict.message}"
    return "is accepted" if answer.reason in REFUSED else ""


def make_launches(rules: Exercise, kernel: Any) -> list[Launch]:
    """Make the launches of one check of a kernel or loop, whose constants they take."""
    launches = rules.make_launches(SEED, **read_constants(rules, python_function(kernel)))
    return [launch for launch in launches if isinstance(launch, Launch)]


def find_wrong_mistake(rules: Exercise, kernel: Any, answer: Answer) -> str:
    """Return why the mistake that an answer names is not what comes out of the answer's kernel."""
    verdict = judge(rules, kernel, SEED)
    if not verdict.cause or f" came out as if {verdict.cause}." not in verdict.message:
        return f"should get the cause {answer.mistake!r}, and gets none: {verdict.message}"
    named = {verdict.cause}
    for launch in make_launches(rules, kernel):
        trace = _trace(rules, kernel, launch)
        stated = [mistake for mistake in launch.mistakes if mistake.cause == answer.mistake]
        is_right = all(expected.holds(trace.outputs[position]) for position, expected in launch.outputs.items())
        found = None if is_right else find_mistake(launch.mistakes, launch.outputs, trace.outputs)
        named |= {found.cause} if found else set()
        if stated and not any(explains(mistake, launch.outputs, trace.outputs) for mistake in stated):
            return f"does not come out as if {answer.mistake}, on {launch.label}"
        if not stated and not is_right and all(finding.kind == "unwritten" for finding in trace.errors):
            return f"is wrong on {launch.label}, which does not have the mistake {answer.mistake!r}"
    if answer.mistake not in named:  # where several explain a result, the first is named
        return f"should get the cause {answer.mistake!r}, and gets {', '.join(map(repr, sorted(named)))}"
    return ""


def find_unproven_mistakes(launches: Sequence[Launch], answers: Iterable[Answer]) -> Iterator[str]:
    """Yield what is wrong with an exercise's mistakes: one that no answer makes, and two that come out alike."""
    causes = _causes(launches)
    named = {answer.mistake for answer in answers if answer.mistake}
    for cause in sorted(causes - named):
        yield f"{cause!r} is the mistake of no answer"
    for cause in sorted(named - causes):
        yield f"{cause!r} is the mistake of an answer, and the exercise does not have it"
    results = {cause: [_make_results(launch, cause) for launch in launches] for cause in ("", *sorted(causes))}
    for one, other in combinations(results, 2):
        pairs = [(a, b) for a, b in zip(results[one], results[other], strict=True) if a is not None and b is not None]
        if len(pairs) == len(launches) and all(_agree(*pair) for pair in pairs):
            yield f"{other!r} comes out as {f'{one!r} does' if one else 'a right answer does'}"


def find_telling_mistakes(launches: Iterable[Launch], solution: str, blank: str) -> Iterator[str]:
    """Yield the mistakes whose words hold a line of the solution."""
    lines = {line.strip() for line in solution.splitlines()} - {line.strip() for line in blank.splitlines()}
    for text in sorted({text for launch in launches for m in launch.mistakes for text in (m.cause, m.cure)}):
        if any(len(line) > 8 and line in text for line in lines):
            yield f"{text!r} holds a line of the solution"


def _causes(launches):
    return {mistake.cause for launch in launches for mistake in launch.mistakes}


def _make_results(launch: Launch, cause: str):
    """Return the outputs that a mistake makes, the right ones for the cause ""; None if the launch lacks it."""
    if not cause:
        return launch.outputs
    stated: Mistake | None = next((mistake for mistake in launch.mistakes if mistake.cause == cause), None)
    return stated and {**launch.outputs, **stated.make_outputs()}


def _agree(results, others):
    pairs: list[tuple[Expected, Expected]] = [(results[position], others[position]) for position in results]
    with np.errstate(invalid="ignore"):
        return all(
            ((one.value == other.value) | (np.abs(one.value - other.value) <= one.bound + other.bound)).all()
            for one, other in pairs
        )


def make_other_launches(rules: Exercise, solution: Any, seed: int) -> list[Launch | Questions]:
    """Make launches of other shapes, on other numbers than the check's, as far as the solution is right on them.

    If it is right on none, because few sizes make sense, the launches have the sizes of the check.
    """
    rng = np.random.default_rng([seed, 20])
    constants = read_constants(rules, python_function(solution))
    limit = MOST_SIZE[rules.machine]
    most = [[limit if rules.machine == "python" else min(int(abs(n)), limit) for n in size] for size in rules.sizes]
    drawn = [[rng.integers(2, n + 8).item() for n in size] for size in most]
    launches = [rules.make_launch(rng, *size, **constants) for size in drawn]
    right = [launch for launch in launches if not gives_wrong_results(rules, solution, [launch])]
    return right or [rules.make_launch(rng, *size, **constants) for size in rules.sizes]


def gives_wrong_results(rules: Exercise, kernel: Any, launches: Iterable[Launch | Questions]) -> bool:
    """Tell whether a kernel fails, has an error, or has another result than it should, on one of the launches."""
    return any(_is_wrong(rules, kernel, launch) for launch in launches)


def survives(rules: Exercise, kernel: Any, launches: Iterable[Launch | Questions], seed: int) -> bool | None:
    """Tell whether the check accepts a mutant with wrong results on the launches; None if it has right ones."""
    return judge(rules, kernel, seed).passed if gives_wrong_results(rules, kernel, launches) else None


def _is_wrong(rules: Exercise, kernel: Any, launch: Launch | Questions) -> bool:
    if isinstance(launch, Questions):
        try:
            return bool(launch.find_mistake(run_calls(kernel, launch.calls)))
        except SimulatorError:  # or a loop without end
            return True
    try:
        if rules.machine == "gpu":
            trace = _trace(rules, kernel, launch)
            outputs, has_errors = trace.outputs, bool(trace.errors)
        else:
            outputs, has_errors = _run_in_python(kernel, launch), False
    except FAILURES:
        return True
    return has_errors or not all(expected.holds(outputs[position]) for position, expected in launch.outputs.items())


def _run_in_python(loop: Any, launch: Launch) -> Sequence[Any]:
    """Return the arguments of a launch after a loop, without compiling it: quicker for small ones."""
    copies = [np.copy(value) for value in launch.args]
    with np.errstate(all="ignore"):
        python_function(loop)(*copies)
    return copies


def _trace(rules: Exercise, kernel: Any, launch: Launch):
    if rules.machine == "cpu":
        return trace_loop(kernel, *launch.args)
    return simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes)

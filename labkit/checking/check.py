"""The judge of an answer: runs a learner's code in the simulator and says what is wrong, and where."""

import inspect
import linecache
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import prod
from numbers import Integral
from typing import Any

import numpy as np

from labkit.checking.budget import (
    FLOAT64,
    SHARED_BYTES,
    allowance_words,
    count_words,
    is_or_are,
    limit_words,
    read_counter,
    read_site_counter,
)
from labkit.checking.compare import Difference, find_wrong_output, list_after_two
from labkit.checking.exercise import Exercise, Launch, Questions
from labkit.checking.failing_access import FailingAccess, find_access, find_stores, keep_block, list_blocks
from labkit.checking.in_child import Allowance
from labkit.checking.limits import list_limits
from labkit.checking.overrun import explain_barriers, find_site
from labkit.checking.own_code import collect_helpers, explain_foreign_function, find_foreign_helper
from labkit.checking.pace import Pace, count_elements
from labkit.checking.placed_cure import place_clues, place_cure
from labkit.checking.repair import (
    OF_INDICES,
    OF_LEAVING,
    OF_WAITS,
    explain_early_return,
    explain_unused,
    find_repair,
)
from labkit.checking.restricted_python import run_calls
from labkit.checking.slips.change import CHANCE
from labkit.checking.source import find_stub_line, python_function
from labkit.checking.suspect import find_suspect
from labkit.checking.verdict import Verdict
from labkit.checking.wrong_stores import tell_stores
from labkit.loops import LoopTrace
from labkit.loops import trace as trace_loop
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.run import simulate, simulate_backwards, simulate_disturbed
from labkit.trace import Trace

FIRST_KINDS = ("bounds", "deadlock", "barrier", "race")  # reported first if there are several findings
ADVICE = ("uncoalesced", "bank-conflict", "float64")  # what a learner can change in the code of an exercise
OTHER_ORDER = "The blocks of a launch run in any order, and in a second run, in another one"
SENTENCE_END = r"(?<=[.?!]) (?=[A-Z`])(?=(?:[^`]*`[^`]*`)*[^`]*$)"  # outside of code
CURED = (*OF_WAITS, *OF_INDICES, "result", "shuffle", "mask", "zero-division", "budget", "duty", "uninitialised")
SAME_ELEMENT = "either value can be the one that stays"  # of a race of two stores
ALONE = "This change alone makes it right."
SMALL = 20  # a size
FAR_LARGER = 8  # times as many elements
ANOTHER_WAY = "The result is right, but not in the way that the exercise is about"


class _Fault(Exception):
    """The answer is not right, for the reason of a verdict; the line is that of the learner's code."""

    def __init__(
        self,
        reason: str,
        message: str,
        line: int | None = None,
        difference: Difference | None = None,
        access: FailingAccess | None = None,
        plain: str = "",
    ):
        super().__init__(message)
        self.reason, self.line, self.difference, self.access = reason, line, difference, access
        self.plain = plain  # the message without advice


def judge(exercise: Exercise, kernel: Any, seed: int, draws: int = 1, repairs: bool = False) -> Verdict:
    """Judge a kernel by runs on the exercise's fixed sizes and on random ones.

    Parameters
    ----------
    seed, draws
        The random sizes are drawn with `seed` and the next `draws` - 1 seeds.
    repairs
        Whether to search for a change that makes a wrong answer right, for a verdict that a learner reads.
    """
    judgement = _Judgement(exercise, kernel, seed)
    exercise_fields = exercise.id, exercise.title, exercise.points
    try:
        message = judgement.run_checks(draws)
    except _Fault as fault:
        is_told = fault.reason == "budget" and "write `" in str(fault)
        fault = judgement.add_cure(fault) if repairs and fault.reason in CURED and not is_told else fault
        run_details: dict[str, Any] = {"line": fault.line, "launch": judgement.label}
        run_details |= {"trace": judgement.trace, "access": fault.access}
        if fault.difference:
            run_details |= {"cause": fault.difference.cause, "picture": fault.difference.picture}
        return Verdict(*exercise_fields, fault.reason, str(fault), **run_details, seed=seed, number=exercise.number)
    return Verdict(*exercise_fields, "solved", message, seed=seed, number=exercise.number)


def read_constants(exercise: Exercise, function: Callable) -> dict[str, int]:
    """Return the positive integers that the learner chose, such as TILE."""
    values = {}
    for name in exercise.constants:
        value = function.__globals__.get(name)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1: write for example `{name} = 16` above it.")
        values[name] = int(value)
    return values


class _Judgement:
    """The runs of one check. `label` and `trace` are those of the latest run; faults are raised.

    `home` is a function of the learner's cell, of which the kernel is a change that is tried: its faults are not told.
    """

    def __init__(self, exercise: Exercise, kernel: Any, seed: int, home: Callable | None = None):
        self.exercise, self.kernel, self.seed = exercise, kernel, seed
        self.function, self.is_trial = python_function(kernel), home is not None
        self.home = home or self.function
        self.launch: Launch | Questions | None = None  # the latest
        self.label = ""
        self.allowance = Allowance()
        self.record: Callable[..., Trace] | None = None  # runs the latest launch again
        self.trace: Trace | LoopTrace | None = None
        self.excess: tuple[_Fault, str, Trace | LoopTrace] | None = None  # a budget or duty, with its launch's label
        self.over: Launch | None = None  # that launch

    def run_checks(self, draws: int) -> str:
        """Run and check everything; return the message on a right answer."""
        self._check_source()
        return self._check_launches(draws)

    def add_cure(self, fault: _Fault) -> _Fault:
        """Add the change with which the answer is right, or what nothing uses; nothing in a task that is to find it."""
        if self.launch is None or self.exercise.finds_fault:
            return fault
        if self.exercise.machine == "cpu" and self._is_right_in_python(self.function):
            return fault  # it needs too much, which takes seconds to count
        early = explain_early_return(self.function) if fault.reason in OF_LEAVING else ""
        if early:
            return _Fault(fault.reason, f"{fault}\n- {early}", fault.line, fault.difference, fault.access)
        reason = "bounds" if SAME_ELEMENT in str(fault) else fault.reason  # its index is wrong
        is_told = _has_cure(fault)  # then what comes to the same by chance is no help
        below = CHANCE if is_told else CHANCE + 1
        given = self.exercise.constants
        repair = find_repair(self.function, self._is_repaired, given, reason, fault.line, below)
        if repair:
            told_line = fault.difference.cure_line if is_told and fault.difference else None
            if told_line not in (None, repair.line):
                return fault  # two lines to change would be one too many
            is_other = is_told and told_line is None
            where = f"Line {repair.line}{', for this or in its place' if is_other else ''}"
            message = f"{fault.plain or fault}\n- {where}: {repair.said} {ALONE}"
            return _Fault(fault.reason, message, repair.line, fault.difference, fault.access)
        message = "\n- ".join(filter(None, (str(fault), explain_unused(self.function))))
        return _Fault(fault.reason, message, fault.line, fault.difference, fault.access)

    def _is_repaired(self, function):
        """Tell whether a changed function is right, first on the latest launch."""
        if self.exercise.machine == "cpu" and not self._is_right_in_python(function):
            return False
        trial = _Judgement(self.exercise, function, self.seed, self.home)
        try:
            if isinstance(self.launch, Questions):
                trial._check_answers(self.launch)
            elif self.launch:
                trial._check_launch(self.launch)
            trial._check_launches(draws=1)
        except _Fault:
            return False
        return True

    def _is_right_in_python(self, function):
        """Tell whether a loop is right on a few numbers, without compiling it: that takes seconds."""
        constants = read_constants(self.exercise, self.function)
        sizes = [SMALL + 7 * i for i, _ in enumerate(self.exercise.sizes[0])]
        launch: Any = self.exercise.make_launch(np.random.default_rng(self.seed), *sizes, **constants)
        copies = [np.copy(value) for value in launch.args]
        try:
            with np.errstate(all="ignore"):
                function(*copies)
        except Exception:  # whatever a change leads to
            return False
        return all(expected.holds(copies[position]) for position, expected in launch.outputs.items())

    def _check_launches(self, draws: int) -> str:
        exercise = self.exercise
        try:
            constants = read_constants(exercise, self.function)
            launches: list[Any] = list(exercise.make_launches(self.seed, draws, **constants))
        except ValueError as error:  # constants with which there is no launch
            raise _Fault("launch", str(error)) from None
        fixed = launches[: len(exercise.sizes)]
        labels = "; ".join(launch.label for launch in fixed)
        if exercise.machine == "python":
            for questions in launches:
                self._check_answers(questions)
            return f"Right on {labels}; and on others, drawn at random."
        limits = list_limits(self.function) if exercise.machine == "gpu" else ()
        beyond = exercise.make_launches_beyond(limits, self.seed, **constants)
        first, pace = None, Pace()
        for launch in chain(launches, beyond):
            if launch.may_stop and pace.is_too_slow_for(launch):
                continue
            if self.excess and count_elements(launch) > FAR_LARGER * count_elements(self.over):
                continue  # what does too much may do far too much there
            pace.start()
            try:
                trace = self._check_launch(launch)
            except _Fault as fault:
                if fault.reason == "refused" and launch.may_stop:
                    continue
                if fault.reason == "refused" and self.excess:  # as if it took too long, for what it does too often
                    break
                raise
            pace.stop(launch)
            first = first or trace
            if self.excess and exercise.machine == "cpu":  # the trace of another loop takes seconds
                break
        if self.excess:
            fault, self.label, self.trace = self.excess
            raise fault
        self._check_dependences(launches)
        lines = [f"Right, and without errors, on {labels}; and on sizes drawn at random."]
        return "\n".join([*lines, *_describe_first_run(fixed[0], first)])

    def _check_source(self):
        name, function = self.exercise.function, self.function
        if not inspect.isfunction(function):
            raise _Fault(
                "not a kernel",
                f"`{name}` should be your function, and this is of type {type(function).__name__}: "
                f"hand over its name alone, `check({self.exercise.id!r}, {name})`.",
            )
        try:
            line = find_stub_line(function)
        except (OSError, TypeError, SyntaxError):
            message = "The source of this function cannot be read: define it with `def` in a cell or a file."
            raise _Fault("not a kernel", message) from None
        if line is not None:
            raise _Fault("unfinished", f"Not written yet: line {line} still holds `...`.", line)
        if complaint := explain_foreign_function(function, name):
            raise _Fault("not a kernel", complaint)
        if complaint := _explain_decorator(self.exercise, self.kernel):
            raise _Fault("not a kernel", complaint, function.__code__.co_firstlineno)

    def _check_parameters(self, num_parameters: int, num_args: int):
        if num_parameters != num_args:
            message = f"`{self.exercise.function}` takes {num_parameters} arguments and is given {num_args}: "
            raise _Fault("launch", f"{message}keep the parameters that the exercise came with.")

    def _check_answers(self, questions: Questions):
        """Ask a plain function and check its answers."""
        self._check_parameters(self.function.__code__.co_argcount, len(questions.calls[0]))
        self.label, self.launch = questions.label, questions
        try:
            answers = run_calls(self.function, questions.calls, self.allowance)
        except KernelError as error:
            raise _Fault("refused", _describe_error(error), error.line) from None
        if message := questions.find_mistake(answers):
            cause, cure, line = *_find_cause(questions, answers), None
            if all(answer is None for answer in answers):
                cure = "The function returns nothing: end it with `return`, and the answer behind that."
            cure, line = place_cure(cure, self.function)
            message += f"\n- The answers came out as if {cause}." if cause else ""
            message += f"\n- {cure}" if cure else ""
            clues = tuple(filter(None, (cause, cure)))
            name = self.exercise.function
            raise _Fault(
                "result", message, line, Difference(name, "result", message, clues, cause=cause, cure_line=line)
            )

    def _check_launch(self, launch: Launch) -> Trace | LoopTrace:
        """Run a launch and check its trace."""
        self.label, self.launch, self.trace = launch.label, launch, None
        names = list(inspect.signature(self.function).parameters)
        self._check_parameters(len(names), len(launch.args))
        try:
            trace = self._run(launch)
            helpers = collect_helpers(self.kernel, *launch.args) if self.exercise.machine == "gpu" else []
        except KernelError as error:
            raise _Fault("refused", _describe_error(error), error.line) from None
        except LaunchError as error:
            raise _Fault("launch", str(error)) from None
        except Exception as error:  # a check reports, whatever a learner's code does
            raise _Fault("refused", f"The run ended with {type(error).__name__}: {error}") from None
        self.trace = trace
        if complaint := find_foreign_helper(self.home, helpers):
            raise _Fault("not a kernel", complaint)
        _check_inputs(launch, trace, names)
        self._check_findings(trace)
        self._check_outputs(launch, trace, names)
        backwards = self._check_backwards(launch, trace, names)
        if not self.excess:
            self.excess, self.over = self._find_excess(launch, trace, backwards), launch
        return trace

    def _find_excess(self, launch: Launch, trace: Trace | LoopTrace, backwards: Trace | None):
        """Find a budget or a duty that is not met. A result that is wrong in another launch is told first.

        Duties are checked in the other order of blocks, too: the last block may be idle until it comes last.
        """
        try:
            _check_budgets(launch, trace, self.function)
            _check_duties(launch, trace)
        except _Fault as fault:
            return fault, self.label, trace
        try:
            if backwards:
                _check_duties(launch, backwards)
        except _Fault as fault:
            return _Fault(fault.reason, f"{OTHER_ORDER}, the work was shared otherwise.\n{fault}"), self.label, trace
        return None

    def _check_backwards(self, launch: Launch, trace: Trace | LoopTrace, names: list[str]) -> Trace | None:
        """Run a launch once more with its blocks in another order, if they can tell: by what atomics return."""
        atomics = [c for c in trace.sites if c.site.kind == "atomic" and c.accesses]
        if self.exercise.machine != "gpu" or prod(launch.grid) == 1 or not atomics:
            return None
        try:
            self.trace = backwards = self._simulate(simulate_backwards, launch)
            self._check_findings(backwards)
            self._check_outputs(launch, backwards, names)
        except KernelError as error:
            raise _Fault("refused", f"{OTHER_ORDER}, it stopped: {error}", error.line) from None
        except _Fault as fault:
            message = f"{OTHER_ORDER}, it went wrong.\n{fault}"
            raise _Fault(fault.reason, message, fault.line, fault.difference, fault.access) from None
        self.trace = trace
        return backwards

    def _run(self, launch: Launch) -> Trace | LoopTrace:
        if self.exercise.machine == "cpu":
            return trace_loop(self.kernel, *launch.args)
        if getattr(self.kernel, "device", False):
            message = f"`{self.exercise.function}` is a device function: leave out `device=True`"
            raise LaunchError(f"{message}, so that it is a kernel.")
        return self._simulate(simulate, launch)

    def _simulate(self, run: Callable, launch: Launch) -> Trace:
        options = {"shared_bytes": launch.shared_bytes}
        self.record = record = partial(run, self.kernel, launch.grid, launch.block, *launch.args, **options)
        return record(record=((0, 0, 0), tuple(size - 1 for size in launch.grid)))

    def _record(self, trace: Trace, *blocks: tuple[int, int, int]) -> Trace:
        """Run the latest launch, whose trace is given, once more with the accesses of other blocks."""
        try:
            return self.record(record=blocks) if self.record else trace
        except KernelError:  # the time that all runs may take is over
            return trace

    def _check_findings(self, trace: Trace | LoopTrace):
        errors = [finding for finding in trace.errors if finding.kind != "unwritten"]  # that is told of outputs
        if not errors:
            return
        order = {kind: rank for rank, kind in enumerate(FIRST_KINDS)}
        first = min(errors, key=lambda finding: order.get(finding.kind, len(order)))
        access = None
        if isinstance(trace, Trace) and (access := find_access(trace, first)):
            block = access.thread.block
            self.trace = trace if block in trace.samples.blocks else self._record(trace, block)
        sentences = re.split(SENTENCE_END, add_line(first.line, first.message))
        plain = list_after_two(re.split(SENTENCE_END, add_line(first.line, first.fact)))
        raise _Fault(first.kind, list_after_two(sentences), first.line, access=access, plain=plain)

    def _check_outputs(self, launch: Launch, trace: Trace | LoopTrace, names: list[str]):
        if self.is_trial and not all(each.holds(trace.outputs[i]) for i, each in launch.outputs.items()):
            raise _Fault("result", "")
        wrong = find_wrong_output(launch, names, trace.outputs)
        if wrong is None:
            return
        wrong = place_clues(wrong, self.function)
        place = wrong.cure_line
        sites = [counters.site for counters in trace.sites]
        lines = sorted({site.line for site in sites if site.array == wrong.name and site.kind != "load"})
        if not lines:
            raise _Fault(wrong.reason, f"{wrong.message}\n- No line stores to {wrong.name}.", None, wrong)
        if wrong.reason != "result":
            no_store = not any(site.accesses for site in trace.sites if site.site.array == wrong.name)
            hint = f"\n- No thread reaches line {lines[0]}: is the condition around it right?" * no_store
            raise _Fault(wrong.reason, f"{wrong.message}{hint}", place or lines[0], wrong)
        message, stores = wrong.message, self._find_stores(wrong, trace)
        message += _tell_read_of_unwritten(wrong, sites)
        suspicion = find_suspect(self.function, wrong.name, trace.findings)
        if not wrong.cause:
            message += f"\n- {suspicion.told}" if suspicion.told else ""
            if suspicion.line:
                message += f"\n- Look at line {suspicion.line}: what else leads to {wrong.name} is written as usual."
            elif stores and len(lines) > 1 and isinstance(trace, Trace):
                message += self._tell_stores(wrong, trace)
        raise _Fault(wrong.reason, message, place or suspicion.line, wrong, stores[-1] if stores else None, wrong.plain)

    def _find_stores(self, wrong: Difference, trace: Trace | LoopTrace) -> list[FailingAccess]:
        """Find the stores to the first wrong element; keep the accesses of the block that made the last of them."""
        if not isinstance(trace, Trace) or wrong.element is None:
            return []
        stores = find_stores(trace, wrong.name, wrong.element)
        if not stores and (blocks := list_blocks(trace)):
            trace = self._record(trace, *blocks)
            stores = find_stores(trace, wrong.name, wrong.element)
            if stores:
                self.trace = keep_block(trace, stores[-1].thread.block)
        return stores if trace.samples.complete else []

    def _tell_stores(self, wrong: Difference, trace: Trace) -> str:
        """Tell which of several lines store what is wrong, if all blocks can be recorded."""
        blocks = list_blocks(trace)
        trace = trace if len(trace.samples.blocks) == len(blocks) else self._record(trace, *blocks)
        if not blocks or not trace.samples.complete or len(trace.samples.blocks) != len(blocks):
            return ""
        told = tell_stores(trace, wrong.name, wrong.mask)
        return f"\n- {told}" if told else ""

    def _check_dependences(self, launches: Sequence[Launch]):
        """Find what the result must depend on and does not, by disturbed runs of one of the launches."""
        rng = np.random.default_rng([self.seed, 1])
        candidates = [launch for launch in launches if launch.dependences]
        if not candidates:
            return
        launch = candidates[rng.integers(len(candidates))]
        self.label, self.trace = launch.label, None
        names = list(inspect.signature(self.function).parameters)
        for dependence in launch.dependences:
            shortfall = dependence.find_shortfall(rng, names, launch, partial(_run_disturbed, self.kernel, launch))
            if shortfall:
                raise _Fault("duty", f"{ANOTHER_WAY}.\n{shortfall}")


def _tell_read_of_unwritten(wrong, sites):
    """Name the line that reads an output whose first wrong element was computed from what it held; else ""."""
    line = next((site.line for site in sites if site.array == wrong.name and site.kind == "load"), None)
    if line is None or not wrong.is_from_unwritten:
        return ""
    return f"\n- Line {line} reads {wrong.name}: leave that out where its factor is 0, since 0 * NaN is NaN, too."


def _find_cause(questions: Questions, answers: Sequence[Any]) -> tuple[str, str]:
    """Return the usual mistake that gives all these answers, and its cure; "" if none does."""
    for cause, answer, *cure in questions.mistakes:
        if answers == [answer(*call) for call in questions.calls]:
            return cause, cure[0] if cure else ""
    return "", ""


def _has_cure(fault):
    """Tell whether a fault is told by a usual mistake that says what to do."""
    return bool(fault.difference and fault.difference.cause and len(fault.difference.clues) > 1)


def _explain_decorator(exercise: Exercise, kernel: Any) -> str:
    """Return a sentence if the decorator of a kernel or a loop is missing or is another's, else ""."""
    is_kernel = hasattr(type(kernel), "__getitem__")  # as in `kernel[grid, block]`
    if exercise.machine == "gpu" and not is_kernel:
        return f"`{exercise.function}` is not a kernel: write `@cuda.jit` in the line above its `def`."
    if exercise.machine == "cpu" and (is_kernel or not hasattr(kernel, "py_func")):
        return f"`{exercise.function}` is not a compiled loop: write `@njit` in the line above its `def`."
    return ""


def _join(numbers: Sequence[int]) -> str:
    """Return numbers as a list in a sentence."""
    *most, last = map(str, numbers) if numbers else ("",)
    return f"{', '.join(most)} and {last}" if most else last


def _describe_error(error: KernelError) -> str:
    return f"Line {error.line}: {error.reason.removesuffix('.')}."


def _run_disturbed(kernel, launch, args, disturbance) -> Trace | None:
    """Return the trace of a run that is disturbed or has other arguments, None if it failed."""
    options = {"shared_bytes": launch.shared_bytes, "disturbance": disturbance}
    try:
        return simulate_disturbed(kernel, launch.grid, launch.block, *args, **options)
    except KernelError:
        return None


def _describe_first_run(launch, trace):
    """Return lines on what the first run used of its budgets, and on the simulator's advice."""
    budgets = [budget for budget in launch.budgets if budget.at_most]
    scores = [_describe_use(budget, read_counter(budget.counter, trace)) for budget in budgets]
    advice = [finding.message for finding in trace.findings if finding.kind in ADVICE]
    lines = [f"Used on the first of them: {', '.join(scores)}."] if scores else []
    return [*lines, *(f"Advice: {message}" for message in advice[:1])]


def _describe_use(budget, count):
    if budget.counter.startswith("%"):
        return f"{count_words(count, budget.counter)} (at most {budget.at_most}%)"
    return f"{count:,} of {count_words(budget.at_most, budget.counter)}"


def _check_inputs(launch, trace, names):
    """Find a store to an input, even one that changes no value."""
    inputs = {name for position, name in enumerate(names) if position not in launch.outputs}
    for counters in trace.sites:
        site = counters.site
        if site.array in inputs and site.kind != "load" and counters.accesses:
            message = f"Line {site.line}: `{site.text}` changes {site.array}, which is an input: only load from it."
            raise _Fault("input changed", message, site.line)


def add_line(line: int, message: str) -> str:
    """Put the line in front of a message that does not name it."""
    return message if re.search(rf"\b[Ll]ine {line}\b", message) else f"Line {line}: {message}"


def _check_budgets(launch, trace, function):
    full = [each for each in launch.budgets if each.counter == SHARED_BYTES]
    is_full = any(read_counter(each.counter, trace) >= each.at_most for each in full)
    for budget in launch.budgets:
        count = read_counter(budget.counter, trace)
        if count > budget.at_most:
            message, line, advice = _blame(budget, count, trace, function, is_full)
            plain = "\n- ".join(filter(None, (message, budget.cure)))
            message = "\n- ".join(filter(None, (message, advice, budget.cure)))
            raise _Fault("budget", message, line, plain=plain)


def _there_are(count, counter):
    """Begin a sentence on a counter: "There are 2 barriers", "25% of the shared loads are made ..."."""
    words = count_words(count, counter)
    return words if counter.startswith("%") else f"There {is_or_are(count)} {words}"


def _blame(budget, count, trace, function, is_full) -> tuple[str, int | None, str]:
    """Return the message on an exceeded budget, the line that uses most of it, and a sentence on that line."""
    message = (
        f"The result is right, but not within the budget. {_there_are(count, budget.counter)}, "
        f"and {allowance_words(budget.at_most, budget.counter)} ({budget.formula})."
    )
    if budget.counter == FLOAT64:
        finding = next((finding for finding in trace.findings if finding.kind == "float64"), None)
        why, line = (finding.fact, finding.line) if finding else _explain_float64(trace)
        of_number = "` is int64; "  # what the other lines compute may follow from this one, unless it is a number
        numbers = {f.line for f in trace.findings if f.kind == "float64" and of_number in f.fact}
        lines = sorted(numbers) if of_number in why else []
        text = linecache.getline(function.__code__.co_filename, line) if line else ""
        is_one = not lines or len(lines) == 1 and len(re.findall(r"(?<![\w.])\d+(?![\w.])", text)) < 2
        more = f"Do so with each number that meets a float32, in line{'s' * (len(lines) > 1)} {_join(lines)}."
        return f"{message}\n{why}", line, more * (not is_one)
    barriers, line = explain_barriers(budget, function)
    worst, advice = find_site(budget, trace, function, is_full)
    site, site_count = worst.site, read_site_counter(budget.counter, worst)
    if not site_count:
        return message, line, barriers
    if budget.shares:
        share = budget.share_of(site.array)
        of_one = (counters for counters in trace.sites if counters.site.array == site.array)
        array_count = sum(read_site_counter(budget.counter, counters) for counters in of_one)
        of_array = f"{array_count:,} of them {is_or_are(array_count)} of {site.array}"
        message += f"\n{of_array}, which may have {f'{share:,}' if share else 'none'}: "
        if budget.cure and (line := _line_of_constant(budget.cure, function)):  # it says what to change
            return f"{message.removesuffix(': ')}.", line, advice
        return f"{message}look at `{site.text}` in line {site.line}.", site.line, advice
    message += f"\n{site_count:,} of them {is_or_are(site_count)} made by "
    return f"{message}`{site.text}` in line {site.line}.", site.line, advice


def _line_of_constant(cure, function) -> int | None:
    """Return the line that sets a constant of the learner's cell which a cure names; None if there is none."""
    names = [name for name in re.findall(r"\b[A-Z][A-Z_]+\b", cure) if name in function.__code__.co_names]
    lines = enumerate(linecache.getlines(function.__code__.co_filename), 1) if names else ()
    return next((line for line, text in lines if re.match(rf"[\w, ]*\b{names[0]}\b[\w, ]*=", text)), None)


def _explain_float64(trace) -> tuple[str, int | None]:
    """Explain float64 arithmetic on operands none of which is float32, and return its first line."""
    line = min(trace.float64_lines, default=None)
    why = "a number such as `1.0` is float64, and so is a quotient of whole numbers: write `np.float32(...)` around it."
    return f"{'The code' if line is None else f'Line {line}'} computes in float64; {why}", line


def _check_duties(launch, trace):
    for duty in launch.duties:
        count = read_counter(duty.counter, trace)
        if not duty.at_least <= count <= duty.at_most:
            few = count < duty.at_least
            need = f"at least {limit_words(duty.at_least, duty.counter)} needed"
            limit = need if few else allowance_words(duty.at_most, duty.counter)
            raise _Fault("duty", f"{ANOTHER_WAY}. {_there_are(count, duty.counter)}, and {limit} ({duty.why}).")

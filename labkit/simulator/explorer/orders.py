"""`simulate_in_orders`: a launch in several orders of its blocks and warps, for programs of any size.

`explore` searches the orders of a small launch access by access. Here whole warps, or groups of blocks, alternate
between barriers: a few runs, which show what a race does to the result.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labkit.simulator import run
from labkit.simulator.arguments import flatten_arguments
from labkit.simulator.errors import KernelError
from labkit.simulator.l2 import NoL2
from labkit.simulator.launch import CHUNK_LANES, Launch
from labkit.simulator.limits import PATIENCE
from labkit.simulator.memory import equal_with_nan
from labkit.simulator.pace import Pace
from labkit.simulator.warp_order import MAX_SETS, ORDERS, WarpOrder
from labkit.trace import Finding, Trace

ROUNDINGS = 1000  # by which sums of floats may differ between orders, in units of the last place of the largest


@dataclass(frozen=True)
class _Outcome:
    """Arrays by name after a run in one order; None where it did not end."""

    order: WarpOrder
    arrays: dict[str, np.ndarray] | None
    errors: tuple[Finding, ...]


def simulate_in_orders(kernel, grid, block, *args: Any, shared_bytes: int = 0, pace: Pace | None = None) -> Trace:
    """Run as `simulate`, and then in the other `ORDERS`; return the trace of the first run with the findings of all.

    An array whose contents depend on the order is an error. It is advice if the kernel uses what an atomic returned,
    since then a right kernel may fill an array in any order. Sums of floats by atomics may differ by rounding.
    A launch beyond its time limit is not run in further orders.
    """
    pace = pace or Pace()
    pace.runs = 1 + len(ORDERS)
    trace = run.simulate(kernel, grid, block, *args, shared_bytes=shared_bytes, pace=pace)
    make_launch, arguments = run.prepare_launch(kernel, grid, block, args, shared_bytes, trace.gpu, watch=False)
    names = kernel.py_func.__code__.co_varnames
    results = _arrays(names, trace.outputs)
    if not results or any(f.kind == "deadlock" for f in trace.findings):
        return trace
    outcomes = []
    for order in ORDERS:
        if pace.is_over:
            break
        pace.run += 1
        outcomes.append(_run_in(order, make_launch, arguments, names, pace))
    findings = [*trace.findings, *_new_errors(trace, outcomes)]
    findings += _differences(trace, results, outcomes, make_launch.args[0], has_errors=_has_error(findings))
    findings += [_not_explored(trace, len(outcomes), pace)] if len(outcomes) < len(ORDERS) else []
    return replace(trace, findings=tuple(sorted(findings, key=lambda f: f.severity != "error")))


def _run_in(order, make_launch, arguments, names, pace) -> _Outcome:
    def set_up(launch: Launch):
        launch.record((), None)
        launch.order, launch.pace, launch.l2 = order, pace, NoL2()
        launch.patience = MAX_SETS  # each set of warps runs the loops again
        if pace.time_limit_s is not None:
            launch.patience *= PATIENCE
        is_small = launch.blocks * launch.threads_per_block <= CHUNK_LANES
        if not (is_small or launch.program.keeps_clocks):  # else the order changes no race
            launch.is_checked = False

    try:
        _, launch = run.run_to_end(make_launch, set_up)
    except KernelError as error:
        return _Outcome(order, None, (_stopped(error, order),))
    launch.log.drop_undefined()  # the first run tells of these
    errors = tuple(f for f in launch.log.finished() if f.severity == "error")
    has_ended = not any(f.kind == "deadlock" for f in errors)
    return _Outcome(order, _arrays(names, launch.outputs(arguments)) if has_ended else None, errors)


def _stopped(error, order):
    message = f"Line {error.line}: with {order.name}, the launch does not end: {error.reason}"
    return Finding("order", "error", message, error.line)


def _arrays(names, outputs) -> dict[str, np.ndarray]:
    return {name: a for name, a in flatten_arguments(names, outputs).items() if isinstance(a, np.ndarray)}


def _has_error(findings):
    return any(f.severity == "error" for f in findings)


def _new_errors(trace: Trace, outcomes: list[_Outcome]) -> Iterator[Finding]:
    """Yield the errors that only other orders show, each once; a race explains a read before the write."""
    seen = {_cause(f) for f in trace.findings}
    raced = {(f.array, line) for f in trace.findings if f.kind == "race" for line in (f.line, f.other_line)}
    for outcome in outcomes:
        for finding in outcome.errors:
            is_explained = finding.kind == "uninitialised" and (finding.array, finding.line) in raced
            if (cause := _cause(finding)) not in seen and not is_explained:
                seen.add(cause)
                yield finding


def _cause(finding):
    """Return what two findings of one fault share: which of two lines of a race comes first depends on the order."""
    lines = sorted((finding.line, finding.other_line or finding.line))
    return finding.kind, finding.array, *lines


def _differences(trace, results, outcomes, program, has_errors) -> Iterator[Finding]:
    """Yield a finding per array that other orders leave with other contents."""
    atomics = any(c.site.kind == "atomic" for c in trace.sites)
    for name, first in results.items():
        ended = [(o.order, o.arrays[name]) for o in outcomes if o.arrays is not None]
        others = [(order, a, _differs(first, a, atomics)) for order, a in ended]
        changed = [(order, a, differs) for order, a, differs in others if differs.any()]
        if not changed:
            continue
        order, other, differs = changed[0]
        index = tuple(int(i) for i in np.unravel_index(int(differs.argmax()), differs.shape))
        race = next((f for f in trace.errors if f.kind == "race" and f.array == name), None)
        race = race or next((f for f in trace.errors if f.kind == "race"), None)
        site = next((c.site for c in trace.sites if c.site.array == name and c.site.kind != "load"), None)
        line = site.line if site else trace.first_line
        where = f"{name}[{', '.join(map(str, index))}]"
        values = f"{_shown(first[index])} with all warps in step, and {_shown(other[index])} with {order.name}"
        message = (
            f"Line {line}: the result depends on the order in which warps and blocks run. {where} is {values}; "
            f"{int(differs.sum()):,} of {first.size:,} elements of {name} differ, in {len(changed)} of {len(ended)} "
            "other orders."
        )
        is_decided_by_atomic = program.acts_on_atomics and not has_errors
        if race:
            cure = f"The race on {race.array} in line {race.line} is the likely cause: fix that first."
        elif is_decided_by_atomic:
            cure = "Here an atomic decides which thread comes first: make sure that every order is right."
        else:
            cure = "Let one thread write each element, or put a barrier between the accesses of several."
        severity = "advice" if is_decided_by_atomic else "error"
        yield Finding(
            "order", severity, f"{message} {cure}", line, site.column if site else 0, name, index, remedy=cure
        )


def _shown(value) -> str:
    return f"{value:.6g}" if isinstance(value, np.floating) else str(value)


def _differs(first, other, atomics) -> np.ndarray:
    """Return where two arrays differ, apart from the rounding of sums if atomics make them."""
    if first.dtype.names:
        return first != other
    equal = equal_with_nan(first, other)
    if atomics and first.dtype.kind in "fc" and first.size:
        finite = np.abs(first[np.isfinite(first)])
        largest = finite.max() if finite.size else 0
        with np.errstate(all="ignore"):
            equal |= np.abs(first - other) <= ROUNDINGS * np.finfo(first.dtype).eps * largest
    return ~equal


def _not_explored(trace, count, pace):
    message = (
        f"Line {trace.first_line}: the time limit of {pace.time_limit_s:g} s ended the search after {count + 1} of "
        f"{len(ORDERS) + 1} orders; launch a smaller problem, or raise the limit."
    )
    return Finding("order", "advice", message, trace.first_line)

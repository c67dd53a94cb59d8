"""Advice on an exceeded budget, from the code: what is repeated in a loop, and what goes down a column."""

import ast
from collections.abc import Callable, Iterator

from labkit.checking.budget import BARRIERS, Budget, find_worst_site, read_counter, read_site_counter
from labkit.checking.source import read_function
from labkit.loops.loop_trace import LoopSite, LoopTrace
from labkit.rebinding import names_in
from labkit.trace import SiteCounters, Trace

MISSES = "misses of the L1 cache"
LOADS = "global loads", "load requests"
ADVICE = {  # kinds of findings, by counter
    "sectors loaded": "uncoalesced",
    "sectors stored": "uncoalesced",
    "bank conflicts": "bank-conflict",
}
ONCE = {"load": "load it once, before that loop", "store": "store it once, after that loop"}


def find_site(
    budget: Budget, trace: Trace | LoopTrace, function: Callable, is_full: bool
) -> tuple[SiteCounters | LoopSite, str]:
    """Return the access that is to blame for most of an overrun, and a sentence on it, "" if there is none.

    An access that a loop repeats is to blame if the budget is kept without it.

    Parameters
    ----------
    is_full
        Whether no more shared memory may be used.
    """
    tree = read_function(function)
    too_many = read_counter(budget.counter, trace) - budget.at_most
    for counters in trace.sites if tree and budget.counter != MISSES else ():
        loop = _find_loop(tree, counters.site.line)
        is_enough = read_site_counter(budget.counter, counters) >= too_many
        if is_enough and loop and counters.site.kind in ONCE and not _changes(loop, counters.site.text):
            said = f"It is the same in each round of the loop in line {loop.lineno}: {ONCE[counters.site.kind]}."
            return counters, said
    worst = find_worst_site(budget, trace)
    if budget.counter == MISSES:
        return worst, _explain_walk(tree, worst.site) if tree else ""
    return worst, _explain_copies(budget, trace, worst.site) or _find_advice(budget, trace, worst.site, is_full)


def _explain_copies(budget, trace, site):
    """Say in how many places an element is loaded; "" if it is one."""
    loads = [counters.site.text for counters in trace.sites if counters.site.kind == "load"]
    places = loads.count(site.text)
    if budget.counter not in LOADS or places == 1:
        return ""
    return f"`{site.text}` is loaded in {places} places: load it once into a variable, and use that."


def _find_advice(budget, trace, site, is_full):
    """Return what the simulator advises on a wide access; "" if the budget has its own cure."""
    kind = "" if budget.cure else ADVICE.get(budget.counter)
    if kind == "bank-conflict" and "^" in site.text:
        return "Lanes of a warp that this XOR sends to one bank wait for each other: let it change other bits."
    if kind == "bank-conflict" and is_full:
        return "Hold the elements in other places of the tile, where lines store and load: it has no room for padding."
    return next((f.remedy for f in trace.findings if (f.kind, f.line) == (kind, site.line)), "")


def _explain_walk(tree, site):
    """Say by which loop an element of a matrix goes down a column; "" if the innermost loop around it does not."""
    loop = _find_loop(tree, site.line)
    subscript = ast.parse(site.text, mode="eval").body
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return ""
    match subscript:
        case ast.Subscript(_, ast.Tuple([row, column])):
            name = loop.target.id
            if name in names_in(row) and name not in names_in(column):
                return (
                    f"`{name}`, of the innermost loop in line {loop.lineno}, goes down a column of {site.array}: each "
                    "step needs another line. Let the innermost loop walk along rows, or tiles use each line up."
                )
    return ""


def explain_barriers(budget: Budget, function: Callable) -> tuple[str, int | None]:
    """Return a sentence on the barrier that runs most often, and its line; "" if that cannot be told."""
    tree = read_function(function)
    if tree is None or budget.counter != BARRIERS:
        return "", None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    lines = [call.lineno for call in calls if ast.unparse(call.func) == "cuda.syncthreads"]
    depths = {line: sum(1 for _ in _loops_around(tree, line)) for line in lines}
    deepest = [line for line in lines if depths[line] == max(depths.values())]
    loop = _find_loop(tree, deepest[0]) if deepest else None
    if len(deepest) == 1 < len(lines) and loop:
        line = deepest[0]
        return f"The barrier in line {line} runs in each round of the loop in line {loop.lineno}: move it out.", line
    if len(deepest) > 1:
        *most, last = deepest
        where = f"{', '.join(map(str, most))} and {last}"
        return f"The barriers in lines {where} run equally often: which of them does no thread need?", None
    return "", None


def _find_loop(tree, line) -> ast.For | ast.While | None:
    """Return the innermost loop around a line."""
    return max(_loops_around(tree, line), key=lambda loop: loop.lineno, default=None)


def _loops_around(tree, line) -> Iterator[ast.For | ast.While]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While) and node.body[0].lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def _changes(loop, text):
    """Tell whether what a loop sets decides which element is accessed."""
    used = names_in(ast.parse(text, mode="eval"))
    return bool(used & names_in(loop, ast.Store))

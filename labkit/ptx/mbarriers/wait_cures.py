"""Suggested fixes for waits at barriers in shared memory that never end, from how the kernel counts its phases."""

import ast
from typing import Any

ARRIVALS = "mbarrier_arrive", "mbarrier_expect"  # and their like: names that begin so
WAIT = "mbarrier_wait"


def cure_of_waits(kernel: ast.FunctionDef, waits: list[tuple[Any, int, int]]) -> str:
    """Return a sentence on why waits never end, each at (barriers, number, parity); "" if nothing shows it."""
    cures = [_cure_of_bytes(*wait) for wait in waits] + [_cure_of_arrivals(kernel, *wait) for wait in waits]
    cures += [cure_of_count(kernel), _cure_of_first_waits(waits), _cure_of_early_return(kernel, waits)]
    return next(filter(None, cures), "")


def _cure_of_bytes(barriers, number, parity):
    expected = int(barriers.expected_bytes[number])
    brought = int(barriers.arrived_bytes[number]) + sum(c.box_bytes for c, _ in barriers.copies.get(number, ()))
    if not expected or not brought or expected == brought:
        return ""
    return (
        f"The copies of this phase bring {brought:,} bytes, and {expected:,} are announced: give `ptx.mbarrier_expect` "
        "the bytes of all its copies."
    )


def _cure_of_arrivals(kernel, barriers, number, parity):
    name = barriers.array.name
    calls = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and n.args]
    if any(part in ast.unparse(n.func) and ast.unparse(n.args[0]) == name for n in calls for part in ARRIVALS):
        return ""
    return (
        f"No line arrives at {name}: let the threads that its `ptx.mbarrier_init` counts call "
        f"`ptx.mbarrier_arrive({name}, ...)` when they are done."
    )


def _cure_of_first_waits(waits):
    """Return the cure where all wait for the first phases, at two arrays or more, and nobody has arrived."""
    is_first = all(
        parity == 0 and barriers.phase[number] == 0 and barriers.pending[number] == barriers.count[number]
        for barriers, number, parity in waits
    )
    if not is_first or len({barriers.array.name for barriers, _, _ in waits}) < 2:
        return ""
    return (
        "All wait for the first phase of a barrier, so nobody begins: let those that must act first wait for parity 1, "
        "which goes on at once while no phase is complete."
    )


def _cure_of_early_return(kernel, waits):
    """Return the cure where a stage has been given back more often than filled."""
    calls = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and n.args]
    filled = {ast.unparse(n.args[0]) for n in calls if ast.unparse(n.func).endswith("mbarrier_expect")}
    full = [(b, number) for b, number, _ in waits if b.array.name in filled]
    for barriers, number, _ in waits:
        for other, stage in full:
            is_same_stage = barriers.array.name not in filled and number == stage
            if is_same_stage and barriers.phase[number] > other.phase[stage]:
                name, full_name = barriers.array.name, other.array.name
                return (
                    f"`{name}` has completed more phases here than `{full_name}`, so a stage was given back before "
                    f"it was full: let the first wait for `{full_name}` be for parity 0."
                )
    return ""


def cure_of_count(kernel: ast.FunctionDef) -> str:
    """Return a sentence on a count of phases that stands still in a loop, or begins anew in another; "" for none."""
    assigned = _assignments(kernel)
    for call in [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(WAIT)]:
        loops = _loops_around(kernel, call.lineno)
        if len(call.args) != 3 or not loops:
            continue
        counts = _find_counts(assigned, _names(call.args[2]))
        inner, outer = loops[-1], loops[:-1]
        if counts and not _closure(assigned, _names(call.args[2])) & _names_counted(inner):
            return (
                f"Nothing in the loop of line {inner.lineno} changes {_list_names(counts)}, and so the parity of line "
                f"{call.lineno}: count each phase."
            )
        for loop in outer:
            line = _line_of_start(loop, inner, counts, assigned)
            if line:
                return (
                    f"Line {line} begins the count of phases anew in each iteration of the loop of line {loop.lineno}, "
                    "and the barriers go on from where they were: count through all iterations."
                )
    return ""


def _closure(assigned, names):
    """Return names and the variables on which they depend."""
    while more := {n for name in names for value in assigned.get(name, ()) for n in _names(value)} - names:
        names = names | more
    return names & assigned.keys()


def _find_counts(assigned, names):
    """Return the variables on which names depend, and that depend on no others."""
    names = _closure(assigned, names)
    return {name for name in names if not {n for v in assigned[name] for n in _names(v)} & assigned.keys() - {name}}


def _line_of_start(loop, inner, counts, assigned):
    """Return the line in a loop around the inner one at which counts begin anew in each iteration; None if none is."""
    if isinstance(loop, ast.For) and _names(loop.target) & counts:
        return None
    starts = [s for s in ast.walk(loop) if isinstance(s, ast.Assign) and _is_start(s) and _sets(s) & counts]
    if starts:
        return starts[0].lineno
    is_index = isinstance(inner, ast.For) and counts == _names(inner.target) and not any(assigned[n] for n in counts)
    return inner.lineno if is_index else None


def _list_names(names):
    return " and ".join(f"`{name}`" for name in sorted(names))


def _loops_around(tree, line):
    """Return the loops around a line, from the outermost to the innermost; `tree` itself may be one."""
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While) and n.lineno < line <= n.end_lineno]
    return sorted(loops, key=lambda loop: loop.lineno)


def _assignments(tree) -> dict[str, list[ast.expr]]:
    """Return what each name is set to; a loop's variable depends on nothing else."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(value=value):
                for name in _sets(node):
                    found.setdefault(name, []).append(value)
            case ast.AugAssign(ast.Name(name), _, value):
                found.setdefault(name, []).append(value)
            case ast.For(target):
                for name in _names(target):
                    found.setdefault(name, [])
    return found


def _names(node) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _sets(statement: ast.Assign) -> set[str]:
    return {n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _names_counted(loop) -> set[str]:
    """Return the names that a loop counts, its variable among them."""
    nodes = [n.target for n in ast.walk(loop) if isinstance(n, ast.AugAssign | ast.For)]
    own = [n for n in ast.walk(loop) if isinstance(n, ast.Assign) and _sets(n) & _names(n.value)]
    return {name for node in nodes for name in _names(node)} | {name for node in own for name in _sets(node)}


def _is_start(statement):
    """Return whether a statement sets names to constants."""
    values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
    return all(isinstance(value, ast.Constant) for value in values)

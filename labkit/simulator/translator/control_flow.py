"""What the statements of a kernel do with control: leave early, wait for other warps, never end."""

import ast

from labkit.simulator.instruction import instruction_of
from labkit.simulator.translator.outside import outside, path_of
from labkit.simulator.translator.source import captured, read_source, unwrap

BARRIERS = set("syncthreads syncthreads_count syncthreads_and syncthreads_or sync".split())  # of `cuda`


def blocks(function, known: dict) -> bool:
    """Does the function, or a device function that it calls, wait for other warps? `known` keeps the answers."""
    if function not in known:
        known[function] = False  # until it is known; a function that calls itself is refused
        tree = read_source(function).tree
        spins = any(isinstance(n, ast.While) and is_spin(n) for n in ast.walk(tree))
        known[function] = spins or waits([tree], captured(function), known)
    return known[function]


def waits(nodes, names, known: dict) -> bool:
    """Do these statements hold a barrier, or call a device function that waits? `names` resolves the calls."""
    if not BARRIERS.isdisjoint(called(nodes, names)) or any(i.waits for i in instructions(nodes, names)):
        return True
    return any(blocks(callee, known) for callee in callees(nodes, names))


def meets_grid(nodes, names, known: dict) -> bool:
    """Do these statements, or a device function that they call, hold a barrier of the whole grid?"""
    return "sync" in called(nodes, names) or any(_meets_grid(callee, known) for callee in callees(nodes, names))


def _meets_grid(function, known):
    if function not in known:
        known[function] = False
        known[function] = meets_grid([read_source(function).tree], captured(function), known)
    return known[function]


def called(nodes, names) -> set[str]:
    """The last names of what these statements call: `syncthreads` of `cuda.syncthreads()`, under any name of it."""
    calls = [n.func for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call)]
    by_name = [path_of(outside(function, names)) or "" for function in calls if isinstance(function, ast.Name)]
    by_dot = {function.attr for function in calls if isinstance(function, ast.Attribute)}
    return by_dot | {path.rpartition(".")[2] for path in by_name}


def callees(nodes, names) -> list:
    """The device functions that these statements call."""
    found = (unwrap(value) for value in _called_values(nodes, names))
    return [callee for callee in found if callee is not None]


def instructions(nodes, names) -> list:
    """The instructions that these statements call."""
    found = (instruction_of(value) for value in _called_values(nodes, names))
    return [instruction for instruction in found if instruction is not None]


def _called_values(nodes, names):
    return (outside(n.func, names) for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call))


def is_atomic(node) -> bool:
    """Is this a call of `cuda.atomic`?"""
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and getattr(function.value, "attr", "") == "atomic"


def is_spin(loop: ast.While) -> bool:
    """Does the loop wait for another thread: by what an atomic returns, or by a bare reload in its condition?"""
    unused = {id(n.value) for n in ast.walk(loop) if isinstance(n, ast.Expr)}
    for node in ast.walk(loop):
        if is_atomic(node) and id(node) not in unused:
            return True
    idle = all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)) for s in loop.body
    )
    return idle and any(isinstance(n, ast.Subscript) for n in ast.walk(loop.test))


def moving(loop: ast.While) -> list[str]:
    """The variables that a loop changes and that its condition reads: while they change, nobody is stuck."""
    stored = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return sorted(stored & {n.id for n in ast.walk(loop.test) if isinstance(n, ast.Name)})


def never_ends(loop: ast.While) -> bool:
    """Does nothing in the loop change its condition, or leave it?"""
    if is_spin(loop) or has([loop.test], ast.Call, ast.Subscript) or has(loop.body, ast.Return):
        return False
    return not moving(loop) and not breaks(loop.body)


def breaks(body) -> bool:
    """Do these statements hold a `break` of the loop around them?"""
    for node in body:
        if isinstance(node, ast.Break) or (isinstance(node, ast.If) and (breaks(node.body) or breaks(node.orelse))):
            return True
    return False


def is_test(node) -> bool:
    """Is the value of this expression certainly a bool?"""
    if isinstance(node, ast.BoolOp):
        return all(is_test(operand) for operand in node.values)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def has(nodes, *kinds) -> bool:
    return any(isinstance(n, kinds) for node in nodes for n in ast.walk(node))


def jumps(nodes) -> bool:
    """Can lanes leave these statements early (a break or continue of an inner loop does not count)?"""
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, (ast.For, ast.While)):
            if has([node], ast.Return) or jumps(node.orelse):
                return True
        elif isinstance(node, ast.If) and (jumps(node.body) or jumps(node.orelse)):
            return True
    return False

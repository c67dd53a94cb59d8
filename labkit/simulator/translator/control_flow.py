"""Control flow of a kernel's statements: whether they wait for other warps, and what they call."""

import ast

from labkit.simulator.instruction import instruction_of
from labkit.simulator.reading.outside import language_path, value_outside
from labkit.simulator.reading.source import captured_values, python_function, read_source
from labkit.simulator.reading.syntax import is_spin, walk

BARRIERS = set("syncthreads syncthreads_count syncthreads_and syncthreads_or sync".split())  # of `cuda`


def may_block(function, cache: dict) -> bool:
    """Return whether the function, or a device function that it calls, waits for other warps; `cache` is a cache."""
    if function not in cache:
        cache[function] = False  # until it is known; a function that calls itself is refused
        tree = read_source(function).tree
        spins = any(isinstance(n, ast.While) and is_spin(n) for n in walk(tree))
        cache[function] = spins or may_wait([tree], captured_values(function), cache)
    return cache[function]


def may_wait(nodes, names, cache: dict) -> bool:
    """Return whether these statements hold a barrier, or call a device function that waits; `names` resolves calls."""
    if not BARRIERS.isdisjoint(called_names(nodes, names)) or any(i.waits for i in instructions(nodes, names)):
        return True
    return any(may_block(callee, cache) for callee in callees(nodes, names))


def has_grid_barrier(nodes, names, cache: dict) -> bool:
    """Return whether these statements, or a device function that they call, hold a grid barrier."""
    return "sync" in called_names(nodes, names) or any(_meets_grid(callee, cache) for callee in callees(nodes, names))


def _meets_grid(function, cache):
    if function not in cache:
        cache[function] = False
        cache[function] = has_grid_barrier([read_source(function).tree], captured_values(function), cache)
    return cache[function]


def called_names(nodes, names) -> set[str]:
    """Return the last names of all calls: `syncthreads` of `cuda.syncthreads()`, under any name of it."""
    calls = [n.func for node in nodes for n in walk(node) if isinstance(n, ast.Call)]
    paths = [language_path(value_outside(function, names)) or "" for function in calls]
    written = {function.attr for function in calls if isinstance(function, ast.Attribute)}  # methods, too
    return written | {path.rpartition(".")[2] for path in paths}


def callees(nodes, names) -> list:
    """Return the device functions that these statements call."""
    found = (python_function(value) for value in _called_values(nodes, names))
    return [callee for callee in found if callee is not None]


def instructions(nodes, names) -> list:
    """Return the instructions that these statements call."""
    found = (instruction_of(value) for value in _called_values(nodes, names))
    return [instruction for instruction in found if instruction is not None]


def _called_values(nodes, names):
    return (value_outside(n.func, names) for node in nodes for n in walk(node) if isinstance(n, ast.Call))

"""The scope of a line in a launch that runs."""

import numpy as np

from labkit.simulator.checks.scope import Scope
from labkit.simulator.reading.source import captured_values, read_source


def scope_at(launch, line: int) -> Scope:
    """Return the scope of a line: of the kernel, or of a device function in the same file."""
    if _has_line(launch.source.tree, line):
        arguments = dict(zip(launch.function.__code__.co_varnames, launch.arguments))
        shapes = {name: array.shape for name, array in (launch.arrays | launch.captured).items()}
        names = _integers(captured_values(launch.function) | arguments)
        return Scope(launch.source.tree, launch.grid, launch.block, names, shapes)
    for function, _, moved_to in launch.program.compiled:
        tree = read_source(function).tree
        if moved_to is None and _has_line(tree, line):
            return Scope(tree, launch.grid, launch.block, _integers(captured_values(function)))
    return Scope(launch.source.tree, launch.grid, launch.block)


def _has_line(tree, line):
    return tree.lineno <= line <= tree.end_lineno


def _integers(values):
    return {n: int(v) for n, v in values.items() if isinstance(v, (int, np.integer)) and not isinstance(v, bool)}

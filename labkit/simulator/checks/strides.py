"""Grid-stride loops whose step is not the number of threads in the grid."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.simulator.checks.launch_scope import scope_at
from labkit.simulator.checks.scope import Scope
from labkit.simulator.counters import ACCESSES
from labkit.trace import Finding, Site, ThreadId

FIRST_THREAD = ThreadId((0, 0, 0), (0, 0, 0))


@dataclass(frozen=True)
class Stride:
    """A loop in which each thread begins at its own number in the grid: its line, its step, and the grid's threads."""

    line: int
    step: int
    threads: int

    def cure(self, effect: str) -> str:
        """Return a sentence that says what the step does, and which is right."""
        return (
            f"The loop in line {self.line} steps by {self.step:,}, and the grid has {self.threads:,} threads, so that "
            f"{effect}: step by `cuda.gridsize(1)`."
        )


def cure_of_shared_elements(scope: Scope, site: Site, other: Site) -> str:
    """Return the fix of a race between iterations of a loop with too small a step; "" if it is not that."""
    stride = _find_stride(scope, site)
    if stride is None or stride != _find_stride(scope, other) or stride.step >= stride.threads:
        return ""
    return stride.cure("several of them take the same elements")


def repeated_elements(launch) -> Iterator[Finding]:
    """Yield advice on loops that step by a block's threads, in kernels whose blocks add up by atomics, without a race.

    Elements are read more often than there are any by the loop's index alone, so that blocks read the same ones.
    """
    if not any(site.kind == "atomic" and site.space == "global" for site in launch.sites):
        return
    seen = set()
    for number, site in enumerate(launch.sites):
        array, accesses = launch.arrays.get(site.array), int(launch.totals[number, ACCESSES])
        if site.kind != "load" or array is None or len(array.shape) != 1 or accesses <= array.shape[0]:
            continue
        index = ast.parse(site.text, mode="eval").body
        scope = scope_at(launch, site.line)
        stride = _find_stride(scope, site)
        if stride is None or not 1 < stride.step == scope.block[0] < min(stride.threads, array.shape[0]):
            continue
        if isinstance(index, ast.Subscript) and isinstance(index.slice, ast.Name) and stride.line not in seen:
            seen.add(stride.line)
            cure = stride.cure("several of them take the same elements")
            message = (
                f"Line {site.line}: the threads read `{site.text}` {accesses:,} times, and {site.array} has "
                f"{array.shape[0]:,} elements. {cure}"
            )
            yield Finding("repeated", "advice", message, site.line, site.column, site.array, remedy=cure)


def cure_of_skipped_elements(scope: Scope, site: Site) -> str:
    """Return the fix of a loop with too large a step; "" if the store at `site` is in none."""
    stride = _find_stride(scope, site)
    return stride.cure("it leaves elements out") if stride and stride.step > stride.threads else ""


def _find_stride(scope: Scope, site: Site) -> Stride | None:
    """Return the innermost loop around an access over an index that begins at the thread's number in the grid."""
    (blocks, *other_blocks), (threads, *other_threads) = scope.grid, scope.block
    if {*other_blocks, *other_threads} != {1}:
        return None
    names = {n.id for n in ast.walk(ast.parse(site.text)) if isinstance(n, ast.Name)}
    loops = [
        n for n in ast.walk(scope.tree) if isinstance(n, ast.For | ast.While) and n.lineno <= site.line <= n.end_lineno
    ]
    for loop in reversed(loops):
        variable, start, step = _parts(scope.tree, loop)
        if variable in names and step is not None:
            sample = FIRST_THREAD, scope.last_thread
            steps = {scope.value(step, thread) for thread in sample}
            starts = [scope.value(start, thread) for thread in sample]
            if starts == [0, blocks * threads - 1] and len(steps) == 1 and None not in steps:
                return Stride(loop.lineno, *steps, blocks * threads)
    return None


def _parts(tree, loop):
    """Return the variable of a loop, and the expressions of its first value and its step; None for others."""
    match loop:
        case ast.For(ast.Name(variable), ast.Call(ast.Name("range"), [start, _, step])):
            return variable, start, step
        case ast.While():
            for statement in loop.body:
                match statement:
                    case ast.AugAssign(ast.Name(variable), ast.Add(), step):
                        return variable, _last_value(tree, variable, loop), step
                    case ast.Assign([ast.Name(variable)], ast.BinOp(ast.Name(same), ast.Add(), step)) if (
                        same == variable
                    ):
                        return variable, _last_value(tree, variable, loop), step
    return None, None, None


def _last_value(tree, variable, loop):
    """Return what was assigned to a variable before a loop, if that is one value."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and [ast.unparse(target) for target in node.targets] == [variable]
        and node.lineno < loop.lineno
    ]
    return values[0] if len(values) == 1 else ast.Constant(None)

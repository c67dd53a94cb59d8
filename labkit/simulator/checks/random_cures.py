"""Suggested fixes for states of random generators that several threads use, or that are too few."""

import ast
from math import prod

from labkit.trace import Site

INDEX = {
    1: "`cuda.grid(1)`",
    2: "`x + cuda.gridsize(1) * y`, where `x, y = cuda.grid(2)`",
    3: "`x + w * (y + h * z)`, where `x, y, z = cuda.grid(3)` and `w, h, _ = cuda.gridsize(3)`",
}


def cure_of_shared_state(launch, site: Site) -> str:
    """Return the fix of a race on the state of a random generator; "" for another access."""
    if not _is_random(launch, site):
        return ""
    axes = max((axis + 1 for axis in range(3) if launch.grid[axis] * launch.block[axis] > 1), default=1)
    return (
        f"Give each thread a state of its own: index {site.array} by {INDEX[axes]}, and make {_enough_states(launch)}."
    )


def cure_of_missing_state(launch, site: Site, length: int) -> str:
    """Return the fix of an index beyond the states of random generators, if there are fewer than threads; else ""."""
    is_short = _is_random(launch, site) and length < prod(launch.grid) * prod(launch.block)
    return f"Make a state for each thread, {_enough_states(launch)}." if is_short else ""


def _enough_states(launch):
    threads = prod(launch.grid) * prod(launch.block)
    return f"as many as the launch has threads, `create_xoroshiro128p_states({threads}, seed=1)`"


def _is_random(launch, site):
    """Return whether the access is made by a call of numba's generators, which takes the place of all within."""
    return any(
        isinstance(node, ast.Call)
        and (node.lineno, node.col_offset) == (site.line, site.column)
        and ast.unparse(node.func).rpartition(".")[2].startswith("xoroshiro128p_")
        for node in ast.walk(launch.source.tree)
    )

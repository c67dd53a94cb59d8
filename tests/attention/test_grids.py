"""Grids of every step: more heads, or sequences, than the 65,535 blocks that a GPU takes along y and along z."""

import inspect
from math import prod

import pytest

from labkit import attention, simulate
from labkit.arrays.workspace import Workspace
from labkit.attention import blocks
from labkit.formats import FP32
from labkit.ladder import MAX_BLOCKS, ladders

STEPS = {step.path: step for each in ladders("attention") for step in each}
OF_THREE_AXES = [step for step in STEPS.values() if hasattr(step.module, "kernel_and_grid")]
MANY = 70_000
HEADS = 66_000, MANY - 1


def launches_of(step, *sizes):
    problem = step.problem(*sizes)
    return step.launches(*problem.operands(step.formats[0]), format=step.formats[0], workspace=Workspace())


@pytest.mark.parametrize("sizes", [(MANY, 1), (1, MANY)], ids=["sequences", "heads"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.sample(2)
def test_blocks_beyond_65535_work_on_their_own_head(step, sizes):
    """Of arrays that have an equal part for each head a block touches the part of its head, and no other."""
    launches = launches_of(step, *sizes, 1 if step.problem is attention.AttentionDecode else 5, 16)
    grids = [launch.grid if isinstance(launch.grid, tuple) else (launch.grid,) for launch in launches]
    assert all(count <= most for grid in grids for count, most in zip(grid, MAX_BLOCKS))
    for launch, (width, *others) in zip(launches, grids):
        if width < MANY or step.slug == "bulk_reduction":  # blocks that stay; and sums of dQ that take gigabytes
            continue
        chosen = [(head * (width // MANY), *(count - 1 for count in others), 0, 0)[:3] for head in HEADS]
        options = {"shared_bytes": launch.shared_bytes, "sample": 1, "record": chosen}
        trace = simulate(launch.kernel, launch.grid, launch.block, *launch.arguments, **options)
        for head, touched in zip(HEADS, parts_of_heads(trace, launch), strict=True):
            assert touched == {name: {head} for name in touched}
            assert touched or any(name.endswith("_map") for name in parameters(launch))


def parameters(launch):
    return dict(zip(inspect.signature(launch.kernel.py_func).parameters, launch.arguments, strict=True))


def parts_of_heads(trace, launch):
    """For each recorded block and each array in global memory with an equal part for each head: the parts touched."""
    given, found = parameters(launch), [{} for _ in trace.samples.blocks]
    for n, site in sorted({*zip(trace.samples.block.tolist(), trace.samples.site.tolist())}):
        name = trace.sites[site].site.array if site >= 0 else ""
        part, rest = divmod(prod(getattr(given.get(name), "shape", (1,))), MANY)
        if rest == 0:
            index = trace.samples.index[(trace.samples.block == n) & (trace.samples.site == site)]
            found[n].setdefault(name, set()).update((index[index >= 0] // part).tolist())
    return found


@pytest.mark.parametrize("step", OF_THREE_AXES, ids=lambda step: step.path)
@pytest.mark.sample(1)
def test_blocks_along_x_find_their_tile_head_and_sequence(step, monkeypatch):
    """As if a GPU took one block along y and z: the copies for such grids are right."""
    monkeypatch.setattr(blocks, "MAX_BLOCKS", (MAX_BLOCKS[0], 1, 1))
    of_decode, queries = (5, 6, 2, 64, 200, 3, True), 70 if FP32 in step.formats else 150
    sizes = of_decode if step.problem is attention.AttentionDecode else (2, 3, queries, 64, queries, 3, True)
    problem, format = step.problem(*sizes), step.formats[0]
    before = problem.operands(format)
    found = step.simulate(*before, format=format)
    assert all(trace.grid[1:] == (1, 1) for trace in found.traces)
    assert found.errors == () and problem.is_right(before, found.operands, format)

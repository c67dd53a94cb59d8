"""Exercise 02.3: threads that each take four neighbours of their own, and so scatter a warp's accesses."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, grid_for, unwritten

PER_THREAD = 4
SIZES = ((1024, 64), (1000, 64))  # elements, threads a block


def launch(rng, size, threads):
    x = rng.standard_normal(size, np.float32)
    sectors = -(-size // 8)
    return Launch(
        label=f"{size} elements, {PER_THREAD} a thread, blocks of {threads}",
        args=(x, unwritten((size,))),
        outputs={1: expect(2 * x.astype(np.float64))},
        grid=grid_for((size,), (PER_THREAD * threads,)),
        block=(threads,),
        budgets=(
            Budget("sectors loaded", 2 * sectors, "elements / 8: each sector once for each x[i] of x[i] + x[i]"),
            Budget("sectors stored", sectors, "elements / 8: each sector once"),
        ),
    )


_START = "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x"
_INDEX = "i = start + j * cuda.blockDim.x"
_TWO_NEIGHBOURS = """@cuda.jit
def double(x, out):
    start = cuda.blockIdx.x * cuda.blockDim.x * 4 + cuda.threadIdx.x * 2
    for j in range(4):
        i = start + j // 2 * 2 * cuda.blockDim.x + j % 2
        if i < x.size:
            value = x[i]
            out[i] = value + value
"""
_FOUR_BLOCKS = """@cuda.jit
def double(x, out):
    for j in range(4):
        i = cuda.grid(1) + j * 256
        if i < x.size:
            value = x[i]
            out[i] = value + value
"""
_STRIDE = """@cuda.jit
def double(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        value = x[i]
        out[i] = value + value
"""

EXERCISE = Exercise(
    id="02.3",
    title="Neighbours together",
    task="Each thread doubles four elements. Change which four, so that a warp touches every sector only once.",
    points=2,
    function="double",
    launch=launch,
    sizes=SIZES,
    drawn=((range(1100, 2000), range(96, 257, 32)),),
    variants=(
        Variant(
            "the bug itself",
            "budget",
            ((_START, "start = cuda.grid(1) * PER_THREAD"), (_INDEX, "i = start + j")),
        ),
        Variant("blocks that overlap", "unwritten", ((_START, "start = cuda.grid(1)"),)),
        Variant("no guard", "bounds", (("if i < x.size:", "if True:"),)),
        Variant("one element a thread", "unwritten", (("range(PER_THREAD)", "range(1)"),)),
        Variant("the index added", "result", (("value + value", "value + i"),)),
        Variant("two neighbours a thread", "budget", cell=_TWO_NEIGHBOURS),
        Variant("the book's grid", "unwritten", cell=_FOUR_BLOCKS),
        Variant("x is read twice", "solved", (("            value = x[i]\n", ""), ("value + value", "x[i] + x[i]"))),
        Variant("a loop with a grid's stride", "solved", cell=_STRIDE),
    ),
)

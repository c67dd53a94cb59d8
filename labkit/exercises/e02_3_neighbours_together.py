"""Exercise 02.3: threads that each take four neighbours of their own, and so scatter a warp's accesses."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect, unwritten

PER_THREAD = 4
THREADS = 64
SIZES = (1024, 1000)


def launches(rng):
    for size in SIZES:
        x = rng.standard_normal(size, np.float32)
        yield Launch(
            label=f"{size} elements, {PER_THREAD} a thread, blocks of {THREADS}",
            args=(x, unwritten((size,))),
            outputs={1: expect(2 * x.astype(np.float64))},
            grid=(-(-size // (PER_THREAD * THREADS)),),
            block=(THREADS,),
            budgets=(
                Budget("sectors loaded", size // 8, "elements / 8: each sector once"),
                Budget("sectors stored", size // 8, "elements / 8: each sector once"),
            ),
        )


_START = "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x"
_INDEX = "i = start + j * cuda.blockDim.x"
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
    launches=launches,
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
        Variant("a loop with a grid's stride", "solved", cell=_STRIDE),
    ),
)

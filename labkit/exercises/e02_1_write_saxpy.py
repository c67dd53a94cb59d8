"""Exercise 02.1: the first kernel of one's own, out = a * x + y."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Expected, Launch, Variant
from labkit.exercises.problems import grid_for, unwritten

SIZES = ((512, 128), (1000, 128))  # elements, threads a block; the second leaves threads without work


def launch(rng, size, threads):
    a = np.float32(2.5)
    x, y = rng.standard_normal((2, size), np.float32)
    product = a.astype(float) * x.astype(float)
    bound = 2 * np.finfo(np.float32).eps * (np.abs(product) + np.abs(y))
    return Launch(
        label=f"{size} elements, blocks of {threads}",
        args=(a, x, y, unwritten((size,))),
        outputs={3: Expected(product + y, bound)},
        grid=grid_for((size,), (threads,)),
        block=(threads,),
        budgets=(
            Budget("global loads", 2 * size, "each element of x and y once"),
            Budget("load requests", 2 * -(-size // 32), "2 for every 32 elements, which a warp loads together"),
        ),
    )


_LOOP = """@cuda.jit
def saxpy(a, x, y, out):
    for i in range(x.size):
        out[i] = a * x[i] + y[i]
"""
_ALONE = """@cuda.jit
def saxpy(a, x, y, out):
    if cuda.grid(1) == 0:
        for i in range(x.size):
            out[i] = a * x[i] + y[i]
"""
_STRIDE = """@cuda.jit
def saxpy(a, x, y, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = y[i] + x[i] * a
"""

EXERCISE = Exercise(
    id="02.1",
    title="Write saxpy",
    task="Write out[i] = a * x[i] + y[i], one thread an element. There may be more threads than elements.",
    points=2,
    function="saxpy",
    launch=launch,
    sizes=SIZES,
    drawn=((range(1100, 2000), range(160, 257, 32)),),
    variants=(
        Variant("no guard", "bounds", (("if i < out.size:", "if True:"),)),
        Variant("a guard that is one too late", "bounds", (("i < out.size", "i <= out.size"),)),
        Variant("a guard that is one too early", "unwritten", (("i < out.size", "i < out.size - 1"),)),
        Variant("threadIdx alone", "unwritten", (("cuda.grid(1)", "cuda.threadIdx.x"),)),
        Variant("y forgotten", "result", ((" + y[i]", ""),)),
        Variant("a added", "result", (("a * x[i]", "a + x[i]"),)),
        Variant("the result goes to y", "input changed", (("out[i] =", "y[i] ="),)),
        Variant("every thread does everything", "budget", cell=_LOOP),
        Variant("one thread does everything", "budget", cell=_ALONE),
        Variant("the book's size", "unwritten", (("i < out.size", "i < 1000"),)),
        Variant(
            "the book's block",
            "unwritten",
            (("cuda.grid(1)", "cuda.blockIdx.x * 128 + cuda.threadIdx.x"),),
        ),
        Variant("whole arrays", "refused", (("out[i] = a * x[i] + y[i]", "out = a * x + y"),)),
        Variant("a loop with a grid's stride", "solved", cell=_STRIDE),
    ),
)

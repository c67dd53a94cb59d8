"""Exercise 04.1: a dot product in one launch, whose last block may read what is not there yet."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Expected, Launch, Variant
from labkit.exercises.problems import unwritten

SIZES = ((1000, 5), (333, 40))  # elements, blocks of one warp


def launch(rng, size, blocks):
    x, y = rng.standard_normal((2, size), np.float32)
    products = x.astype(np.float64) * y
    bound = size * np.finfo(np.float32).eps * np.abs(products).sum()
    return Launch(
        label=f"{size} elements, {blocks} blocks of 32",
        args=(x, y, unwritten((blocks,)), np.zeros(1, np.uint32), unwritten((1,))),
        outputs={
            2: Expected(np.zeros(blocks), np.full(blocks, np.inf)),  # each block's own sum, however the work is shared
            4: Expected(products.sum(keepdims=True), np.full(1, bound)),
        },
        grid=(blocks,),
        block=(32,),
        budgets=(Budget("global loads", 2 * size + blocks, "each element of x and of y once, and each block's sum"),),
    )


_FENCE = "        cuda.threadfence()\n"
_COUNT = "        before = cuda.atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))\n"

EXERCISE = Exercise(
    id="04.1",
    title="The last block",
    task="The last block adds up sums that may not be there yet. Add what is missing.",
    points=2,
    function="one_launch",
    launch=launch,
    sizes=SIZES,
    drawn=((range(2000, 3000), range(33, 60)), (range(1, 32), range(1, 3))),
    variants=(
        Variant("the bug itself", "race", ((_FENCE, ""),)),
        Variant("the fence after the count", "race", ((_FENCE + _COUNT, _COUNT + _FENCE),)),
        Variant("a fence for the block alone", "race", ((_FENCE, "        cuda.threadfence_block()\n"),)),
        Variant("a barrier of one lane in its place", "barrier", ((_FENCE, "        cuda.syncthreads()\n"),)),
        Variant("every block takes itself for the last", "race", (("before == cuda.gridDim.x - 1", "True"),)),
        Variant(
            "the first block that comes adds up",
            "race",
            (("before == cuda.gridDim.x - 1", "before == 0"),),
        ),
        Variant(
            "the counter is left standing",
            "input changed",
            (("atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))", "atomic.add(arrived, 0, np.uint32(1))"),),
        ),
        Variant(
            "half of the elements", "result", (("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size // 2,"),)
        ),
        Variant("each block takes all", "result", (("range(cuda.grid(1),", "range(lane,"), ("cuda.gridsize(1)", "32"))),
        Variant(
            "as many sums as lanes",
            "result",
            (
                ("        for block in range(lane, cuda.gridDim.x, 32):\n", "        if lane < cuda.gridDim.x:\n"),
                ("total += sums[block]", "total += sums[lane]"),
            ),
        ),
        Variant(
            "one block goes through all elements again",
            "budget",
            (
                ("    if is_last[0]:\n", "    if cuda.blockIdx.x == 0:\n"),
                ("range(lane, cuda.gridDim.x, 32)", "range(lane, x.size, 32)"),
                ("total += sums[block]", "total += x[block] * y[block]"),
            ),
        ),
        Variant("another fence beside it", "solved", ((_FENCE, 2 * _FENCE),)),
        Variant("the fence of all lanes", "solved", ((_FENCE, "    cuda.threadfence()\n    if lane == 0:\n"),)),
    ),
)

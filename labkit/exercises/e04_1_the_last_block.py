"""Exercise 04.1: a dot product in one launch, whose last block may read what is not there yet."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Expected, Launch
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


EXERCISE = Exercise(
    id="04.1",
    title="The last block",
    task="The last block adds up sums that may not be there yet. Add what is missing.",
    points=2,
    function="one_launch",
    launch=launch,
    sizes=SIZES,
    drawn=((range(2000, 3000), range(33, 60)), (range(1, 32), range(1, 3))),
)

"""Exercise 02.1: the first kernel of one's own, out = a * x + y."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Expected, Launch
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


EXERCISE = Exercise(
    id="02.1",
    title="Write saxpy",
    task="Write out[i] = a * x[i] + y[i], one thread an element. There may be more threads than elements.",
    points=2,
    function="saxpy",
    launch=launch,
    sizes=SIZES,
    drawn=((range(1100, 2000), range(160, 257, 32)),),
)

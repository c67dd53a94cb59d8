"""Exercise 02.1: the first kernel of one's own, out = a * x + y."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Beyond, Exercise, Launch
from labkit.exercises.problems import grid_for, unwritten
from labkit.ladder import Expected

SIZES = ((512, 128, 10), (1000, 128, -3))  # elements, threads a block, a in quarters; threads are left over


def launch(rng, size, threads, quarters):
    a = np.float32(quarters / 4)
    x, y = rng.standard_normal((2, size), np.float32)
    product = a.astype(float) * x.astype(float)
    bound = 2 * np.finfo(np.float32).eps * (np.abs(product) + np.abs(y))
    return Launch(
        label=f"{size} elements, a = {a:g}, blocks of {threads}",
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
    drawn=(
        (range(1101, 2000, 2), range(160, 257, 32), range(-40, -4)),
        ((1, 2, 3, 31), (32, 96), (0,)),
        (Beyond(2000), (64,), (4, -4)),
    ),
)

"""The learner's first kernel, out = a * x + y."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element, with_zeros
from labkit.ladder import Expected
from labkit.table import count_text


def make_launch(rng, size, threads, a):
    a = np.float32(a)
    x, y = rng.standard_normal((2, size), np.float32)
    x = with_zeros(x)
    product = a.astype(float) * x.astype(float)
    bound = 2 * EPS * (np.abs(product) + np.abs(y))

    def first_elements(count):
        return np.where(np.arange(size) < count, product + y, np.nan)

    return Launch(
        label=f"{count_text(size, 'element')}, a = {a:g}, blocks of {threads}",
        args=(a, x, y, unwritten_array((size,))),
        outputs={3: Expected(product + y, bound)},  # argument 3
        grid=grid_for((size,), (threads,)),
        block=(threads,),
        budgets=(
            Budget("global loads", 2 * size, "each element of x and y once"),
            Budget("load requests", 2 * -(-size // 32), "2 for every 32 elements, which a warp loads together"),
        ),
        mistakes=(
            Mistake("y were left out", lambda: {3: Expected(product, bound)}),
            Mistake("y were subtracted", lambda: {3: Expected(product - y, bound)}),
            Mistake("a were left out", lambda: {3: Expected(x.astype(float) + y, 2 * EPS * (abs(x) + abs(y)))}),
            Mistake(
                "a were added", lambda: {3: Expected(a + x.astype(float) + y, 2 * EPS * (abs(a) + abs(x) + abs(y)))}
            ),
            Mistake("each block began at element 0", lambda: {3: Expected(first_elements(threads), bound)}),
            Mistake("the guard ended one element early", lambda: {3: Expected(first_elements(size - 1), bound)}),
        ),
        duties=(one_thread_per_element((size,), (threads,)),),
    )


EXERCISE = Exercise(
    title="Write saxpy",
    task="Write out[i] = a * x[i] + y[i], one thread per element. There may be more threads than elements.",
    points=2,
    function="saxpy",
    make_launch=make_launch,
    sizes=((512, 128, 2.5), (1000, 128, -41.0)),  # elements, threads per block, a; threads are left over
    random_sizes=(
        (range(1101, 2000, 2), range(160, 257, 32), (0.1, -0.001)),
        ((1, 2, 3, 31), (32, 96), (0.0,)),
        (Above(2000), (64,), (37.0,)),  # a random size past 2000
        (range(65_537, 65_600), (256,), (2.5,)),  # an index of 16 bits is too short
        ((33,), (64,), (1.0, -1.0)),
    ),
)

"""The learner's first kernel, out = a * x + y."""

from dataclasses import replace

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element, slips_in_the_index, with_zeros
from labkit.ladder import Expected
from labkit.table import count_text


def make_launch(rng, size, threads, a):
    a = np.float32(a)
    x, y = rng.standard_normal((2, size), np.float32)
    x, y = with_zeros(x), with_zeros(y)  # a sum of 0 is to be stored, too
    product = a.astype(float) * x.astype(float)
    bound = 2 * EPS * (np.abs(product) + np.abs(y))

    def first_elements(count):
        return np.where(np.arange(size) < count, product + y, np.nan)

    def expect_sum(first, second):
        value = first.astype(float) + second
        return {3: Expected(value, 2 * EPS * (abs(first) + abs(second)))}

    launch = Launch(
        label=f"{count_text(size, 'element')}, a = {a:g}, blocks of {threads}",
        args=(a, x, y, unwritten_array((size,))),
        outputs={3: Expected(product + y, bound)},  # argument 3
        grid=grid_for((size,), (threads,)),
        block=(threads,),
        budgets=(
            Budget(
                "global loads",
                2 * size,
                "each element of x and y once",
                cure="Let each thread compute the one element whose index is its own number in the grid.",
            ),
            Budget("load requests", 2 * -(-size // 32), "2 for every 32 elements, which a warp loads together"),
        ),
        mistakes=(
            Mistake("y were left out", lambda: {3: Expected(product, bound)}, "Add y[i] to the product."),
            Mistake("y were subtracted", lambda: {3: Expected(product - y, bound)}, "Add y[i]: write `+`, not `-`."),
            Mistake("a were left out", lambda: expect_sum(x, y), "Multiply x[i] by a before y[i] is added."),
            Mistake(
                "a were added",
                lambda: {3: Expected(a + x.astype(float) + y, 2 * EPS * (abs(a) + abs(x) + abs(y)))},
                "Multiply x[i] by a: write `*`, not `+`.",
            ),
            Mistake(
                "y were a factor",
                lambda: {3: Expected(product * y, bound * abs(y) + 2 * EPS * abs(product * y))},
                "Add y[i] to the product: write `+`, not `*`.",
            ),
            Mistake(
                "the guard left out element 0",
                lambda: {3: Expected(np.where(np.arange(size) > 0, product + y, np.nan), bound)},
                "Index 0 is an element, too: test only whether the index is below the size.",
            ),
            Mistake(
                "y were multiplied by a, too",
                lambda: expect_sum(product, a.astype(float) * y),
                "Multiply x[i] alone, and add y[i] outside of the brackets.",
            ),
            Mistake(
                "x and y were exchanged",
                lambda: expect_sum(a.astype(float) * y, x),
                "Multiply x[i] by a, and add y[i].",
            ),
            Mistake(
                "the guard ended one element early",
                lambda: {3: Expected(first_elements(size - 1), bound)},
                "The last element has the index `out.size - 1`: test with `<` against `out.size` itself.",
            ),
        ),
        duties=(one_thread_per_element((size,), (threads,)),),
    )
    return replace(launch, mistakes=(*launch.mistakes, *slips_in_the_index(launch)))


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

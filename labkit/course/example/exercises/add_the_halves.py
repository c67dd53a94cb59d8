"""The sums of a vector's two halves."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element
from labkit.ladder import Expected

BLOCK = 64


def make_launch(rng, n):
    x = rng.standard_normal(2 * n, np.float32)

    def add(first, second):
        """One float32 addition: at most one rounding."""
        total = first.astype(float) + second
        return Expected(total, EPS * abs(total))

    return Launch(
        label=f"2 x {n} elements",
        args=(x, unwritten_array((n,))),
        outputs={1: add(x[:n], x[n:])},  # argument 1
        grid=grid_for((n,), (BLOCK,)),
        block=(BLOCK,),
        budgets=(Budget("global loads", 2 * n, "each element of x once"),),
        duties=(one_thread_per_element((n,), (BLOCK,)),),
        mistakes=(
            Mistake("neighbours were added", lambda: {1: add(x[::2], x[1::2])}),
            Mistake("the second half began one element early", lambda: {1: add(x[:n], x[n - 1 : -1])}),
        ),
    )


EXERCISE = Exercise(
    title="Add the halves",
    task="Write y[i] = x[i] + x[i + n] for the first n of the 2n elements of x, one thread per element of y.",
    points=2,
    function="add_halves",
    make_launch=make_launch,
    sizes=((128,), (100,)),  # n; in the second, threads are left over
    random_sizes=((range(1, 64),), (Above(128),)),
)

"""Running sums of short rows: a product with a triangle of ones, which the lanes make from their numbers."""

import numpy as np

from labkit.checking import Above, Budget, Dependence, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import PLAIN_FLOPS, TENSOR_FLOPS
from labkit.exercises.matmuls import round_up
from labkit.ladder import Expected
from labkit.simulator.disturbance import PRODUCTS

COLUMNS = 16


def make_launch(rng, rows):
    X = rng.integers(-99, 100, (rows, COLUMNS)).astype(np.float16)
    sums = np.cumsum(X, axis=1, dtype=np.float64)
    exactly = np.zeros_like(sums)  # all sums are whole and small

    def expected_results(disturbance):
        """X may be the A of the products, or the triangle of ones."""
        added_to_x, added_to_ones = np.arange(1, COLUMNS + 1), sums[:, -1:]
        shifts = (disturbance.shift * added for added in (added_to_x, added_to_ones))
        return [Expected(disturbance.factor * sums + shift, exactly) for shift in shifts]

    flops = 2 * round_up(rows, 16) * COLUMNS**2
    why = "leave every addition to `ptx.mma`"
    return Launch(
        label=f"{rows} x {COLUMNS}",
        args=(X.view(np.uint32), unwritten_array((rows, COLUMNS))),
        outputs={1: Expected(sums, exactly)},
        grid=(-(-rows // 16),),
        block=(32,),
        budgets=(
            Budget("global loads", rows * COLUMNS // 2, "each word of X once"),
            Budget(TENSOR_FLOPS, flops, "two `mma` per block"),
        ),
        duties=(Duty(TENSOR_FLOPS, flops, why), Duty(PLAIN_FLOPS, 0, why, at_most=0)),
        dependences=(Dependence(PRODUCTS, why, expected_results),),
    )


EXERCISE = Exercise(
    title="Running sums",
    task="Rows of X have 16 elements of float16. Write the running sums of each row, "
    "X[i, 0] + ... + X[i, n] for each n, with two `ptx.mma` per 16 rows.",
    points=3,
    function="running_sums",
    make_launch=make_launch,
    sizes=((32,), (21,)),
    random_sizes=(((1, 7, 9, 15),), (range(33, 64),), (Above(64),)),
)

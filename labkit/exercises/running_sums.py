"""Running sums of short rows: a product with a triangle of ones, which the lanes make from their numbers."""

import numpy as np

from labkit.checking import Above, Budget, Dependence, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import PLAIN_FLOPS, TENSOR_FLOPS
from labkit.exercises.matmuls import round_up
from labkit.exercises.problems import pad_to
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

    def expect_sums(sums):
        return {1: Expected(sums, exactly)}

    values = X.astype(float)
    swapped = values.reshape(rows, -1, 2)[..., ::-1].reshape(values.shape)
    quarters = pad_to((16, COLUMNS), values).reshape(-1, 2, 8, 2, 8)  # registers a0 to a3, two elements in each
    exchanged = quarters.swapaxes(1, 3).reshape(-1, COLUMNS)[:rows]
    is_even = np.arange(COLUMNS) % 2 == 0
    flops = 2 * round_up(rows, 16) * COLUMNS**2
    why = "leave every addition to `ptx.mma`"
    return Launch(
        label=f"{rows} x {COLUMNS}",
        args=(X.view(np.uint32), unwritten_array((rows, COLUMNS))),
        outputs=expect_sums(sums),
        grid=(-(-rows // 16),),
        block=(32,),
        budgets=(
            Budget("global loads", rows * COLUMNS // 2, "each word of X once"),
            Budget(TENSOR_FLOPS, flops, "two `mma` per block"),
        ),
        duties=(Duty(TENSOR_FLOPS, flops, why), Duty(PLAIN_FLOPS, 0, why, at_most=0)),
        dependences=(Dependence(PRODUCTS, why, expected_results),),
        mistakes=(
            Mistake("each sum ended before its own element", lambda: expect_sums(sums - values)),
            Mistake("sums ran from the end of a row", lambda: expect_sums(sums[:, -1:] - sums + values)),
            Mistake("columns 8 to 15 were 0 to 7 again", lambda: expect_sums(np.tile(sums[:, :8], 2))),
            Mistake(
                "the ones of each two neighbours in B were exchanged",
                lambda: expect_sums(sums + is_even * (swapped - values)),
            ),
            Mistake("a1 and a2 were exchanged", lambda: expect_sums(exchanged.cumsum(1))),
            Mistake("ones were bfloat16", lambda: expect_sums(1.875 * sums)),
        ),
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

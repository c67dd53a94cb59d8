"""Running sums of short rows: a product with a triangle of ones, which the lanes make from their numbers."""

import numpy as np

from labkit.checking import Above, Budget, Dependence, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import PLAIN_FLOPS, SHARED_BYTES, TENSOR_FLOPS
from labkit.checking.placed_cure import PlacedCure, number_lines
from labkit.exercises.matmuls import round_up
from labkit.exercises.problems import pad_to
from labkit.ladder import Expected
from labkit.simulator.disturbance import PRODUCTS

COLUMNS = 16
IN_FLOAT16 = "The words of B hold float16, in which the number 1 has the bits `0x3C00`."


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
    column = np.arange(COLUMNS)
    is_even = column % 2 == 0
    n, k = np.ogrid[:COLUMNS, :COLUMNS]

    def expect_triangle(is_one):
        """Expect the product with other ones: element k of row n of B is 1 if `is_one[n, k]`."""
        return expect_sums(values @ is_one.T.astype(float))

    def store_elsewhere(move):
        """Expect each sum where `move`, a function of half, g, t and i, stores it: the row of its 16, and column."""
        half, g, t, i = np.indices((2, 8, 4, 4))
        tiles = pad_to((16, COLUMNS), sums).reshape(-1, 16, COLUMNS)
        moved = np.full(tiles.shape, np.nan)
        row, to = move(half, g, t, i)
        moved[:, row, to] = tiles[:, g + i // 2 * 8, half * 8 + 2 * t + i % 2]
        return expect_sums(moved.reshape(-1, COLUMNS)[:rows])

    next_words = values[:, [*range(8), *range(2, 10)]]
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
            Budget(SHARED_BYTES, 0, "each lane makes its words of B from its own `g` and `t`"),
        ),
        duties=(Duty(TENSOR_FLOPS, flops, why), Duty(PLAIN_FLOPS, 0, why, at_most=0)),
        dependences=(Dependence(PRODUCTS, why, expected_results),),
        mistakes=(
            Mistake(
                "each sum ended before its own element",
                lambda: expect_sums(sums - values),
                "Element k of row n of B is 1 also where k is n: compare with `<=`.",
            ),
            Mistake(
                "sums ran from the end of a row",
                lambda: expect_sums(sums[:, -1:] - sums + values),
                "Turn the comparison in B's words round: element k of row n is 1 where k is at most n.",
            ),
            Mistake(
                "columns 8 to 15 were 0 to 7 again",
                lambda: expect_sums(np.tile(sums[:, :8], 2)),
                "In the second `mma`, a lane holds row g + 8 of B: add 8 where its words are made.",
            ),
            Mistake(
                "the ones of each two neighbours in B were exchanged",
                lambda: expect_sums(sums + is_even * (swapped - values)),
                PlacedCure(
                    "Exchange the halves in the words of B: the lower one, `0x3C00`, belongs to the smaller k.",
                    number_lines(0x3C00, 0x3C000000),
                ),
            ),
            Mistake(
                "a1 and a2 were exchanged",
                lambda: expect_sums(exchanged.cumsum(1)),
                "a1 has row g + 8 and the words of a0; a2 has row g and the words 4 further on.",
            ),
            Mistake("ones were bfloat16", lambda: expect_sums(1.875 * sums), IN_FLOAT16),
            Mistake("ones were the whole number 1", lambda: expect_sums(2.0**-24 * sums), IN_FLOAT16),
            Mistake(
                "g and t were exchanged in B",
                lambda: expect_triangle(n % 8 * 2 + k % 2 + k // 8 * 8 <= n // 8 * 8 + k % 8 // 2),
                "In B, g counts the rows, and t the words of two elements.",
            ),
            Mistake(
                "all ones of B were in the lower halves of its words",
                lambda: expect_triangle((k <= n) & (k % 2 == 0)),
                "Shift the one of the larger k by 16 bits, into the upper half of its word of B.",
            ),
            Mistake(
                "the second word of B were the first again",
                lambda: expect_triangle(k % 8 <= n),
                "B's second word holds elements 2 t + 8 and 2 t + 9: compare these with n.",
            ),
            Mistake(
                "a2 and a3 were the words after a0 and a1",
                lambda: expect_sums(next_words.cumsum(1)),
                "a2 and a3 are 4 words after a0 and a1, in the loads of X.",
            ),
            Mistake(
                "sums i of a lane were 4 columns apart",
                lambda: store_elsewhere(lambda half, g, t, i: (g + i // 2 * 8, half * 8 + t + i % 2 * 4)),
                "A lane's sums 0 and 1 are those of two neighbouring columns, 2 t and 2 t + 1.",
            ),
            Mistake(
                "rows and columns of a lane's sums were exchanged",
                lambda: store_elsewhere(lambda half, g, t, i: (g + i % 2 * 8, half * 8 + 2 * t + i // 2)),
                "Where `out` is stored: sums 0 and 1 of a lane are in row g, and sums 2 and 3 in row g + 8.",
            ),
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

"""The pixel transform that matches given transforms of the filter and of the products."""

from dataclasses import replace

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake
from labkit.exercises.problems import grid_for, one_thread_per_element
from labkit.exercises.tiles_of_a_line import Line

BLOCK = (32,)
# F(2, 3): A transforms products to outputs, G the filter, B.T pixels
A = np.array([[1, 0], [1, 1], [1, 2], [0, 1]], np.float64)
G = np.array([[1 / 2, 0, 0], [-1, -1, -1], [1 / 2, 1, 2], [0, 0, 1]])
B = np.array([[2, -3, 1, 0], [0, -2, 1, 0], [0, -1, 1, 0], [0, 2, -3, 1]], np.float64).T
USUAL_B = np.array([[-1, 0, 1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]], np.float64).T  # of 0, 1, -1

OTHER_POINTS = "These points are others: take the rows of B transposed that belong to them."
ROWS = "V[i, t] takes row i of B transposed: multiply its entries by the four pixels, and add."


def make_launch(rng, tiles, offset=0):
    line = Line.draw(rng, A, G, B, channels=1, outputs=2 * tiles, offset=offset)
    x, U, V, y = line.make_arrays()

    def mistake(cause, matrix, cure):
        wrong = replace(line, B=matrix)
        return Mistake(cause, lambda: {2: wrong.expect_V(0), 3: wrong.multiply_transforms()}, cure)

    return Launch(
        label=f"{tiles} tile{'s'[: tiles > 1]}" + ", and a U that no filter has" * offset,
        args=(x[0], U[:, 0], V[:, 0], y),
        outputs={2: line.expect_V(0), 3: line.expect_y()},
        grid=grid_for((tiles,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", 8 * tiles, "4 pixels and 4 numbers of U per tile", {"x": 4 * tiles}),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((tiles,), BLOCK),),
        mistakes=(
            mistake("the points were 0, 1, -1 and infinity", USUAL_B, OTHER_POINTS),
            mistake("B were not transposed", B.T, ROWS),
            *(
                mistake(
                    f"v{i} had the opposite sign",
                    B * np.where(np.arange(4) == i, -1, 1),
                    f"Turn all signs of `V[{i}, t]` round.",
                )
                for i in range(4)
            ),
        ),
    )


EXERCISE = Exercise(
    title="Fill in B transposed",
    task="The points of this F(2, 3) are 0, 1, 2 and infinity. The transforms of the filter and of the products are "
    "given. Write the transform of the pixels, `v0` to `v3`.",
    points=3,
    function="other_points",
    make_launch=make_launch,
    sizes=((5,), (33,), (1,), (9, 1)),  # tiles; 1 for a U that no filter has
    random_sizes=((Above(33),), (range(2, 33), (0, 1))),
)

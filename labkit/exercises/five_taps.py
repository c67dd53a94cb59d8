"""F(2, 5) on a line of several channels."""

from dataclasses import replace

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake
from labkit.conv.winograd.transforms import transforms
from labkit.exercises.problems import grid_for, one_thread_per_element
from labkit.exercises.tiles_of_a_line import Line

BLOCK = (32,)
ADD = "Set the sums to 0 before the loop over channels, and add each channel's products with `+=`."

INFINITY = "Add the product at infinity, the last of the six, to the second output alone."


def make_launch(rng, channels, outputs, offset=0):
    matrices = (matrix.astype(np.float64) for matrix in transforms(2, 5))
    line = Line.draw(rng, *matrices, channels=channels, outputs=outputs, offset=offset)
    x, U, V, y = line.make_arrays()
    tiles = V.shape[2]

    def mistake(cause, line, cure):
        return Mistake(cause, lambda: {2: line.expect_V(), 3: line.multiply_transforms()}, cure)

    def change(matrix, *entries):
        """Return a matrix with other entries: (row, column, value)."""
        matrix = matrix.copy()
        for row, column, value in entries:
            matrix[row, column] = value
        return matrix

    last = replace(line, x=line.x[-1:], g=line.g[-1:], U_offset=line.U_offset[:, -1:])
    repeated = replace(line, x=np.pad(line.x, ((0, 0), (0, outputs % 2)), "edge"))
    label = f"{outputs} output{'s'[: outputs > 1]} of {channels} channel{'s'[: channels > 1]}"
    return Launch(
        label=label + ", and a U that no taps have" * offset,
        args=(x, U, V, y),
        outputs={2: line.expect_V(), 3: line.expect_y()},
        grid=grid_for((tiles,), BLOCK),
        block=BLOCK,
        budgets=(
            Budget(
                "global loads",
                18 * channels * tiles,
                "6 pixels and 6 numbers of U per tile and channel, and those of V once more",
                {name: 6 * channels * tiles for name in "xUV"},
            ),
            Budget("global stores", V.size + outputs, "each element of V and y once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((tiles,), BLOCK),),
        mistakes=(
            Mistake(
                "only the last channel were added", lambda: {2: line.expect_V(), 3: last.multiply_transforms()}, ADD
            ),
            mistake("the product at infinity were left out", replace(line, A=change(line.A, (5, 1, 0))), INFINITY),
            mistake(
                "the product at infinity were added to both outputs",
                replace(line, A=change(line.A, (5, 0, 1))),
                INFINITY,
            ),
            mistake(
                "the products at 2 and at -2 were added in each output",
                replace(line, A=change(line.A, (4, 1, 2))),
                "In the second output, subtract the product at -2, with its factor 2.",
            ),
            mistake(
                "tiles did not overlap",
                replace(line, step=6),
                "A tile makes 2 outputs of 6 pixels: tile t begins at pixel 2 t.",
            ),
            Mistake(
                "the last pixel were repeated past the end",
                lambda: {2: repeated.expect_V()},
                "Past the end, take 0 for a pixel.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Five taps",
    task="Correlate a line x of C channels with a filter of five taps per channel, and sum over channels into y. Use "
    "F(2, 5) with the points 0, 1, -1, 2, -2 and infinity, in this order. U, 6 x C, is the transformed filter. Store "
    "transformed pixels as V[point, channel, tile], and then the outputs. The last tile may reach beyond the ends of x "
    "and y: take zeros for pixels that do not exist.",
    points=4,
    function="five_taps",
    make_launch=make_launch,
    sizes=((1, 12), (5, 75), (2, 1)),  # channels, outputs
    random_sizes=(((2, 3), Above(75)), (Above(5), range(5, 64), (0, 1)), ((1, 2), (2, 3, 4, 7), (1,))),
)

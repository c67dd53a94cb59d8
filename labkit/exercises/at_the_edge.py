"""Winograd tiles that reach past the image and past the outputs."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.conv.winograd.problem import Forward2x2
from labkit.conv.winograd.transforms import as_float32, transforms
from labkit.exercises.problems import convolve, grid_for, one_thread_per_element
from labkit.ladder import Expected

BLOCK = 8, 4
WINOGRAD_ERROR = 8  # of a Winograd tile, compared with that of a direct sum
G = as_float32(transforms(2, 3).G)


def make_launch(rng, H, W, pad):
    pad = min(pad, 2)  # with more, a filter of three rows sees only zeros
    problem = Forward2x2(1, 1, H, W, 1, 3, 3, top=pad, bottom=pad, left=pad, right=pad)
    x, w, y, _ = problem.operands(seed=int(rng.integers(2**31)))
    (expected,) = problem.expected((x, w, y, problem)).values()
    P, Q = problem.P, problem.Q

    def begin_at(top, left):
        y = convolve(x[0], w, (P, Q), (1, 1), (top, left))
        return {2: Expected(y.value[0], WINOGRAD_ERROR * y.bound[0] + expected.bound[0, 0])}

    tiles = -(-P // 2), -(-Q // 2)
    grid = grid_for(tiles[::-1], BLOCK)
    x_loads = np.prod([_count_inside(size, count, pad) for size, count in zip((H, W), tiles, strict=True)]).item()
    U_loads = 16 * int(np.prod(grid) * np.prod(BLOCK))
    return Launch(
        label=f"{H} x {W} pixels, {pad} row{'s'[pad == 1 :]} of zeros around them",
        args=(x[0, 0], G @ w[0, 0] @ G.T, unwritten_array((P, Q)), pad),
        outputs={2: Expected(expected.value[0, 0], expected.bound[0, 0])},
        grid=grid,
        block=BLOCK,
        budgets=(
            Budget(
                "global loads",
                x_loads + U_loads,
                "the pixels of each tile that are there, and the 16 numbers of U per thread",
                {"x": x_loads, "U": U_loads},
            ),
            Budget("global stores", P * Q, "each output once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element(tiles[::-1], BLOCK),),
        mistakes=(
            Mistake("rows were moved by pad to the other side", lambda: begin_at(-pad, pad)),
            Mistake("rows had no pad", lambda: begin_at(0, pad)),
        )
        * (pad > 0),
    )


def _count_inside(size, tiles, pad):
    """Count the rows of pixels, over all tiles, that are inside the image."""
    return sum(0 <= 2 * tile - pad + i < size for tile in range(tiles) for i in range(4))


EXERCISE = Exercise(
    title="Up to the edge",
    task="Make the kernel right for images of any size, with `pad` rows and columns of zeros around them. A tile may "
    "reach beyond the image on every side, and beyond the outputs below and to the right.",
    points=3,
    function="up_to_the_edge",
    make_launch=make_launch,
    sizes=(  # rows and columns of the image, zeros around it
        (8, 18, 0),
        (9, 7, 0),
        (5, 12, 1),
        (7, 5, 1),
        (7, 15, 1),  # a block without spare threads, whose loads of U would make room for pixels
        (6, 4, 2),
        (1, 1, 1),
    ),
    random_sizes=(
        ((9, 11, 13), (10, 12, 14), (0,)),
        ((3, 4, 6), Above(18), (0, 1)),
        (Above(9), (3, 5), (1, 2)),
        ((1, 2), (1, 3, 8), (1, 2)),
    ),
)

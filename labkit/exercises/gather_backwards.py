"""The gradient of an image by implicit GEMM: the gather finds the outputs that took a pixel."""

from dataclasses import replace

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS
from labkit.checking.placed_cure import PlacedCure, quotients_by
from labkit.exercises.matmuls import USES_TILES, add_expected_results
from labkit.exercises.problems import expect_product, grid_for, random_matrix
from labkit.ladder import Expected
from labkit.table import count_text

TILE = 16
FORWARDS = "Solve h = p * stride + r - pad for p, and the same for q, where the tile of dy is filled."
BETWEEN = PlacedCure(
    "Take 0 where what you divide by the stride is not a multiple of it: test the remainder.", quotients_by("stride")
)


def make_launch(rng, K, C, R, S, H, W, stride, pad):
    H, W = max(H, R), max(W, S)  # so that there are outputs
    P, Q = (H + 2 * pad - R) // stride + 1, (W + 2 * pad - S) // stride + 1
    dy, w = random_matrix(rng, K, P * Q).reshape(K, P, Q), random_matrix(rng, C, K * R * S)

    def find_place(pixel, tap):
        return pixel + pad - tap

    def gather(find_place, divisor=stride, step=stride):
        """Gather from dy at the places that belong to a pixel and a tap."""
        below, right = (find_place(np.arange(size), np.arange(taps)[:, None]) for size, taps in ((H, R), (W, S)))
        return gather_at(dy, below, right, step, divisor)

    gathered = gather(find_place)

    def expect_image(gathered, w=w):
        product = expect_product(w, gathered)
        return {2: Expected(product.value.reshape(C, H, W), product.bound.reshape(C, H, W))}

    def mistake(cause, cure, find_place=find_place, **steps):
        return Mistake(cause, lambda: expect_image(gather(find_place, **steps)), cure)

    turned = w.reshape(C, K, R, S)[..., ::-1, ::-1].reshape(w.shape)
    tiles = -(-C // TILE) * -(-H * W // TILE) * -(-K * R * S // TILE)
    return Launch(
        label=f"{count_text(K, 'filter')} of {C} x {R} x {S}, images of {H} x {W}, a stride of {stride}, padding {pad}",
        args=(
            dy,
            np.ascontiguousarray(w.reshape(C, K, R, S).swapaxes(0, 1)),
            unwritten_array((C, H, W)),
            stride,
            pad,
        ),
        outputs=expect_image(gathered),
        grid=grid_for((H * W, C), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget("global loads", 2 * TILE**2 * tiles, "2 per thread and tile, so that the edges have room"),
            Budget("global stores", C * H * W, "each pixel once"),
            Budget(BARRIERS, 2 * tiles, "one pair per iteration of each block"),
            NO_FLOAT64,
        ),
        dependences=tuple(
            _in_planes(dependence, (C, H, W)) for dependence in add_expected_results((USES_TILES,), w, gathered)
        ),
        mistakes=(
            mistake("taps and padding had the opposite sign", FORWARDS, lambda pixel, tap: pixel - pad + tap),
            mistake("there were no padding", FORWARDS, lambda pixel, tap: pixel - tap),
            mistake("places were not divided by the stride", "Divide by it to get p and q.", divisor=1),
            mistake("pixels between the steps of a tap had met it, too", BETWEEN, step=1),
            Mistake(
                "the filter were turned", lambda: expect_image(gathered, turned), "Load tap (r, s) of w, as it is."
            ),
        ),
    )


def gather_at(dy, below, right, stride, divisor):
    """Return the KRS x HW matrix of what each pixel meets under each tap: an element of dy, or zero.

    Parameters
    ----------
    below, right
        Place of each tap and pixel in rows and in columns; an output is where both are multiples of the stride.
    divisor
        What an output's place is divided by.
    """
    P, Q = dy.shape[1:]
    (p, is_row), (q, is_column) = (
        (np.clip(place // divisor, 0, size - 1), (place % stride == 0) & (place >= 0) & (place // divisor < size))
        for place, size in ((below, P), (right, Q))
    )
    taken = np.where(
        is_row[:, None, :, None] & is_column[:, None], dy[:, p[:, None, :, None], q[:, None]], np.float32(0)
    )
    return taken.reshape(-1, below.shape[1] * right.shape[1])


def _in_planes(dependence, shape):
    """Give the results that a dependence expects the shape of the image."""

    def expected_results(disturbance):
        results = dependence.expected_results(disturbance)
        return [Expected(result.value.reshape(shape), result.bound.reshape(shape)) for result in results]

    return replace(dependence, expected_results=expected_results)


EXERCISE = Exercise(
    title="Gather backwards",
    task="Training needs the gradient of the image: dx[c, h, col] is the sum of w[k, c, r, s] * dy[k, p, q] over all "
    "k, r and s, where output (p, q) took pixel (h, col) with tap (r, s). Gather both tiles.",
    points=4,
    function="to_image",
    make_launch=make_launch,
    sizes=(  # filters, channels, taps down and across, pixels down and across, stride, padding; first one tile
        (1, 16, 4, 4, 4, 4, 1, 0),
        (3, 5, 3, 2, 7, 9, 1, 1),
        (4, 18, 2, 4, 9, 8, 2, 1),
        (2, 3, 3, 3, 8, 11, 3, 2),
        (11, 2, 3, 1, 3, 41, 1, 0),  # one row in the last tile; 41 times the float32 nearest to 1/41 is less than 1
    ),
    random_sizes=(
        (range(3, 8), range(3, 9), (2, 3), (3, 5), range(6, 11), range(7, 12), (1, 2), (1, 2)),
        ((1,), Above(18), (1, 2), (3,), (1, 2, 3), Above(11), (2,), (0, 1)),
        (Above(4), (1, 2), Above(4), (1, 2), Above(9), (3, 4), (1, 2, 3), (0, 2)),
    ),
)

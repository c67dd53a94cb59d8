"""A Winograd tile in two dimensions, F(2 x 2, 2 x 2), with channels and edges."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element, random_matrix
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK = 8, 4
B_T = np.array([[1, -1, 0], [0, 1, 0], [0, -1, 1]])
G = np.array([[1, 0], [1, 1], [0, 1]])
A_T = np.array([[1, 1, 0], [0, 1, 1]])


def make_launch(rng, channels, P, Q):
    x = random_matrix(rng, channels, (P + 1) * (Q + 1)).reshape(channels, P + 1, Q + 1)
    U = random_matrix(rng, channels, 9).reshape(channels, 3, 3)  # of no filter: only products of transforms are right
    tiles = -(-P // 2), -(-Q // 2)
    turned, first = U.swapaxes(1, 2), slice(1)
    other_sign = B_T * np.array([[-1], [1], [1]])
    loads = 9 * channels * tiles[0] * tiles[1]
    return Launch(
        label=f"{count_text(channels, 'channel')}, {P} x {Q} outputs",
        args=(x, U, unwritten_array((P, Q))),
        outputs={2: expect(x, U, P, Q)},
        grid=grid_for(tiles[::-1], BLOCK),
        block=BLOCK,
        budgets=(
            Budget(
                "global loads",
                2 * loads,
                "9 pixels and 9 numbers of U per channel and tile",
                {"x": loads, "U": loads},
            ),
            Budget("global stores", P * Q, "each output once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element(tiles[::-1], BLOCK),),
        mistakes=(
            Mistake(
                "U were transposed",
                lambda: {2: expect(x, turned, P, Q)},
                "Multiply by U[c, i, j] in row i and column j.",
            ),
            Mistake(
                "only the first channel were added",
                lambda: {2: expect(x[first], U[first], P, Q)},
                "Loop over all channels.",
            ),
            Mistake(
                "16 products were made, of the corners of U",
                lambda: {2: expect(x, transform_taps(U), P, Q)},
                "Multiply U as it is: compute no taps from it.",
            ),
            Mistake(
                "only the columns of a tile were transformed",
                lambda: {2: expect(x, U, P, Q, across=np.eye(3))},
                "Transform the rows of the result, too.",
            ),
            Mistake(
                "a tile's first row had the opposite sign",
                lambda: {2: expect(x, U, P, Q, down=other_sign)},
                "It is d0 - d1.",
            ),
        ),
    )


def transform_taps(U):
    """Transform the corners of U, which are the taps of a filter that belongs to U."""
    return G @ U[:, ::2, ::2] @ G.T


def expect(x, U, P, Q, down=B_T, across=B_T):
    """Expect the outputs of all tiles within the roundings of transforms, products and sums."""
    padded = np.pad(x.astype(float), ((0, 0), (0, P % 2), (0, Q % 2)))
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]

    def compute(A_T, down, across, U, tiles):
        V = np.einsum("ia,cpqab,jb->cpqij", down, tiles, across)
        sums = np.einsum("cij,cpqij->pqij", U, V)
        blocks = np.einsum("ki,pqij,lj->pkql", A_T, sums, A_T)
        return blocks.reshape(2 * blocks.shape[0], -1)[:P, :Q]

    arrays = A_T, down, across, U.astype(float), tiles
    size = compute(*map(np.abs, arrays))
    return Expected(compute(*arrays), (len(x) + 12) * EPS * size)


EXERCISE = Exercise(
    title="Two by two",
    task="Write the convolution with 2 x 2 taps by F(2 x 2, 2 x 2): 9 products per channel for each tile of 2 x 2 "
    "outputs.",
    points=5,
    function="two_by_two",
    make_launch=make_launch,
    sizes=((1, 2, 2), (3, 6, 18), (4, 9, 7), (2, 1, 1)),  # channels, rows and columns of outputs: first one tile
    random_sizes=(
        (range(2, 6), range(9, 14), range(17, 22)),
        ((1,), (1, 2, 3), Above(18)),
        (Above(32), (1, 3, 4), (1, 2, 5)),
    ),
)

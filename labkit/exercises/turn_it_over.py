"""A transpose in loops, which uses no element twice and must use each cache line up."""

from functools import partial

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect, random_matrix, with_zeros
from labkit.ladder import Expected

TILES = 8, 16, 32
SET = 1024  # elements after which lines fall into the same set of L1, here and up to two elements away


def make_launch(rng, M, N):
    A = with_zeros(random_matrix(rng, M, N))
    budget = Budget("misses of the L1 cache", M * N // 4, "M * N / 4")
    row, column = np.arange(M), np.arange(N)[:, None]

    def leave_out(is_left_out):
        value = np.where(is_left_out, np.nan, A.T)
        return {1: Expected(value, np.zeros(value.shape))}

    return Launch(
        label=f"A {M} x {N}",
        args=(A, unwritten_array((N, M))),
        outputs={1: expect(A.T.astype(float))},
        budgets=(budget,) * (min(M, N) >= 16 and 2 < M % SET < SET - 2),
        mistakes=tuple(
            Mistake(cause, partial(leave_out, is_left_out), cure)
            for tile in TILES
            for cause, is_left_out, cure in list_slips(row, column, M, N, tile)
        ),
    )


def list_slips(row, column, M, N, tile):
    """Yield what is left out of A by usual slips in the loops over tiles: the cause, which elements, and the cure."""
    more = "Let the loop over the tiles begin one more tile there, and end that tile at the edge by `min`."
    ragged = row >= M // tile * tile, column >= N // tile * tile
    for side, is_left_out in zip(("rows", "columns"), ragged, strict=True):
        yield f"{side} of A after the last whole tile were left out", is_left_out, more
    yield "rows and columns of A after the last whole tile were left out", ragged[0] | ragged[1], more
    begin = "Within a tile, begin the loops at the tile's first row and column, and end them one tile further on."
    yield "only the first tile were moved", (row >= tile) | (column >= tile), begin


EXERCISE = Exercise(
    title="Turn it over",
    task="Write T = A.T in loops, so that L1 misses at most once in four elements.",
    points=3,
    function="turned",
    make_launch=make_launch,
    sizes=((601, 903), (300, 1021)),  # M, N: a column has more lines than L1
    random_sizes=(
        (range(577, 640, 2), range(641, 704, 2)),
        ((1, 2, 15), Above(600)),
        (Above(900), (1, 3, 17)),
    ),
    machine="cpu",
)

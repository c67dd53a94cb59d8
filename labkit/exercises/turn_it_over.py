"""A transpose in loops, which uses no element twice and must use each cache line up."""

from functools import partial

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect, random_matrix
from labkit.ladder import Expected

TILES = 8, 16, 32
SET = 1024  # elements after which lines fall into the same set of L1, here and up to two elements away


def make_launch(rng, M, N):
    A = random_matrix(rng, M, N)
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
            Mistake(
                f"{side} of A after the last whole tile were left out", partial(leave_out, place >= size // tile * tile)
            )
            for tile in TILES
            for side, place, size in (("rows", row, M), ("columns", column, N))
        ),
    )


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

"""Exercise 03.3: the tile that is large enough to save loads and small enough for shared memory."""

from labkit.exercises.budget import SHARED_BYTES, Budget
from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import matmul_launch

SIZES = ((48, 80, 64), (21, 58, 35))  # M, N, K; ragged ones have no budget of loads, only a right result
AT_MOST_BYTES = 3072


def launch(rng, M, N, K, TILE):
    shared = Budget(SHARED_BYTES, AT_MOST_BYTES, "3 KB, so that many blocks fit on an SM")
    loads = Budget("global loads", M * N * K // 8, "M * N * K / 8")
    whole = M % 16 == N % 16 == K % 16 == 0
    return matmul_launch(rng, M, N, K, (TILE, TILE), (loads, shared) if whole else (shared,))


EXERCISE = Exercise(
    id="03.3",
    title="Choose the tile",
    task="Choose TILE so that the kernel makes at most M * N * K / 8 global loads, "
    "in at most 3 KB of shared memory a block.",
    points=2,
    function="tuned_matmul",
    launch=launch,
    sizes=SIZES,
    drawn=((range(49, 64), range(81, 96), range(41, 64)), (range(49, 64), range(41, 64), range(81, 100))),
    constants=("TILE",),
)

"""Tiles with rows of 128 bytes, whose `ldmatrix` meet in the same banks."""

from labkit.checking import Beyond, Budget, Duty, Exercise
from labkit.checking.budget import SHARED_BYTES
from labkit.exercises.matmuls import BY_TENSOR_CORES, FROM_TILES, half_launch, whole

SIZES = ((32, 8, 128), (16, 24, 64))  # M, N, K, rounded up to multiples of 16, 8 and 64
BUDGETS = (
    Budget("bank conflicts", 0, "none"),
    Budget(SHARED_BYTES, (16 + 8) * 128, "24 rows of 128 bytes: no padding"),
)


def make_launch(rng, M, N, K):
    M, N, K = whole(M, 16), whole(N, 8), whole(K, 64)
    loads = 3 * (M // 16) * (N // 8) * (K // 16)
    return half_launch(
        rng,
        M,
        N,
        K,
        part=(16, 8),
        block=(32,),
        budgets=BUDGETS,
        duties=(Duty("load requests to shared memory", 0, "3 for each `ptx.mma`: load by `ldmatrix`", loads),),
        dependences=(FROM_TILES, BY_TENSOR_CORES),
    )


EXERCISE = Exercise(
    id="swizzle-the-tiles",
    title="Swizzle the tiles",
    task="Choose the slot of each 16-byte piece in its row, so that no `ldmatrix` meets a bank twice.",
    points=2,
    function="no_conflicts",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(
        (range(17, 49), range(33, 41), range(129, 257)),
        ((1,), Beyond(48, 8), (1,)),
        (Beyond(48, 16), (1,), Beyond(256, 64)),
    ),
)

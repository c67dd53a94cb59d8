"""Tiles with rows of 128 bytes, whose `ldmatrix` loads conflict in the same banks."""

from labkit.checking import Above, Budget, Exercise
from labkit.checking.budget import SHARED_BYTES
from labkit.exercises.matmuls import make_ldmatrix_launch

BUDGETS = (
    Budget("bank conflicts", 0, "each costs one more wavefront"),
    Budget(SHARED_BYTES, (16 + 8) * 128, "24 rows of 128 bytes: no padding"),
)


def make_launch(rng, M, N, K):
    return make_ldmatrix_launch(rng, M, N, K, BUDGETS)


EXERCISE = Exercise(
    title="Swizzle the tiles",
    task="Choose the slot of each 16-byte vector in its row, so that no `ldmatrix` has a bank conflict.",
    points=2,
    function="no_conflicts",
    make_launch=make_launch,
    sizes=((32, 8, 128), (16, 24, 64)),  # M, N, K, rounded up to multiples of 16, 8 and 64
    random_sizes=(
        (range(17, 49), range(33, 41), range(129, 257)),
        ((1,), Above(48, 8), (1,)),
        (Above(48, 16), (1,), Above(256, 64)),
    ),
)

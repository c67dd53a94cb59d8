"""Tiles with rows of 32, 64 or 128 bytes, whose `ldmatrix` loads conflict in the same banks."""

from dataclasses import replace

from labkit.checking import Above, Budget, Exercise
from labkit.checking.budget import SHARED_BYTES
from labkit.exercises.matmuls import make_ldmatrix_launch

MAX_ROW_BYTES = 128
BUDGETS = (
    Budget("bank conflicts", 0, "none"),
    Budget(SHARED_BYTES, (16 + 8) * MAX_ROW_BYTES, "24 rows of up to 128 bytes: no padding"),
)


def make_launch(rng, M, N, K, vectors):
    launch = make_ldmatrix_launch(rng, M, N, K, BUDGETS)
    return replace(launch, label=f"{launch.label}, rows of {vectors} vectors", args=(*launch.args, vectors))


EXERCISE = Exercise(
    title="Rows of any length",
    task="Choose the slot of each vector in its row, so that no `ldmatrix` has a bank conflict, whether the rows of a "
    "tile are 32, 64 or 128 bytes.",
    points=2,
    function="any_rows",
    make_launch=make_launch,
    sizes=((16, 16, 64, 8), (32, 8, 128, 4), (16, 24, 64, 2)),  # M, N, K, which are rounded up, and vectors of a row
    random_sizes=(
        (range(17, 49), range(33, 41), range(129, 257), (2, 4)),
        ((1,), Above(48, 8), (1,), (2, 4, 8)),
        (Above(48, 16), (1,), Above(256, 64), (4, 8)),
    ),
)

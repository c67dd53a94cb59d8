"""A ring of asynchronous copies whose tiles are used before they arrive."""

from labkit.checking import Budget, Dependence, Exercise
from labkit.checking.budget import EXPOSED_LOADS
from labkit.exercises.matmuls import RANDOM_SIZES_TO_ROUND, USES_TENSOR_CORES, make_tensor_core_launch, round_up
from labkit.simulator.disturbance import COPIES

USES_COPIES = Dependence(COPIES, "bring both tiles by `ptx.cp_async`")


def make_launch(rng, M, N, K):
    k_tiles = -(-K // 16)
    return make_tensor_core_launch(
        rng,
        round_up(M, 16),
        round_up(N, 16),
        round_up(K, 16),
        tile=(16, 16),
        block=(32, 2),
        budgets=(Budget(EXPOSED_LOADS, -(-100 // k_tiles), "those of the last tile"),),
        dependences=(USES_COPIES, USES_TENSOR_CORES),
    )


EXERCISE = Exercise(
    title="Put the wait back",
    task="The warps multiply tiles that are still on their way. Add what is missing, and let AHEAD tiles stay in "
    "flight.",
    points=2,
    function="copied_ahead",
    make_launch=make_launch,
    sizes=((32, 16, 80), (16, 32, 16)),  # M, N, K, rounded up to multiples of 16
    random_sizes=RANDOM_SIZES_TO_ROUND,
)

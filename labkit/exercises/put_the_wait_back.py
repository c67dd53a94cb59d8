"""A ring of asynchronous copies whose tiles are used before they have come."""

from labkit.checking import Dependence, Exercise
from labkit.exercises.matmuls import BY_TENSOR_CORES, DRAWN_WHOLE, half_launch, whole
from labkit.simulator.disturbance import COPIES

SIZES = ((32, 16, 80), (16, 32, 16))  # M, N, K, rounded up to multiples of 16
BY_COPIES = Dependence(COPIES, "bring both tiles by `ptx.cp_async`")


def make_launch(rng, M, N, K):
    return half_launch(
        rng,
        whole(M, 16),
        whole(N, 16),
        whole(K, 16),
        part=(16, 16),
        block=(32, 2),
        dependences=(BY_COPIES, BY_TENSOR_CORES),
    )


EXERCISE = Exercise(
    id="put-the-wait-back",
    title="Put the wait back",
    task="The warps multiply tiles that are still on their way. Add what is missing.",
    points=2,
    function="copied_ahead",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=DRAWN_WHOLE,
)

"""The words of A and B that each lane loads for an `mma`, and where its accumulators belong."""

from labkit.checking import Budget, Exercise
from labkit.checking.budget import TENSOR_FLOPS
from labkit.exercises.matmuls import RANDOM_SIZES_TO_ROUND, make_tensor_core_launch, round_up


def make_launch(rng, M, N, K):
    M, N, K = round_up(M, 16), round_up(N, 8), round_up(K, 16)
    once = Budget(TENSOR_FLOPS, 2 * M * N * K, "2 M N K: each product once")
    return make_tensor_core_launch(rng, M, N, K, tile=(16, 8), block=(32,), budgets=(once,))


EXERCISE = Exercise(
    title="Fill in the fragments",
    task="Let each lane load its words of A and of B for the `mma`, and store its four accumulators where they belong.",
    points=3,
    function="one_product",
    make_launch=make_launch,
    sizes=((32, 24, 32), (16, 16, 48)),  # M, N, K, rounded up to multiples of 16, 8 and 16
    random_sizes=RANDOM_SIZES_TO_ROUND,
)

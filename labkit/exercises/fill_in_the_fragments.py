"""Which word of A and of B each lane loads for an `mma`, and where its sums go."""

from labkit.checking import Budget, Exercise
from labkit.checking.budget import TENSOR_FLOPS
from labkit.exercises.matmuls import DRAWN_WHOLE, half_launch, whole

SIZES = ((32, 24, 32), (16, 16, 48))  # M, N, K, rounded up to multiples of 16, 8 and 16


def make_launch(rng, M, N, K):
    M, N, K = whole(M, 16), whole(N, 8), whole(K, 16)
    once = Budget(TENSOR_FLOPS, 2 * M * N * K, "2 M N K: each product once")
    return half_launch(rng, M, N, K, part=(16, 8), block=(32,), budgets=(once,))


EXERCISE = Exercise(
    id="fill-in-the-fragments",
    title="Fill in the fragments",
    task="Let each lane load its words of A and of B for the `mma`, and store its four sums where they belong.",
    points=3,
    function="one_product",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=DRAWN_WHOLE,
)

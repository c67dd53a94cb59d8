"""A small matmul on tensor cores with ragged edges, from a blank kernel."""

from labkit.checking import Above, Budget, Exercise
from labkit.exercises.matmuls import add_mistakes_in_fragments, make_tensor_core_launch, round_up


def make_launch(rng, M, N, K):
    K = round_up(K, 16)
    steps = -(-M // 16) * -(-N // 32) * (K // 16)
    loads = Budget("global loads", 384 * steps, "12 words per lane, block and step of k: each of A and B once")
    launch = make_tensor_core_launch(rng, M, N, K, tile=(16, 32), block=(32,), budgets=(loads,))
    return add_mistakes_in_fragments(launch)


EXERCISE = Exercise(
    title="Write a GEMM on tensor cores",
    task="Write C = A @ B.T with `ptx.mma`, from a blank kernel, for any M and N.",
    points=4,
    function="small_gemm",
    make_launch=make_launch,
    sizes=((32, 64, 48), (21, 37, 80)),  # M, N and K, which is rounded up to a multiple of 16
    random_sizes=(
        ((1, *range(17, 24)), range(33, 64, 2), range(81, 129)),
        ((9, 25, 31), Above(64), (1,)),  # the lower half of a block is ragged
        (Above(32), (1, 57, 63), Above(128, 16)),
    ),
)

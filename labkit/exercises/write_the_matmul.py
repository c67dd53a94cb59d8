"""A matmul with one thread per output, mapped so that loads coalesce."""

from dataclasses import replace

from labkit.checking import NO_FLOAT64, Budget, Duty, Exercise
from labkit.exercises.contents import chapter_number
from labkit.exercises.matmuls import RANDOM_SIZES_AND_ALPHA, make_matmul_launch, scale_by_alpha
from labkit.exercises.problems import swap_rows_and_columns

BLOCK = (32, 8)


def make_launch(rng, M, N, K, alpha):
    warps = -(-N // 32) * -(-M // 8) * 8
    budgets = (
        Budget("global loads", 2 * M * N * K, "2 * M * N * K"),
        Budget("global stores", M * N, "each element of C once"),
        Budget("sectors loaded", 6 * warps * K, "6 per warp and k"),
        NO_FLOAT64,
    )
    duties = (
        Duty(
            "global loads",
            M * N * K,
            f"one thread per output, which loads for itself: sharing is {chapter_number('tiled-gemm')}'s",
        ),
    )
    launch = scale_by_alpha(alpha, make_matmul_launch(rng, M, N, K, BLOCK, budgets=budgets, duties=duties))
    return replace(launch, mistakes=launch.mistakes + swap_rows_and_columns(launch))


EXERCISE = Exercise(
    title="Write the matmul",
    task="Write C = alpha * A @ B, one thread per output and in float32, "
    "so that the threads of a warp read neighbours in B.",
    points=3,
    function="matmul",
    make_launch=make_launch,
    sizes=((24, 64, 40, 1.5), (13, 27, 49, -41.0)),  # M, N, K, alpha; the second is ragged
    random_sizes=RANDOM_SIZES_AND_ALPHA,
)

"""The tiles of a block and of a thread under four budgets at once."""

from labkit.checking import Budget, Exercise
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.matmuls import RANDOM_SIZES_AND_ALPHA, USES_TILES, make_tiled_launch, scale_by_alpha

BK = 8
MAX_BYTES = 3072
MAX_NUMBERS = 32


def make_launch(rng, M, N, K, alpha, BM, BN, TM, TN):
    for thread_name, block_name, outputs, tile in (("TM", "BM", TM, BM), ("TN", "BN", TN, BN)):
        if tile % outputs:
            raise ValueError(
                f"{thread_name} must divide {block_name}: {outputs} does not divide {tile}, "
                "so the threads of a block would leave a part of its tile out."
            )
    budgets = (
        Budget(SHARED_BYTES, MAX_BYTES, "3 KB, and the tiles take (BM + BN) * BK * 4 bytes"),
        Budget(LOCAL_NUMBERS, MAX_NUMBERS, "32, and a thread keeps TM * TN + TM + TN"),
    )
    if M % 64 == N % 64 == K % 8 == 0:
        budgets = (
            Budget(
                "global loads",
                M * N * K // 16,
                "M * N * K / 16, and tiles take 1 / BM + 1 / BN of M * N * K",
                dict.fromkeys(("A", "B"), M * N * K // 32),
            ),
            Budget(
                "shared loads",
                M * N * K // 2,
                "M * N * K / 2, and threads take 1 / TM + 1 / TN of M * N * K",
                dict.fromkeys(("A_tile", "B_tile"), M * N * K // 4),
            ),
            *budgets,
        )
    shape = (BM, BN), (BN // TN, BM // TM)
    launch = make_tiled_launch(rng, M, N, K, *shape, step=BK, budgets=budgets, dependences=(USES_TILES,))
    return scale_by_alpha(alpha, launch)


EXERCISE = Exercise(
    title="Choose the register tile",
    task="Choose BM, BN, TM and TN so that this kernel, C = alpha * A @ B, "
    "makes at most M * N * K / 16 global and M * N * K / 2 shared "
    "loads, with at most 3 KB of shared memory per block and 32 numbers per thread in its own arrays.",
    points=2,
    function="chosen_matmul",
    make_launch=make_launch,
    sizes=((64, 128, 16, 1.5), (21, 58, 19, -41.0)),  # M, N, K, alpha; ragged ones have no budget of loads
    random_sizes=RANDOM_SIZES_AND_ALPHA,
    constants=("BM", "BN", "TM", "TN"),
)

"""Block's tile and thread's tile under three budgets at a time."""

from labkit.checking import Budget, Exercise
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.matmuls import DRAWN_SCALED, FROM_TILES, product_launch, scaled

SIZES = ((64, 128, 16, 1.5), (21, 58, 19, -41.0))  # M, N, K, alpha; ragged ones have no budget of loads
AT_MOST_BYTES = 3072
AT_MOST_KEPT = 32


def make_launch(rng, M, N, K, alpha, BM, BN, TM, TN):
    for part, whole, outputs, tile in (("TM", "BM", TM, BM), ("TN", "BN", TN, BN)):
        if tile % outputs:
            raise ValueError(
                f"{part} must divide {whole}: {outputs} does not divide {tile}, "
                "so the threads of a block would leave a part of its tile out."
            )
    budgets = (
        Budget(SHARED_BYTES, AT_MOST_BYTES, "3 KB, so that many blocks fit on an SM"),
        Budget(LOCAL_NUMBERS, AT_MOST_KEPT, "32, so that many threads fit on an SM"),
    )
    if M % 64 == N % 64 == K % 8 == 0:
        budgets = (
            Budget("global loads", M * N * K // 16, "M * N * K / 16", dict.fromkeys(("A", "B"), M * N * K // 32)),
            Budget(
                "shared loads", M * N * K // 2, "M * N * K / 2", dict.fromkeys(("A_tile", "B_tile"), M * N * K // 4)
            ),
            *budgets,
        )
    shape = (BM, BN), (BN // TN, BM // TM)
    return scaled(alpha, product_launch(rng, M, N, K, *shape, budgets=budgets, dependences=(FROM_TILES,)))


EXERCISE = Exercise(
    id="choose-the-register-tile",
    title="Choose the register tile",
    task="Choose BM, BN, TM and TN so that this kernel, C = alpha * A @ B, "
    "makes at most M * N * K / 16 global and M * N * K / 2 shared "
    "loads, with at most 3 KB of shared memory a block and 32 numbers in a thread's own arrays.",
    points=2,
    function="chosen_matmul",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=DRAWN_SCALED,
    constants=("BM", "BN", "TM", "TN"),
)

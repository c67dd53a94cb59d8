"""Exercise 05.2: block's tile and thread's tile under three budgets at a time."""

from labkit.exercises.budget import KEPT, SHARED_BYTES, Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import product_launch

SIZES = ((64, 128, 16), (21, 58, 19))  # M, N, K; ragged ones have no budget of loads, only a right result
AT_MOST_BYTES = 3072
AT_MOST_KEPT = 32


def launch(rng, M, N, K, BM, BN, TM, TN):
    for part, whole, outputs, tile in (("TM", "BM", TM, BM), ("TN", "BN", TN, BN)):
        if tile % outputs:
            raise ValueError(
                f"{part} must divide {whole}: {outputs} does not divide {tile}, "
                "so the threads of a block would leave a part of its tile out."
            )
    budgets = (
        Budget(SHARED_BYTES, AT_MOST_BYTES, "3 KB, so that many blocks fit on an SM"),
        Budget(KEPT, AT_MOST_KEPT, "32, so that many threads fit on an SM"),
    )
    if M % 64 == 0:
        budgets = (
            Budget("global loads", M * N * K // 16, "M * N * K / 16", dict.fromkeys(("A", "B"), M * N * K // 32)),
            Budget(
                "shared loads", M * N * K // 2, "M * N * K / 2", dict.fromkeys(("A_tile", "B_tile"), M * N * K // 4)
            ),
            *budgets,
        )
    return product_launch(rng, M, N, K, (BM, BN), (BN // TN, BM // TM), budgets)


EXERCISE = Exercise(
    id="05.2",
    title="Choose the register tile",
    task="Choose BM, BN, TM and TN so that the kernel makes at most M * N * K / 16 global and M * N * K / 2 shared "
    "loads, with at most 3 KB of shared memory a block and 32 numbers in a thread's own arrays.",
    points=2,
    function="chosen_matmul",
    launch=launch,
    sizes=SIZES,
    drawn=((range(65, 80), range(41, 64), range(17, 24)),),
    constants=("BM", "BN", "TM", "TN"),
    variants=(
        Variant(
            "the tiles that the exercise starts with",
            "budget",
            (("BM, BN, TM, TN = 32, 32, 4, 4", "BM, BN, TM, TN = 16, 16, 2, 2"),),
        ),
        Variant("a block's tile too small", "budget", (("= 32, 32, 4, 4", "= 16, 32, 4, 4"),)),
        Variant("a block's tile too large", "budget", (("= 32, 32, 4, 4", "= 64, 64, 4, 4"),)),
        Variant("a thread's tile too small", "budget", (("= 32, 32, 4, 4", "= 32, 32, 4, 2"),)),
        Variant("a thread's tile too large", "budget", (("= 32, 32, 4, 4", "= 32, 32, 8, 8"),)),
        Variant("a long thin tile of as many outputs", "budget", (("= 32, 32, 4, 4", "= 32, 32, 8, 2"),)),
        Variant("a tile that the threads cannot share out", "launch", (("= 32, 32, 4, 4", "= 32, 32, 5, 4"),)),
        Variant("no tile", "launch", (("= 32, 32, 4, 4", "= 32, 32, 0, 4"),)),
        Variant("a length of the book's", "result", (("range(0, K, BK)", "range(0, 16, BK)"),)),
        Variant("a wider tile within all budgets", "solved", (("= 32, 32, 4, 4", "= 32, 64, 4, 4"),)),
        Variant("a higher tile within all budgets", "solved", (("= 32, 32, 4, 4", "= 64, 32, 4, 4"),)),
    ),
)

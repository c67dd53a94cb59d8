"""Exercise 05.1: the one-dimensional register tile, with the tiles already in shared memory."""

from labkit.exercises.budget import BARRIERS, FLOAT32_ALONE, Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import product_launch

BM, BN, BK, TM = 32, 32, 8, 4
SIZES = ((64, 96, 40), (37, 43, 21))  # M, N, K; the second is ragged


def launch(rng, M, N, K):
    blocks, rounds = -(-M // BM) * -(-N // BN), -(-K // BK)
    multiply_adds = blocks * rounds * BM * BN * BK
    of_tiles = {"A_tile": multiply_adds, "B_tile": multiply_adds // TM}
    of_matrices = {"A": blocks * rounds * BM * BK, "B": blocks * rounds * BK * BN}
    budgets = (
        Budget("shared loads", sum(of_tiles.values()), "TM + 1 for TM multiply-adds", of_tiles),
        Budget("global loads", sum(of_matrices.values()), "each element of a tile once", of_matrices),
        Budget("global stores", M * N, "each element of C once, when its sum is complete"),
        Budget(BARRIERS, 2 * blocks * rounds, "two in each round of each block, before its tiles are used and after"),
        FLOAT32_ALONE,
    )
    return product_launch(rng, M, N, K, (BM, BN), (BN, BM // TM), budgets)


_SUM = "                sums[i] += A_tile[y * TM + i, k] * b\n"
_LOOP_OVER_K = "        for k in range(BK):\n"
_APART = (
    ("A_tile[y * TM + i, k]", "A_tile[y + i * cuda.blockDim.y, k]"),
    ("row = top + y * TM + i", "row = top + y + i * cuda.blockDim.y"),
)

EXERCISE = Exercise(
    id="05.1",
    title="Keep a column",
    task="The tiles are in shared memory. Let each thread add up its TM outputs, one below the other, "
    "with TM + 1 shared loads for each k, and store them.",
    points=3,
    function="column_matmul",
    launch=launch,
    sizes=SIZES,
    drawn=((range(49, 64), range(65, 96), range(41, 56)),),
    variants=(
        Variant(
            "b is loaded for each product",
            "budget",
            (
                ("            b = B_tile[k, x]\n", ""),
                ("A_tile[y * TM + i, k] * b", "A_tile[y * TM + i, k] * B_tile[k, x]"),
            ),
        ),
        Variant("no barrier before the next tiles", "race", (("        cuda.syncthreads()\n    for", "    for"),)),
        Variant("the sums do not start at zero", "uninitialised", (("        sums[i] = zero\n", "        pass\n"),)),
        Variant("rows without a guard", "bounds", (("if row < M and left + x < N:", "if left + x < N:"),)),
        Variant("columns without a guard", "bounds", (("if row < M and left + x < N:", "if row < M:"),)),
        Variant(
            "only the first output",
            "unwritten",
            (("        row = top + y * TM + i\n", "        row = top + y * TM\n"),),
        ),
        Variant("the last product alone", "result", (("sums[i] += A_tile", "sums[i] = A_tile"),)),
        Variant("rows of one thread, results of another", "result", (_APART[0],)),
        Variant("B's row in place of its column", "result", (("b = B_tile[k, x]", "b = B_tile[x % BK, k]"),)),
        Variant("a tile too few", "result", (("range(0, K, BK)", "range(0, K // BK * BK, BK)"),)),
        Variant("a length of the book's", "result", (("range(0, K, BK)", "range(0, min(K, 40), BK)"),)),
        Variant(
            "stored again and again",
            "budget",
            (
                (
                    _SUM,
                    _SUM + "                if top + y * TM + i < M and left + x < N:\n"
                    "                    C[top + y * TM + i, left + x] = sums[i]\n",
                ),
            ),
        ),
        Variant(
            "sums in float64", "budget", (("cuda.local.array(TM, np.float32)", "cuda.local.array(TM, np.float64)"),)
        ),
        Variant("a barrier for each k", "budget", ((_LOOP_OVER_K, _LOOP_OVER_K + "            cuda.syncthreads()\n"),)),
        Variant("a thread's rows lie apart", "solved", _APART),
        Variant(
            "the sum is put together before it is stored",
            "solved",
            ((_SUM, "                a = A_tile[y * TM + i, k]\n                sums[i] = sums[i] + a * b\n"),),
        ),
    ),
)

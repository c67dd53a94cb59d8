"""Other answers to exercise 05.1."""

from . import Variant

_SUM = "                sums[i] += A_tile[y * TM + i, k] * b\n"

_LOOP_OVER_K = "        for k in range(BK):\n"

_APART = (
    ("A_tile[y * TM + i, k]", "A_tile[y + i * cuda.blockDim.y, k]"),
    ("row = top + y * TM + i", "row = top + y + i * cuda.blockDim.y"),
)

VARIANTS = (
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
                "                    C[top + y * TM + i, left + x] = alpha * sums[i]\n",
            ),
        ),
    ),
    Variant("sums in float64", "budget", (("cuda.local.array(TM, np.float32)", "cuda.local.array(TM, np.float64)"),)),
    Variant("a barrier for each k", "budget", ((_LOOP_OVER_K, _LOOP_OVER_K + "            cuda.syncthreads()\n"),)),
    Variant("a thread's rows lie apart", "solved", _APART),
    Variant(
        "the sum is put together before it is stored",
        "solved",
        ((_SUM, "                a = A_tile[y * TM + i, k]\n                sums[i] = sums[i] + a * b\n"),),
    ),
)

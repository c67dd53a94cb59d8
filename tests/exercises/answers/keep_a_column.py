"""Other answers to keep-a-column."""

from . import Answer, right, shortcut, wrong

_SUM = "                sums[i] += A_tile[y * TM + i, k] * b\n"

_LOOP_OVER_K = "        for k in range(BK):\n"

_APART = (
    ("A_tile[y * TM + i, k]", "A_tile[y + i * cuda.blockDim.y, k]"),
    ("row = top + y * TM + i", "row = top + y + i * cuda.blockDim.y"),
)

FROM_GLOBAL_MEMORY = (
    "            b = B_tile[k, x]\n",
    "            b = cuda.atomic.add(B, (min(start + k, K - 1), min(left + x, N - 1)), zero) * (start + k < K)\n",
)

VARIANTS = (
    Answer(
        "b is loaded for each product",
        "budget",
        (
            ("            b = B_tile[k, x]\n", ""),
            ("A_tile[y * TM + i, k] * b", "A_tile[y * TM + i, k] * B_tile[k, x]"),
        ),
    ),
    Answer("no barrier before the next tiles", "race", (("        cuda.syncthreads()\n    for", "    for"),)),
    Answer("the sums do not start at zero", "uninitialised", (("        sums[i] = zero\n", "        pass\n"),)),
    Answer("rows without a guard", "bounds", (("if row < M and left + x < N:", "if left + x < N:"),)),
    Answer("columns without a guard", "bounds", (("if row < M and left + x < N:", "if row < M:"),)),
    Answer(
        "only the first output",
        "unwritten",
        (("        row = top + y * TM + i\n", "        row = top + y * TM\n"),),
        mistake="each thread stored all its sums in one row",
    ),
    Answer(
        "the last product alone",
        "result",
        (("sums[i] += A_tile", "sums[i] = A_tile"),),
        mistake="only the last product of each sum were kept",
    ),
    Answer(
        "rows of one thread, results of another",
        "result",
        (_APART[0],),
        mistake="each thread added up rows that are BM / TM apart",
    ),
    Answer("B's row in place of its column", "result", (("b = B_tile[k, x]", "b = B_tile[x % BK, k]"),)),
    Answer(
        "a tile too few",
        "result",
        (("range(0, K, BK)", "range(0, K // BK * BK, BK)"),),
        mistake="the end of K that fills no whole tile were left out",
    ),
    Answer("a length of the book's", "result", (("range(0, K, BK)", "range(0, min(K, 40), BK)"),)),
    Answer(
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
    Answer("sums in float64", "budget", (("cuda.local.array(TM, np.float32)", "cuda.local.array(TM, np.float64)"),)),
    Answer("a barrier for each k", "budget", ((_LOOP_OVER_K, _LOOP_OVER_K + "            cuda.syncthreads()\n"),)),
    Answer("a thread's rows lie apart", "solved", _APART),
    Answer(
        "the sum is put together before it is stored",
        "solved",
        ((_SUM, "                a = A_tile[y * TM + i, k]\n                sums[i] = sums[i] + a * b\n"),),
    ),
    Answer("alpha forgotten", "result", (("alpha * sums[i]", "sums[i]"),), mistake="alpha were left out"),
    Answer(
        "a whole tile too few",
        "result",
        (("range(0, K, BK)", "range(0, K - BK, BK)"),),
        mistake="the last tile along K were left out",
    ),
)

RIGHT = (right("constants one by one", ("BM, BN, BK, TM = 32, 32, 8, 4", "BM = BN = 32\nBK = 8\nTM = BM // BK")),)

WRONG = (
    wrong("the longest sum that is published", ("range(0, K, BK)", "range(0, min(K, 100), BK)")),
    wrong("the rows that are published", ("if row < M and left", "if row < min(M, 64) and left")),
    wrong("an even number of rows", ("if row < M and left", "if row < M // 2 * 2 and left")),
)

SHORTCUTS = (
    shortcut(
        "A by shuffles, times ones from its tile",
        (
            "        A_tile[t // BK, t % BK] = A[",
            "        A_tile[t // BK, t % BK] = 1\n        a = A[",
        ),
        ("A_tile[y * TM + i, k] * b", "cuda.shfl_sync(0xFFFFFFFF, a, i * 8 + k) * b"),
        ("= alpha * sums[i]", "= alpha * sums[i] * A_tile[t // BK, t % BK]"),
    ),
    shortcut(
        "a load for each product, by atomics",
        ("            b = B_tile[k, x]\n", ""),
        ("A_tile[y * TM + i, k] * b", "A_tile[y * TM + i, k] * cuda.atomic.add(B_tile, (k, x), zero)"),
    ),
    shortcut("B's elements from global memory, by atomics", FROM_GLOBAL_MEMORY),
    shortcut(
        "B's elements from global memory",
        (
            "            b = B_tile[k, x]\n",
            "            b = B[start + k, left + x] if start + k < K and left + x < N else zero\n",
        ),
    ),
    shortcut(
        "a row for a column",
        (
            """            b = B_tile[k, x]
            for i in range(TM):
                sums[i] += A_tile[y * TM + i, k] * b
""",
            """            a = A_tile[t // 8, k]
            for i in range(TM):
                sums[i] += a * B_tile[k, t % 8 * TM + i]
""",
        ),
        (
            """        row = top + y * TM + i
        if row < M and left + x < N:
            C[row, left + x] = alpha * sums[i]""",
            """        row, col = top + t // 8, left + t % 8 * TM + i
        if row < M and col < N:
            C[row, col] = alpha * sums[i]""",
        ),
    ),
)

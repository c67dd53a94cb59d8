"""Other answers to city-blocks."""

from . import Answer, right, shortcut, wrong

_TERM = "                    sums[i, j] += abs(own_x[i] - own_y[j])\n"
_LOAD_Y = "            for j in range(TN):\n                own_y[j] = Y_tile[x + j * columns, k]\n"
_LOAD_X = "            for i in range(TM):\n                own_x[i] = X_tile[y + i * rows, k]\n"
_AFTER = "        cuda.syncthreads()\n    for i in range(TM):\n"
_GLOBAL_Y = "Y[min(left + x + j * columns, N - 1), min(start + k, K - 1)] * (start + k < K)"

VARIANTS = (
    Answer(
        "a load for each term",
        "budget",
        ((_LOAD_Y, ""), ("own_x[i] - own_y[j]", "own_x[i] - Y_tile[x + j * columns, k]")),
    ),
    Answer(
        "a column of 16 distances",
        "budget",
        (
            ("TM, TN = 32, 32, 8, 4, 4", "TM, TN = 32, 32, 8, 16, 1"),
            ("    N = Y.shape[0]\n", "    N = Y.shape[0]\n    t = y * columns + x\n    x_of, y_of = t % 32, t // 32\n"),
            ("X_tile[y + i * rows, k]", "X_tile[y_of + i * 2, k]"),
            ("Y_tile[x + j * columns, k]", "Y_tile[x_of, k]"),
            ("top + y + i * rows, left + x + j * columns", "top + y_of + i * 2, left + x_of"),
        ),
    ),
    Answer("no barrier before the next tiles", "race", ((_AFTER, _AFTER.replace("        cuda.syncthreads()\n", "")),)),
    Answer("a barrier for each k", "budget", ((_LOAD_X, "            cuda.syncthreads()\n" + _LOAD_X),)),
    Answer(
        "the sums do not start at zero", "uninitialised", (("            sums[i, j] = zero\n", "            pass\n"),)
    ),
    Answer("points of X without a guard", "bounds", (("if row < M and col < N:", "if col < N:"),)),
    Answer("points of Y without a guard", "bounds", (("if row < M and col < N:", "if row < M:"),)),
    Answer(
        "squares in place of distances",
        "result",
        (("abs(own_x[i] - own_y[j])", "(own_x[i] - own_y[j]) ** 2"),),
        mistake="terms were squares",
    ),
    Answer(
        "differences with their signs",
        "result",
        (("abs(own_x[i] - own_y[j])", "own_x[i] - own_y[j]"),),
        mistake="terms kept their signs",
    ),
    Answer(
        "products, as in the chapter",
        "result",
        (("abs(own_x[i] - own_y[j])", "own_x[i] * own_y[j]"),),
        mistake="terms were products",
    ),
    Answer("Y's tile walked as B's was", "result", (("Y_tile[x + j * columns, k]", "Y_tile[k, x]"),)),
    Answer(
        "the last term alone",
        "result",
        (("sums[i, j] += abs", "sums[i, j] = abs"),),
        mistake="only the last term were kept",
    ),
    Answer(
        "sums set to zero for each tile",
        "result",
        (
            ("    for i in range(TM):\n        for j in range(TN):\n            sums[i, j] = zero\n", ""),
            (
                "        for k in range(BK):\n",
                "        for i in range(TM):\n            for j in range(TN):\n                sums[i, j] = zero\n"
                "        for k in range(BK):\n",
            ),
        ),
        mistake="only the last tile's terms were kept",
    ),
    Answer(
        "seven coordinates of eight",
        "result",
        (("for k in range(BK)", "for k in range(BK - 1)"),),
        mistake="the last coordinate of each tile were left out",
    ),
    Answer(
        "neighbours read, points apart stored",
        "result",
        (
            ("X_tile[y + i * rows, k]", "X_tile[y * TM + i, k]"),
            ("Y_tile[x + j * columns, k]", "Y_tile[x * TN + j, k]"),
        ),
        mistake="a thread's points were neighbours in the tiles, but not in D",
    ),
    Answer(
        "points of X as far apart as they are many",
        "result",
        (("X_tile[y + i * rows, k]", "X_tile[y + i * TM, k]"),),
        mistake="a thread's points of X were TM apart in the tile, but not in D",
    ),
    Answer(
        "x and y exchanged in the tiles",
        "result",
        (
            ("X_tile[y + i * rows, k]", "X_tile[x + i * columns, k]"),
            ("Y_tile[x + j * columns, k]", "Y_tile[y + j * rows, k]"),
        ),
        mistake="points of X were taken by `x`, and those of Y by `y`",
    ),
    Answer("sums of one thread, places of another", "result", (("top + y + i * rows", "top + y * TM + i"),)),
    Answer(
        "the greatest difference",
        "result",
        ((_TERM, _TERM.replace("+= abs(", "= max(sums[i, j], abs(")[:-1] + ")\n"),),
        mistake="only the largest term were kept",
    ),
    Answer(
        "every third distance is left out",
        "unwritten",
        (("if row < M and col < N:", "if row < M and col < N and j < 3:"),),
    ),
    Answer("sums in float64", "budget", (("array((TM, TN), np.float32)", "array((TM, TN), np.float64)"),)),
    Answer(
        "a thread's points are neighbours",
        "solved",
        (
            ("X_tile[y + i * rows, k]", "X_tile[y * TM + i, k]"),
            ("Y_tile[x + j * columns, k]", "Y_tile[x * TN + j, k]"),
            ("top + y + i * rows, left + x + j * columns", "top + y * TM + i, left + x * TN + j"),
        ),
    ),
)

RIGHT = (
    right(
        "one coordinate of X at a time",
        (_LOAD_X, ""),
        (
            "                for j in range(TN):\n" + _TERM,
            "                a = X_tile[y + i * rows, k]\n                for j in range(TN):\n"
            + _TERM.replace("own_x[i]", "a"),
        ),
    ),
    right(
        "the larger minus the smaller",
        ("abs(own_x[i] - own_y[j])", "max(own_x[i], own_y[j]) - min(own_x[i], own_y[j])"),
    ),
    right(
        "an if for the sign",
        (
            _TERM,
            "                    s = own_x[i] - own_y[j]\n                    sums[i, j] += s if s > zero else -s\n",
        ),
    ),
    right("constants one by one", ("BM, BN, BK, TM, TN = 32, 32, 8, 4, 4", "BM = BN = 32\nBK = 8\nTM = TN = BM // 8")),
    right(
        "sums in one row",
        ("array((TM, TN), np.float32)", "array(16, np.float32)"),
        ("            sums[i, j] = zero", "            sums[i * TN + j] = zero"),
        ("sums[i, j] += abs", "sums[i * TN + j] += abs"),
        ("D[row, col] = sums[i, j]", "D[row, col] = sums[i * TN + j]"),
    ),
)

WRONG = (
    wrong("the longest sum that is published", ("range(0, K, BK)", "range(0, min(K, 48), BK)")),
    wrong("a tile too few", ("range(0, K, BK)", "range(0, K // BK * BK, BK)")),
    wrong(
        "no way longer than 199 blocks", ("D[row, col] = sums[i, j]", "D[row, col] = min(sums[i, j], np.float32(9000))")
    ),
    wrong("an even number of points", ("if row < M and col", "if row < M // 2 * 2 and col")),
    wrong(
        "the root of a square",
        ("BM, BN, BK, TM, TN =", "import math\n\nBM, BN, BK, TM, TN ="),
        ("abs(own_x[i] - own_y[j])", "math.sqrt((own_x[i] - own_y[j]) * (own_x[i] - own_y[j]))"),
    ),
)

SHORTCUTS = (
    shortcut("Y's points from global memory", ("Y_tile[x + j * columns, k]", _GLOBAL_Y)),
    shortcut(
        "Y's points from global memory, not loaded before",
        ("Y_tile[x + j * columns, k]", _GLOBAL_Y),
        (
            "            Y_tile[row, x] = Y[left + row, start + x] if left + row < N and start + x < K else zero\n",
            "            Y_tile[row, x] = zero\n",
        ),
    ),
    shortcut(
        "a load for each term, by atomics",
        (_LOAD_Y, ""),
        ("own_x[i] - own_y[j]", "own_x[i] - cuda.atomic.add(Y_tile, (x + j * columns, k), zero)"),
    ),
)

"""Other answers to three-gradients."""

from . import Answer, right, shortcut, wrong

_LOADS = "            n, gradient = (x[row, c] - mean[row]) * row_scale, g[row, c]\n"
_DX = "row_scale * (h - (sum_h + n * sum_hn) / np.float32(columns))"
_OF_WEIGHT, _OF_BIAS = "        of_weight += gradient * n\n", "        of_bias += gradient\n"
_FIRST = "            sums[0, warp], sums[1, warp] = sum_h, sum_hn\n        cuda.syncthreads()\n"
_SECOND = "        cuda.syncthreads()\n        if c < columns:\n            dx"
_OWN = "    own_weight = weight[c] if c < columns else zero\n"
_SUMS = "            sum_h += sums[0, i]\n            sum_hn += sums[1, i]\n"
_SHUFFLES = """        for away in (16, 8, 4, 2, 1):
            sum_h += cuda.shfl_down_sync(0xFFFFFFFF, sum_h, away)
            sum_hn += cuda.shfl_down_sync(0xFFFFFFFF, sum_hn, away)
"""

_BY_ONE_THREAD = """
@cuda.jit
def gradients(x, g, weight, mean, scale, dx, dweight, dbias):
    rows, columns = x.shape
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        for c in range(columns):
            dweight[b, c] = dbias[b, c] = np.float32(0)
        for row in range(b, rows, cuda.gridDim.x):
            sum_h = sum_hn = np.float32(0)
            for c in range(columns):
                n = (x[row, c] - mean[row]) * scale[row]
                sum_h += weight[c] * g[row, c]
                sum_hn += weight[c] * g[row, c] * n
                dweight[b, c] += g[row, c] * n
                dbias[b, c] += g[row, c]
            for c in range(columns):
                n = (x[row, c] - mean[row]) * scale[row]
                dx[row, c] = scale[row] * (weight[c] * g[row, c] - (sum_h + n * sum_hn) / np.float32(columns))
"""

VARIANTS = (
    Answer("x and g read again for dx", "budget", (("row_scale * (h - (", "row_scale * (own_weight * g[row, c] - ("),)),
    Answer(
        "sums of the columns in memory",
        "budget",
        ((_OF_BIAS, _OF_BIAS + "        if c < columns:\n            dbias[b, c] = of_bias\n"),),
    ),
    Answer("no first barrier", "race", ((_FIRST, _FIRST.replace("        cuda.syncthreads()\n", "")),)),
    Answer("no second barrier", "race", ((_SECOND, _SECOND.replace("        cuda.syncthreads()\n", "")),)),
    Answer("three barriers", "budget", ((_SECOND, "        cuda.syncthreads()\n" + _SECOND),)),
    Answer(
        "threads past the last column load",
        "bounds",
        (("        if c < columns:\n            n, g", "        if c >= 0:\n            n, g"),),
    ),
    Answer("threads past the last column leave", "shuffle", ((_OWN, "    if c >= columns:\n        return\n" + _OWN),)),
    Answer("in float64", "budget", (("n = gradient = zero", "n = gradient = 0.0"),)),
    Answer(
        "no weights in dx",
        "result",
        (("h = own_weight * gradient", "h = gradient"),),
        mistake="the weights were left out",
    ),
    Answer(
        "one term of dx",
        "result",
        (("(sum_h + n * sum_hn)", "n * sum_hn"),),
        mistake="the mean of h were not subtracted",
    ),
    Answer(
        "the other term of dx",
        "result",
        (("(sum_h + n * sum_hn)", "sum_h"),),
        mistake="the part along n were not subtracted",
    ),
    Answer(
        "sums, not means",
        "result",
        ((_DX, "row_scale * (h - (sum_h + n * sum_hn))"),),
        mistake="the sums over a row were taken, not the means",
    ),
    Answer(
        "dweight with weights",
        "result",
        ((_OF_WEIGHT, "        of_weight += gradient * own_weight * n\n"),),
        mistake="g were weighted in dweight",
    ),
    Answer(
        "dbias with weights",
        "result",
        ((_OF_BIAS, "        of_bias += gradient * own_weight\n"),),
        mistake="g were weighted in dbias",
    ),
    Answer(
        "the last row of a block",
        "result",
        ((_OF_WEIGHT, "        of_weight = gradient * n\n"), (_OF_BIAS, "        of_bias = gradient\n")),
        mistake="only the last row of each block were added up",
    ),
    Answer(
        "the sums of warp 0",
        "result",
        ((_SUMS, "            sum_h += sums[0, 0]\n            sum_hn += sums[1, 0]\n"),),
    ),
    Answer("no scale", "result", ((_DX, _DX.replace("row_scale * ", "")),)),
    Answer(
        "rows of the grid left out",
        "unwritten",
        (("range(b, rows, cuda.gridDim.x)", "range(b, rows, 2 * cuda.gridDim.x)"),),
    ),
    Answer(
        "two arrays, used alternately",
        "solved",
        (
            ("cuda.shared.array((2, 32), np.float32)", "cuda.shared.array((2, 2, 32), np.float32)"),
            (
                "sums[0, warp], sums[1, warp] =",
                "sums[row // cuda.gridDim.x % 2, 0, warp], sums[row // cuda.gridDim.x % 2, 1, warp] =",
            ),
            (
                _SUMS,
                "            sum_h += sums[row // cuda.gridDim.x % 2, 0, i]\n"
                "            sum_hn += sums[row // cuda.gridDim.x % 2, 1, i]\n",
            ),
            (_SECOND, _SECOND.replace("        cuda.syncthreads()\n", "")),
        ),
    ),
)

RIGHT = (
    right("sums in all lanes", (_SHUFFLES, _SHUFFLES.replace("shfl_down_sync", "shfl_xor_sync"))),
    right(
        "the mean of each sum",
        (_DX, "row_scale * (h - sum_h / np.float32(columns) - n * (sum_hn / np.float32(columns)))"),
    ),
    right(
        "multiplied out",
        (
            _DX,
            "(h * row_scale - sum_h * row_scale / np.float32(columns) - n * sum_hn * row_scale / np.float32(columns))",
        ),
    ),
    right(
        "a choice in place of an if",
        (
            "        n = gradient = zero\n        row_scale = scale[row]\n        if c < columns:\n" + _LOADS,
            "        row_scale = scale[row]\n"
            "        n = (x[row, c] - mean[row]) * row_scale if c < columns else zero\n"
            "        gradient = g[row, c] if c < columns else zero\n",
        ),
    ),
    right(
        "the mean loaded first",
        (_LOADS, "            m = mean[row]\n            n, gradient = (x[row, c] - m) * row_scale, g[row, c]\n"),
    ),
)

WRONG = (
    wrong(
        "halves of the sums in turn, for 16 warps",
        (
            "            sums[0, warp], sums[1, warp] = sum_h, sum_hn\n",
            "            sums[0, (warp + turn) % 32], sums[1, (warp + turn) % 32] = sum_h, sum_hn\n",
        ),
        (
            "            sum_h += sums[0, i]\n            sum_hn += sums[1, i]\n        cuda.syncthreads()\n",
            """            sum_h += sums[0, (i + turn) % 32]
            sum_hn += sums[1, (i + turn) % 32]
        turn = 16 - turn
""",
        ),
        ("    of_weight = of_bias = zero\n", "    of_weight = of_bias = zero\n    turn = 0\n"),
    ),
    wrong("the rows that are published", ("range(b, rows, cuda.gridDim.x)", "range(b, min(rows, 20), cuda.gridDim.x)")),
    wrong(
        "stored in the loop", ("    if c < columns:\n        dweight", "        if c < columns:\n            dweight")
    ),
    wrong("four warps", ("for i in range(warps)", "for i in range(min(warps, 4))")),
    wrong(
        "the sums of four blocks",
        (
            "dweight[b, c], dbias[b, c] = of_weight, of_bias",
            "dweight[b, c], dbias[b, c] = of_weight, of_bias if b < 4 else zero",
        ),
    ),
)

SHORTCUTS = (
    shortcut("by one thread", cell=_BY_ONE_THREAD),
    shortcut("in double precision", ("of_weight = of_bias = zero", "of_weight = of_bias = 0.0")),
    shortcut(
        "x read twice",
        (
            _OF_WEIGHT,
            "        if c < columns:\n            of_weight += gradient * (x[row, c] - mean[row]) * scale[row]\n",
        ),
    ),
)

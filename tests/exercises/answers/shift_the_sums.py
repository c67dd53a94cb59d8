"""Other answers to shift-the-sums."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

_FIRST = "    first_x, first_y = X[row, 0], Y[row, 0]\n"

_TAKEN = "x, y = X[row, i] - first_x, Y[row, i] - first_y"

_RESULT = "result[row] = (sum_xy - sum_x * sum_y / count) / count"

_TWO_PASSES = """    for i in range(lane, X.shape[1], 32):
        sum_x += X[row, i]
        sum_y += Y[row, i]
    first_x = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_y), 0) / count
    sum_x = sum_y = np.float32(0)
"""

_HANDED_OUT = """    first_x = first_y = np.float32(0)
    if lane == 0:
        first_x, first_y = X[row, X.shape[1] - 1], Y[row, X.shape[1] - 1]
    first_x, first_y = cuda.shfl_sync(0xFFFFFFFF, first_x, 0), cuda.shfl_sync(0xFFFFFFFF, first_y, 0)
"""

VARIANTS = (
    Answer("the bug itself", "result", ((_FIRST, ""), (_TAKEN, "x, y = X[row, i], Y[row, i]"))),
    Answer("x alone", "result", ((_TAKEN, "x, y = X[row, i] - first_x, Y[row, i]"),)),
    Answer("y alone", "result", ((_TAKEN, "x, y = X[row, i], Y[row, i] - first_y"),)),
    Answer("both by the shift of x", "result", ((_TAKEN, "x, y = X[row, i] - first_x, Y[row, i] - first_x"),)),
    Answer("the first row's elements", "result", ((_FIRST, "    first_x, first_y = X[0, 0], Y[0, 0]\n"),)),
    Answer("a constant", "result", ((_FIRST, "    first_x = first_y = np.float32(30000)\n"),)),
    Answer(
        "each lane by its own first element",
        "result",
        ((_FIRST, "    at = min(lane, X.shape[1] - 1)\n    first_x, first_y = X[row, at], Y[row, at]\n"),),
    ),
    Answer(
        "the mean of the products alone",
        "result",
        ((_RESULT, "result[row] = sum_xy / count"),),
        mistake="the product of the means were not subtracted",
    ),
    Answer(
        "of a sample",
        "result",
        ((_RESULT, f"{_RESULT[: -len('count')]}(count - np.float32(1))"),),
        mistake="the count were one less",
    ),
    Answer("two passes", "budget", ((_FIRST, _TWO_PASSES),)),
    Answer("in float64", "budget", ((_FIRST, ""), (_TAKEN, "x, y = np.float64(X[row, i]), np.float64(Y[row, i])"))),
    Answer(
        "the shift loaded in the loop",
        "budget",
        ((_FIRST, ""), (_TAKEN, "x, y = X[row, i] - X[row, 0], Y[row, i] - Y[row, 0]")),
    ),
    Answer("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
    Answer("the last element, handed out", "solved", ((_FIRST, _HANDED_OUT),)),
    Answer("an element in the middle", "solved", ((_FIRST, _FIRST.replace(", 0]", ", X.shape[1] // 2]")),)),
    Answer(
        "the product of sums, not divided",
        "result",
        (("sum_x * sum_y / count", "sum_x * sum_y"),),
        mistake="the product of the sums were not divided by the count",
    ),
    Answer(
        "not divided",
        "result",
        ((_RESULT, _RESULT.removesuffix(" / count")),),
        mistake="the sum of products were not divided by the count",
    ),
)

RIGHT = (
    right("from the last element on", ("range(lane, X.shape[1], 32)", "range(X.shape[1] - 1 - lane, -1, -32)")),
    right(
        "by both means",
        ("(sum_xy - sum_x * sum_y / count) / count", "sum_xy / count - sum_x / count * (sum_y / count)"),
    ),
    right("the first element left out", ("range(lane, X.shape[1], 32)", "range(lane + 1, X.shape[1], 32)")),
    right(
        "the last element, by shuffles",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    at = X.shape[1] - 1
    first_x = cuda.shfl_sync(0xFFFFFFFF, X[row, at], 31)
    first_y = cuda.shfl_sync(0xFFFFFFFF, Y[row, at], 31)
""",
        ),
    ),
    right(
        "means of distances",
        cell="""
@cuda.jit
def covariance(X, Y, result):
    row, lane, N = cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    at_x = X[row, lane % N]
    at_y = Y[row, lane % N]
    at_x, at_y = cuda.shfl_sync(0xFFFFFFFF, at_x, 0), cuda.shfl_sync(0xFFFFFFFF, at_y, 0)
    a = b = ab = np.float32(0)
    i = lane
    while i < N:
        u = X[row, i] - at_x
        v = Y[row, i] - at_y
        a, b, ab = a + u, b + v, ab + u * v
        i += cuda.blockDim.x
    for away in (1, 2, 4, 8, 16):
        a += cuda.shfl_xor_sync(0xFFFFFFFF, a, away)
        b += cuda.shfl_xor_sync(0xFFFFFFFF, b, away)
        ab += cuda.shfl_xor_sync(0xFFFFFFFF, ab, away)
    a, b, ab = a / np.float32(N), b / np.float32(N), ab / np.float32(N)
    if lane == 31:
        result[row] = ab - a * b
""",
    ),
    right(
        "lanes merged by Chan",
        cell="""
@cuda.jit
def covariance(X, Y, result):
    row, lane, N = cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    fx, fy = X[row, 0], Y[row, 0]
    n = mx = my = m = np.float32(0)
    for i in range(lane, N, 32):
        n += np.float32(1)
        dx = X[row, i] - fx - mx
        dy = Y[row, i] - fy - my
        mx += dx / n
        my += dy / n
        m += dx * (dy - dy / n)
    for away in (16, 8, 4, 2, 1):
        k = cuda.shfl_xor_sync(0xFFFFFFFF, n, away)
        ox = cuda.shfl_xor_sync(0xFFFFFFFF, mx, away)
        oy = cuda.shfl_xor_sync(0xFFFFFFFF, my, away)
        o = cuda.shfl_xor_sync(0xFFFFFFFF, m, away)
        total = n + k
        if total > np.float32(0):
            dx, dy = ox - mx, oy - my
            m += o + dx * dy * (n * k / total)
            mx += dx * (k / total)
            my += dy * (k / total)
        n = total
    if lane == 0:
        result[row] = m / n
""",
    ),
    right(
        "one shift at a time",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    first_x = X[row, X.shape[1] // 3]
    first_y = Y[row, X.shape[1] - 1]
""",
        ),
    ),
)

WRONG = (
    wrong("the columns that are published", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 200), 32)")),
    wrong("an even number of columns", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] // 2 * 2, 32)")),
    wrong("the rows that are published", ("    if lane == 0:", "    if lane == 0 and row < 20:")),
    wrong("shifts above zero", ("X[row, 0], Y[row, 0]", "abs(X[row, 0]), abs(Y[row, 0])")),
    wrong("the first row's shift of y", ("X[row, 0], Y[row, 0]", "X[row, 0], Y[0, 0]")),
    wrong("no covariance below zero", ("result[row] = (sum", "result[row] = abs(sum")),
    wrong("the row before", ("X[row, 0], Y[row, 0]", "X[max(row - 1, 0), 0], Y[row, 0]")),
    wrong(
        "no shift of x in long rows",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    first_x, first_y = X[row, 0], Y[row, 0]
    if X.shape[1] > 400:
        first_x = np.float32(0)
""",
        ),
    ),
    wrong(
        "the last ragged elements lost beyond 128",
        (
            "range(lane, X.shape[1], 32)",
            "range(lane, X.shape[1] if X.shape[1] < 128 else X.shape[1] // 32 * 32, 32)",
        ),
    ),
    wrong("the means' product with the wrong count", ("count) / count", "(count + np.float32(1))) / count")),
    wrong("of a sample for long rows", ("/ count) / count", "/ count) / (count - np.float32(X.shape[1] > 150))")),
    wrong("four rounds of the warp", ("(16, 8, 4, 2, 1)", "(16, 8, 4, 2)")),
    wrong("count from the block", ("np.float32(X.shape[1])", "np.float32((X.shape[1] + 31) // 32 * 32)")),
    wrong(
        "not less than -1",
        ("result[row] = (", "result[row] = max(np.float32(-1), ("),
        ("count) / count", "count) / count)"),
    ),
    wrong(
        "no covariance above a hundred",
        ("result[row] = (", "result[row] = min(np.float32(100), ("),
        ("count) / count", "count) / count)"),
    ),
    wrong("only rows above zero", ("X[row, 0], Y[row, 0]", "max(X[row, 0], np.float32(0)), Y[row, 0]")),
    wrong("a row's last shift for the first", ("X[row, 0], Y[row, 0]", "X[row, min(lane, 1)], Y[row, 0]")),
    wrong(
        "shifts by the thousand",
        (
            "X[row, 0], Y[row, 0]",
            "np.float32(int(X[row, 0]) // 1000 * 1000), np.float32(int(Y[row, 0]) // 1000 * 1000)",
        ),
    ),
    wrong(
        "x y without the sums",
        (
            "(sum_xy - sum_x * sum_y / count) / count",
            "(sum_xy - sum_x * sum_y / count / np.float32(1.001)) / count",
        ),
    ),
    wrong(
        "a shift that is an integer",
        ("X[row, 0], Y[row, 0]", "np.float32(np.int16(X[row, 0])), np.float32(np.int16(Y[row, 0]))"),
    ),
    wrong("absolute distances", ("X[row, i] - first_x,", "abs(X[row, i] - first_x),")),
    wrong("sixteen lanes", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] if lane < 16 else 0, 16)")),
)

ROW_IN_SCALARS = (
    """@cuda.jit
def covariance(X, Y, result):
    row, lane, N = cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    count, x0, y0 = np.float32(N), X[row, 0], Y[row, 0]
    x, y, xy = np.float32(0), np.float32(0), np.float32(0)
"""
    + for_each_scalar(
        40,
        """    x_# = X[row, lane + 32 * #] - x0 if lane + 32 * # < N else np.float32(0)
    y_# = Y[row, lane + 32 * #] - y0 if lane + 32 * # < N else np.float32(0)
    x += x_#
    y += y_#
""",
    )
    + """    for away in (16, 8, 4, 2, 1):
        x += cuda.shfl_xor_sync(0xFFFFFFFF, x, away)
        y += cuda.shfl_xor_sync(0xFFFFFFFF, y, away)
    x, y = x / count, y / count
"""
    + for_each_scalar(
        40,
        """    if lane + 32 * # < N:
        xy += (x_# - x) * (y_# - y)
""",
    )
    + """    for away in (16, 8, 4, 2, 1):
        xy += cuda.shfl_xor_sync(0xFFFFFFFF, xy, away)
    if lane == 0:
        result[row] = xy / count
"""
)


SHORTCUTS = (
    shortcut(
        "two passes, the first by atomics",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    for i in range(lane, X.shape[1], 32):
        sum_x += cuda.atomic.add(X, (row, i), np.float32(0))
        sum_y += cuda.atomic.add(Y, (row, i), np.float32(0))
    first_x = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_y), 0) / count
    sum_x = sum_y = np.float32(0)
""",
        ),
    ),
    shortcut(
        "products in float64",
        ("X[row, i] - first_x, Y[row, i] - first_y", "X[row, i], np.float64(Y[row, i])"),
        ("    first_x, first_y = X[row, 0], Y[row, 0]\n", "    sum_xy = 0.0\n"),
    ),
    shortcut(
        "in complex numbers of 16 bytes",
        ("X[row, i] - first_x, Y[row, i] - first_y", "complex(X[row, i], 0), complex(Y[row, i], 0)"),
        ("    first_x, first_y = X[row, 0], Y[row, 0]\n", "    sum_x = sum_y = sum_xy = 0j\n"),
        (
            "    sum_x, sum_y, sum_xy = warp_sum",
            "    sum_x, sum_y, sum_xy = sum_x.real, sum_y.real, sum_xy.real\n    sum_x, sum_y, sum_xy = warp_sum",
        ),
    ),
    shortcut("another's kernel", cell="from labkit.norm.batch.s05_shifted import shifted as covariance\n"),
    shortcut("lane 0 alone", ("range(lane, X.shape[1], 32)", "range(0, X.shape[1] if lane == 0 else 0, 1)")),
    shortcut(
        "the row kept in shared memory",
        cell="""
@cuda.jit
def covariance(X, Y, result):
    xs, ys = cuda.shared.array(4096, np.float32), cuda.shared.array(4096, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    N = X.shape[1]
    first_x, first_y = X[row, 0], Y[row, 0]
    sx = sy = sxy = np.float32(0)
    for i in range(lane, N, 32):
        xs[i], ys[i] = X[row, i], Y[row, i]
        sx += xs[i] - first_x
        sy += ys[i] - first_y
    for away in (16, 8, 4, 2, 1):
        sx += cuda.shfl_xor_sync(0xFFFFFFFF, sx, away)
        sy += cuda.shfl_xor_sync(0xFFFFFFFF, sy, away)
    mx, my = first_x + sx / np.float32(N), first_y + sy / np.float32(N)
    for i in range(lane, N, 32):
        sxy += (xs[i] - mx) * (ys[i] - my)
    for away in (16, 8, 4, 2, 1):
        sxy += cuda.shfl_xor_sync(0xFFFFFFFF, sxy, away)
    if lane == 0:
        result[row] = sxy / np.float32(N)
""",
    ),
    shortcut(
        "the row kept in threads' arrays",
        cell="""
@cuda.jit
def covariance(X, Y, result):
    xs, ys = cuda.local.array(256, np.float32), cuda.local.array(256, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    N = X.shape[1]
    first_x, first_y = X[row, 0], Y[row, 0]
    sx = sy = sxy = np.float32(0)
    for i in range(lane, N, 32):
        xs[i // 32], ys[i // 32] = X[row, i] - first_x, Y[row, i] - first_y
        sx += xs[i // 32]
        sy += ys[i // 32]
    for away in (16, 8, 4, 2, 1):
        sx += cuda.shfl_xor_sync(0xFFFFFFFF, sx, away)
        sy += cuda.shfl_xor_sync(0xFFFFFFFF, sy, away)
    mx, my = sx / np.float32(N), sy / np.float32(N)
    for i in range(lane, N, 32):
        sxy += (xs[i // 32] - mx) * (ys[i // 32] - my)
    for away in (16, 8, 4, 2, 1):
        sxy += cuda.shfl_xor_sync(0xFFFFFFFF, sxy, away)
    if lane == 0:
        result[row] = sxy / np.float32(N)
""",
    ),
    shortcut(
        "in whole numbers of 64 bits",
        cell="""
@cuda.jit
def covariance(X, Y, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    N = X.shape[1]
    sx, sy, sxy = 0, 0, 0
    for i in range(lane, N, 32):
        x, y = int(X[row, i] * np.float32(8192)), int(Y[row, i] * np.float32(8192))
        sx += x
        sy += y
        sxy += x * y
    for away in (16, 8, 4, 2, 1):
        sx += cuda.shfl_xor_sync(0xFFFFFFFF, sx, away)
        sy += cuda.shfl_xor_sync(0xFFFFFFFF, sy, away)
        sxy += cuda.shfl_xor_sync(0xFFFFFFFF, sxy, away)
    if lane == 0:
        result[row] = np.float32(N * sxy - sx * sy) / np.float32(N) / np.float32(N) / np.float32(8192 * 8192)
""",
    ),
    shortcut(
        "float64 by atomics in shared memory",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    wide = cuda.shared.array(1, np.float64)
    if lane == 0:
        wide[0] = 0
    cuda.syncthreads()
""",
        ),
        ("X[row, i] - first_x, Y[row, i] - first_y", "X[row, i], Y[row, i]"),
        ("        sum_xy += x * y\n", "        cuda.atomic.add(wide, 0, np.float64(x) * np.float64(y))\n"),
        (
            "    if lane == 0:\n        result",
            """    cuda.syncthreads()
    sum_xy = np.float32(wide[0] / X.shape[1])
    if lane == 0:
        result""",
        ),
    ),
    shortcut(
        "products by a float64 fma",
        ("X[row, i] - first_x, Y[row, i] - first_y", "X[row, i], Y[row, i]"),
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            "    sum_xy = np.float64(0)\n    wide_x = wide_y = np.float64(0)\n",
        ),
        (
            "        sum_x += x\n        sum_y += y\n        sum_xy += x * y\n",
            """        sum_xy = cuda.fma(np.float64(x), np.float64(y), sum_xy)
        wide_x = cuda.fma(np.float64(x), np.float64(1), wide_x)
        wide_y = cuda.fma(np.float64(y), np.float64(1), wide_y)
""",
        ),
        (
            """    sum_x, sum_y, sum_xy = warp_sum(sum_x), warp_sum(sum_y), warp_sum(sum_xy)
""",
            """    for away in (16, 8, 4, 2, 1):
        sum_xy = cuda.fma(cuda.shfl_xor_sync(0xFFFFFFFF, sum_xy, away), np.float64(1), sum_xy)
        wide_x = cuda.fma(cuda.shfl_xor_sync(0xFFFFFFFF, wide_x, away), np.float64(1), wide_x)
        wide_y = cuda.fma(cuda.shfl_xor_sync(0xFFFFFFFF, wide_y, away), np.float64(1), wide_y)
    sum_xy = cuda.fma(-wide_x * np.float32(1), wide_y, sum_xy * X.shape[1])
""",
        ),
        ("(sum_xy - sum_x * sum_y / count) / count", "np.float32(sum_xy) / count / count"),
    ),
    shortcut(
        "two passes, the first by vectors",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    for i in range(4 * lane, X.shape[1] // 4 * 4, 128):
        a, b, c, d = ptx.load4(X, (row, i))
        sum_x += a + b + c + d
    first_x = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = Y[row, 0]
    sum_x = sum_y = np.float32(0)
""",
        ),
    ),
    shortcut(
        "two passes, the first by copies",
        (
            "    first_x, first_y = X[row, 0], Y[row, 0]\n",
            """    kept = cuda.shared.array(4096, np.float32)
    for i in range(lane, X.shape[1], 32):
        ptx.cp_async(kept, i, X, (row, i), 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncwarp()
    for i in range(lane, X.shape[1], 32):
        sum_x += kept[i] - kept[0]
    first_x = kept[0] + cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = Y[row, 0]
    sum_x = sum_y = np.float32(0)
""",
        ),
    ),
    shortcut("two passes over the row in 80 scalars per lane", cell=ROW_IN_SCALARS),
)

"""Other answers to once-through-memory."""

from . import Answer, right, shortcut, wrong

_LOADS = "        x, y = X[row, col], Y[row, col]\n"

_THREE_LOOPS = """    for col in range(lane, X.shape[1], 32):
        xy += X[row, col] * Y[row, col]
    for col in range(lane, X.shape[1], 32):
        xx += X[row, col] * X[row, col]
    for col in range(lane, X.shape[1], 32):
        yy += Y[row, col] * Y[row, col]
"""

_SOLVED = f"""    for col in range(lane, X.shape[1], 32):
{_LOADS}        xy += x * y
        xx += x * x
        yy += y * y
"""

_TWO_LOOPS = """    for col in range(lane, X.shape[1], 32):
        x, y = X[row, col], Y[row, col]
        xy += x * y
        xx += x * x
    for col in range(lane, X.shape[1], 32):
        y = Y[row, col]
        yy += y * y
"""

_BACKWARDS = """    col = X.shape[1] - 1 - lane
    while col >= 0:
        x, y = X[row, col], Y[row, col]
        xy += x * y
        xx += x * x
        yy += y * y
        col -= 32
"""

THREE_LOOPS = """@cuda.jit
def three_sums(X, Y, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    xy = xx = yy = np.float32(0)
    for col in range(lane, X.shape[1], 32):
        x, y = X[row, col], Y[row, col]
        xy += x * y
    for col in range(lane, X.shape[1], 32):
        x = AGAIN(X, (row, col), np.float32(0))
        xx += x * x
    for col in range(lane, X.shape[1], 32):
        y = AGAIN(Y, (row, col), np.float32(0))
        yy += y * y
    for away in (16, 8, 4, 2, 1):
        xy += cuda.shfl_down_sync(0xFFFFFFFF, xy, away)
        xx += cuda.shfl_down_sync(0xFFFFFFFF, xx, away)
        yy += cuda.shfl_down_sync(0xFFFFFFFF, yy, away)
    if lane == 0:
        out[row, 0], out[row, 1], out[row, 2] = xy, xx, yy
"""

VARIANTS = (
    Answer("three passes", "budget", ((_SOLVED, _THREE_LOOPS),)),
    Answer("two passes", "budget", ((_SOLVED, _TWO_LOOPS),)),
    Answer("one pass that loads again and again", "budget", (("xx += x * x", "xx += X[row, col] * X[row, col]"),)),
    Answer("the rows in float64", "budget", (("xy = xx = yy = np.float32(0)", "xy = xx = yy = 0.0"),)),
    Answer(
        "the first 32 columns",
        "result",
        (("range(lane, X.shape[1], 32)", "range(lane, 32, 32)"),),
        mistake="only the first 32 columns were added",
    ),
    Answer(
        "a length of the book's",
        "result",
        (("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 96), 32)"),),
    ),
    Answer("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
    Answer(
        "two sums exchanged",
        "result",
        (("xx += x * x", "xx += y * y"), ("yy += y * y", "yy += x * x")),
        mistake="the sums of X * X and of Y * Y were exchanged",
    ),
    Answer(
        "at least 32 columns",
        "bounds",
        (
            (
                "    xy = xx = yy = np.float32(0)\n",
                "    x, y = X[row, lane], Y[row, lane]\n    xy, xx, yy = x * y, x * x, y * y\n",
            ),
            ("range(lane, X.shape[1], 32)", "range(lane + 32, X.shape[1], 32)"),
        ),
    ),
    Answer("from the other end", "solved", ((_SOLVED, _BACKWARDS),)),
    Answer(
        "the lanes' sums not put together",
        "result",
        (("    xy, xx, yy = warp_sum(xy), warp_sum(xx), warp_sum(yy)\n", ""),),
        mistake="lane 0 stored its own sums",
    ),
    Answer(
        "columns of lane 0",
        "result",
        (("range(lane, X.shape[1], 32)", "range(0, X.shape[1], 32)"),),
        mistake="all lanes took the columns of lane 0",
    ),
    Answer(
        "all columns",
        "result",
        (("range(lane, X.shape[1], 32)", "range(X.shape[1])"),),
        mistake="each lane took all columns",
    ),
    Answer("no warp sum of X * Y", "result", (("warp_sum(xy)", "xy"),), mistake="lane 0 stored its own sum of X * Y"),
    Answer("no warp sum of X * X", "result", (("warp_sum(xx)", "xx"),), mistake="lane 0 stored its own sum of X * X"),
    Answer("no warp sum of Y * Y", "result", (("warp_sum(yy)", "yy"),), mistake="lane 0 stored its own sum of Y * Y"),
    Answer(
        "loaded before the loop",
        "result",
        (
            ("        x, y = X[row, col], Y[row, col]\n", ""),
            ("    for col in", "    x, y = X[row, lane], Y[row, lane]\n    for col in"),
        ),
        mistake="each lane added its first columns again and again",
    ),
)

RIGHT = (right("products in another order", ("        xy += x * y\n", "        xy = xy + y * x\n")),)

WRONG = (
    wrong("the columns that are published", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 200), 32)")),
    wrong("an even number of columns", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] // 2 * 2, 32)")),
    wrong("the rows that are published", ("    if lane == 0:", "    if lane == 0 and row < 20:")),
    wrong(
        "nothing where x is 0",
        ("        xy += x * y\n", "        if x == 0:\n            continue\n        xy += x * y\n"),
    ),
    wrong("the first 512 columns", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 512), 32)")),
)

SHORTCUTS = (
    shortcut("three passes, two by atomics", cell=THREE_LOOPS.replace("AGAIN", "cuda.atomic.add")),
    shortcut(
        "three passes, two by other atomics",
        cell=THREE_LOOPS.replace(
            "AGAIN(X, (row, col), np.float32(0))", "cuda.atomic.max(X, (row, col), np.float32(-1e30))"
        ).replace("AGAIN", "cuda.atomic.add"),
    ),
    shortcut("one lane of each warp", ("range(lane, X.shape[1], 32)", "range(X.shape[1] * (lane == 0))")),
)

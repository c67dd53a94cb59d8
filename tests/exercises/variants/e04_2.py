"""Other answers to exercise 04.2."""

from . import Variant

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

VARIANTS = (
    Variant("three passes", "budget", ((_SOLVED, _THREE_LOOPS),)),
    Variant("two passes", "budget", ((_SOLVED, _TWO_LOOPS),)),
    Variant("one pass that loads again and again", "budget", (("xx += x * x", "xx += X[row, col] * X[row, col]"),)),
    Variant("the rows in float64", "budget", (("xy = xx = yy = np.float32(0)", "xy = xx = yy = 0.0"),)),
    Variant("the first 32 columns", "result", (("range(lane, X.shape[1], 32)", "range(lane, 32, 32)"),)),
    Variant(
        "a length of the book's",
        "result",
        (("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 96), 32)"),),
    ),
    Variant("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
    Variant("two sums exchanged", "result", (("xx += x * x", "xx += y * y"), ("yy += y * y", "yy += x * x"))),
    Variant(
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
    Variant("from the other end", "solved", ((_SOLVED, _BACKWARDS),)),
)

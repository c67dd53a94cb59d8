"""Other answers to exercise 12.2."""

from . import Variant

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
    Variant("the bug itself", "result", ((_FIRST, ""), (_TAKEN, "x, y = X[row, i], Y[row, i]"))),
    Variant("x alone", "result", ((_TAKEN, "x, y = X[row, i] - first_x, Y[row, i]"),)),
    Variant("y alone", "result", ((_TAKEN, "x, y = X[row, i], Y[row, i] - first_y"),)),
    Variant("both by the shift of x", "result", ((_TAKEN, "x, y = X[row, i] - first_x, Y[row, i] - first_x"),)),
    Variant("the first row's elements", "result", ((_FIRST, "    first_x, first_y = X[0, 0], Y[0, 0]\n"),)),
    Variant("a constant", "result", ((_FIRST, "    first_x = first_y = np.float32(30000)\n"),)),
    Variant(
        "each lane by its own first element",
        "result",
        ((_FIRST, "    at = min(lane, X.shape[1] - 1)\n    first_x, first_y = X[row, at], Y[row, at]\n"),),
    ),
    Variant("the mean of the products alone", "result", ((_RESULT, "result[row] = sum_xy / count"),)),
    Variant("of a sample", "result", ((_RESULT, f"{_RESULT[: -len('count')]}(count - np.float32(1))"),)),
    Variant("two passes", "budget", ((_FIRST, _TWO_PASSES),)),
    Variant("in float64", "budget", ((_FIRST, ""), (_TAKEN, "x, y = np.float64(X[row, i]), np.float64(Y[row, i])"))),
    Variant(
        "the shift loaded in the loop",
        "budget",
        ((_FIRST, ""), (_TAKEN, "x, y = X[row, i] - X[row, 0], Y[row, i] - Y[row, 0]")),
    ),
    Variant("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
    Variant("the last element, handed out", "solved", ((_FIRST, _HANDED_OUT),)),
    Variant("an element in the middle", "solved", ((_FIRST, _FIRST.replace(", 0]", ", X.shape[1] // 2]")),)),
)

"""Other answers to exercise 12.3."""

from . import Variant

_VALUE = "value = (x[row, c] - centre) * scale + shift + z[row, c]"
_STORED = "y[row, c] = max(value, np.float32(0))"
_BEFORE = "        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)\n"

_IN_TWO = """            value = (x[row, c] - centre) * scale + shift
            y[row, c] = value
        for row in range(first, rows, threads):
            y[row, c] = max(y[row, c] + z[row, c], np.float32(0))
"""

_FOLDED = """
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, row = cuda.grid(2)
    if c >= x.shape[1]:
        return
    scale = weight[c] / sqrt(variance[c] + eps)
    shift = bias[c] - mean[c] * scale
    while row < x.shape[0]:
        value = x[row, c] * scale + (shift + z[row, c])
        y[row, c] = value if value > np.float32(0) else np.float32(0)
        row += cuda.gridsize(2)[1]
"""

VARIANTS = (
    Variant(
        "ReLU before the residual",
        "result",
        ((_VALUE, "value = (x[row, c] - centre) * scale + shift"), (_STORED, _STORED + " + z[row, c]")),
    ),
    Variant("no ReLU", "result", ((_STORED, "y[row, c] = value"),)),
    Variant("no residual", "result", ((_VALUE, _VALUE.removesuffix(" + z[row, c]")),)),
    Variant("the residual scaled", "result", ((_VALUE, "value = (x[row, c] - centre + z[row, c]) * scale + shift"),)),
    Variant("no root", "result", (("sqrt(variance[c] + eps)", "(variance[c] + eps)"),)),
    Variant("eps forgotten", "result", (("sqrt(variance[c] + eps)", "sqrt(variance[c])"),)),
    Variant("eps outside of the root", "result", (("sqrt(variance[c] + eps)", "(sqrt(variance[c]) + eps)"),)),
    Variant("numbers of the row", "bounds", ((_VALUE, _VALUE.replace("shift", "bias[row + channels]")),)),
    Variant(
        "the first rows alone",
        "unwritten",
        (("range(first, rows, threads)", "range(first, min(rows, threads), threads)"),),
    ),
    Variant("in two loops", "budget", ((f"            {_VALUE}\n            {_STORED}", _IN_TWO.rstrip()),)),
    Variant("stored, then rectified", "budget", ((_STORED, f"y[row, c] = value\n            {_STORED}"),)),
    Variant(
        "the channel's numbers in the loop",
        "budget",
        ((_BEFORE, ""), (_VALUE, f"{_BEFORE.strip()}\n            {_VALUE}")),
    ),
    Variant("in float64", "budget", ((_VALUE, _VALUE.replace("shift", "np.float64(shift)")),)),
    Variant("mean and bias folded", "solved", cell=_FOLDED),
)

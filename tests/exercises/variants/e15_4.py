"""Other answers to exercise 15.4."""

from . import Variant

_MOVED = "total = total * (scale / size) * (scale / size) + np.float32(1)"
_ADDED = "total += (size / scale) * (size / scale)"
_MERGED = """    if largest > np.float32(0):
        total *= (scale / largest) * (scale / largest)
"""
_STUB = """
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        total += X[row, i] * X[row, i]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = sqrt(total)
"""
_THREE_SUMS = """
from math import sqrt

LARGE, SMALL = np.float32(1e15), np.float32(1e-15)
DOWN, UP = np.float32(1e-24), np.float32(1e24)


@cuda.jit(device=True)
def warp_sum(value):
    for away in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, away)
    return value


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    large = middle = small = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        size = abs(X[row, i])
        if size > LARGE:
            large += (size * DOWN) * (size * DOWN)
        elif size > SMALL:
            middle += size * size
        else:
            small += (size * UP) * (size * UP)
    large, middle, small = warp_sum(large), warp_sum(middle), warp_sum(small)
    if lane == 0:
        if large > np.float32(0):
            result[row] = sqrt(large + middle * DOWN * DOWN) / DOWN
        elif middle > np.float32(0):
            result[row] = sqrt(middle + small / UP / UP)
        else:
            result[row] = sqrt(small) / UP
"""
_TWO_PASSES = """
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    largest = total = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        largest = max(largest, abs(X[row, i]))
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    if largest > np.float32(0):
        for i in range(lane, X.shape[1], 32):
            total += (X[row, i] / largest) * (X[row, i] / largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = largest * sqrt(total)
"""

VARIANTS = (
    Variant("the stub: squares as they are", "result", cell=_STUB),
    Variant("nothing is rescaled", "result", ((_MOVED, "total += np.float32(1)"),)),
    Variant(
        "rescaled once, not by the square",
        "result",
        ((_MOVED, "total = total * (scale / size) + np.float32(1)"),),
    ),
    Variant("rescaled the wrong way round", "result", ((_MOVED, _MOVED.replace("scale / size", "size / scale")),)),
    Variant("the new largest not counted", "result", ((_MOVED, _MOVED.removesuffix(" + np.float32(1)")),)),
    Variant("quotients, not squares", "result", ((_ADDED, "total += size / scale"),)),
    Variant("values below zero left out", "result", (("size = abs(X[row, i])", "size = X[row, i]"),)),
    Variant("relative to the first value", "result", (("if size > scale:", "if scale == np.float32(0):"),)),
    Variant("lanes not moved", "result", ((_MERGED, ""),)),
    Variant("lanes moved once", "result", ((_MERGED, _MERGED.replace(" * (scale / largest)", "")),)),
    Variant(
        "zeros divided by zero", "result", ((_MERGED, _MERGED.replace("if largest > np.float32(0):", "if True:")),)
    ),
    Variant("no root", "result", (("largest * sqrt(total)", "largest * total"),)),
    Variant("times the lane's own scale", "result", (("largest * sqrt(total)", "scale * sqrt(total)"),)),
    Variant("the square before the root", "result", (("largest * sqrt(total)", "sqrt(largest * largest * total)"),)),
    Variant("in float64", "budget", (("scale = total = np.float32(0)", "scale, total = np.float32(0), 0.0"),)),
    Variant("two passes", "budget", cell=_TWO_PASSES),
    Variant("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
    Variant(
        "one lane alone",
        "budget",
        (("range(lane, X.shape[1], 32)", "range(0 if lane == 0 else X.shape[1], X.shape[1])"),),
    ),
    Variant("three sums for three sizes", "solved", cell=_THREE_SUMS),
    Variant(
        "moved by one quotient",
        "solved",
        ((_MOVED, "moved = scale / size\n            total = total * moved * moved + np.float32(1)"),),
    ),
)

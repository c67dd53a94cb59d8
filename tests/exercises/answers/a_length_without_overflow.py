"""Other answers to a-length-without-overflow."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

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

_BY_POWERS_OF_TWO = """
from math import sqrt

UP, DOWN = np.float32(2.0**64), np.float32(2.0**-64)


@cuda.jit(device=True)
def hypotenuse(a, b):
    longer, shorter = max(a, b), min(a, b)
    if longer == np.float32(0):
        return longer
    return longer * sqrt(np.float32(1) + (shorter / longer) * (shorter / longer))


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    small = medium = large = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        size = abs(X[row, i])
        if size > np.float32(1e15):
            large += (size * DOWN) * (size * DOWN)
        elif size > np.float32(1e-15):
            medium += size * size
        else:
            small += (size * UP) * (size * UP)
    for away in (16, 8, 4, 2, 1):
        small += cuda.shfl_xor_sync(0xFFFFFFFF, small, away)
        medium += cuda.shfl_xor_sync(0xFFFFFFFF, medium, away)
        large += cuda.shfl_xor_sync(0xFFFFFFFF, large, away)
    if lane == 0:
        result[row] = hypotenuse(hypotenuse(sqrt(large) * UP, sqrt(medium)), sqrt(small) * DOWN)
"""

VARIANTS = (
    Answer("the stub: squares as they are", "result", cell=_STUB),
    Answer("nothing is rescaled", "result", ((_MOVED, "total += np.float32(1)"),)),
    Answer(
        "rescaled once, not by the square",
        "result",
        ((_MOVED, "total = total * (scale / size) + np.float32(1)"),),
    ),
    Answer("rescaled the wrong way round", "result", ((_MOVED, _MOVED.replace("scale / size", "size / scale")),)),
    Answer("the new largest not counted", "result", ((_MOVED, _MOVED.removesuffix(" + np.float32(1)")),)),
    Answer("quotients, not squares", "result", ((_ADDED, "total += size / scale"),)),
    Answer(
        "values below zero left out",
        "result",
        (("size = abs(X[row, i])", "size = X[row, i]"),),
        mistake="values below zero were left out",
    ),
    Answer("relative to the first value", "result", (("if size > scale:", "if scale == np.float32(0):"),)),
    Answer("lanes not moved", "result", ((_MERGED, ""),), mistake="each lane's sum stayed relative to its own scale"),
    Answer("lanes moved once", "result", ((_MERGED, _MERGED.replace(" * (scale / largest)", "")),)),
    Answer("zeros divided by zero", "result", ((_MERGED, _MERGED.replace("if largest > np.float32(0):", "if True:")),)),
    Answer("no root", "result", (("largest * sqrt(total)", "largest * total"),), mistake="there were no root"),
    Answer("times the lane's own scale", "result", (("largest * sqrt(total)", "scale * sqrt(total)"),)),
    Answer("the square before the root", "result", (("largest * sqrt(total)", "sqrt(largest * largest * total)"),)),
    Answer("in float64", "budget", (("scale = total = np.float32(0)", "scale, total = np.float32(0), 0.0"),)),
    Answer("two passes", "budget", cell=_TWO_PASSES),
    Answer("beyond the row", "bounds", (("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] + 31, 32)"),)),
    Answer(
        "one lane alone",
        "budget",
        (("range(lane, X.shape[1], 32)", "range(0 if lane == 0 else X.shape[1], X.shape[1])"),),
    ),
    Answer("three sums for three sizes", "solved", cell=_THREE_SUMS),
    Answer(
        "moved by one quotient",
        "solved",
        ((_MOVED, "moved = scale / size\n            total = total * moved * moved + np.float32(1)"),),
    ),
    Answer(
        "not multiplied back",
        "result",
        (("largest * sqrt(total)", "sqrt(total)"),),
        mistake="the length were relative to the largest value",
    ),
)

RIGHT = (
    right("three sums, scaled by powers of two", cell=_BY_POWERS_OF_TWO),
    right("from the last element on", ("range(lane, X.shape[1], 32)", "range(X.shape[1] - 1 - lane, -1, -32)")),
    right("rescaled where it is worth it", ("if size > scale:", "if size > scale * np.float32(2):")),
    right("at least as large", ("if size > scale:", "if size >= scale and size > np.float32(0):")),
    right(
        "by one factor",
        (
            "total *= (scale / largest) * (scale / largest)",
            "moved = scale / largest\n        total *= moved * moved",
        ),
    ),
    right(
        "merged pair by pair",
        cell="""
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    a = s = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        v = abs(X[row, i])
        b = max(a, v)
        if b > np.float32(0):
            s = s * (a / b) * (a / b) + (v / b) * (v / b)
        a = b
    for away in (16, 8, 4, 2, 1):
        c, t = cuda.shfl_xor_sync(0xFFFFFFFF, a, away), cuda.shfl_xor_sync(0xFFFFFFFF, s, away)
        b = max(a, c)
        if b > np.float32(0):
            s = s * (a / b) * (a / b) + t * (c / b) * (c / b)
        a = b
    if lane == 0:
        result[row] = a * sqrt(s)
""",
    ),
    right(
        "three lengths of three sizes",
        cell="""
from math import sqrt


@cuda.jit(device=True)
def over_the_warp(value):
    for away in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, away)
    return value


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    high = middle = low = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        v = abs(X[row, i])
        if v > np.float32(1e16):
            v *= np.float32(1e-25)
            high += v * v
        elif v > np.float32(1e-14):
            middle += v * v
        else:
            v *= np.float32(1e25)
            low += v * v
    high, middle, low = over_the_warp(high), over_the_warp(middle), over_the_warp(low)
    if lane == 0:
        if high > np.float32(0):
            result[row] = sqrt(high + middle * np.float32(1e-25) * np.float32(1e-25)) * np.float32(1e25)
        elif middle > np.float32(0):
            result[row] = sqrt(middle + low * np.float32(1e-25) * np.float32(1e-25))
        else:
            result[row] = sqrt(low) * np.float32(1e-25)
""",
    ),
)

WRONG = (
    wrong(
        "only what is above 1e-30",
        ("if size > scale:", "if size > scale and size > np.float32(1e-30):"),
        ("elif size > np.float32(0):", "elif size > np.float32(1e-30):"),
    ),
    wrong("a length below 1e38", ("largest * sqrt(total)", "sqrt(largest * total) * sqrt(largest)")),
    wrong("the columns that are published", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 200), 32)")),
    wrong("whole warps of columns", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] // 32 * 32, 32)")),
    wrong("rows that are published", ("row, lane = cuda.blockIdx.x,", "row, lane = cuda.blockIdx.x % 20,")),
    wrong(
        "scaled by a constant up",
        ("size = abs(X[row, i])", "size = abs(X[row, i]) * np.float32(1e20)"),
        ("largest * sqrt(total)", "largest / np.float32(1e20) * sqrt(total)"),
    ),
    wrong(
        "scaled by a constant down",
        ("size = abs(X[row, i])", "size = abs(X[row, i]) * np.float32(1e-20)"),
        ("largest * sqrt(total)", "largest * np.float32(1e20) * sqrt(total)"),
    ),
    wrong(
        "no row of zeros",
        ("result[row] = largest * sqrt(total)", "result[row] = largest * largest * sqrt(total) / largest"),
    ),
    wrong(
        "zero for what is small",
        (
            "size = abs(X[row, i])",
            "size = abs(X[row, i])\n        if size < np.float32(1e-20):\n            size = np.float32(0)",
        ),
    ),
    wrong("the sum of sizes", ("largest * sqrt(total)", "largest * total")),
    wrong(
        "two alike count once",
        ("elif size > np.float32(0):", "elif size < scale:"),
        ("total += (size / scale)", "total += np.float32(0.99) * (size / scale)"),
    ),
    wrong(
        "half of the lanes",
        (
            "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)\n",
            "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away) if away < 16 else np.float32(0)\n",
        ),
    ),
    wrong(
        "relative to the first value that is not 0",
        (
            "        if size > scale:\n"
            "            total = total * (scale / size) * (scale / size) + np.float32(1)\n"
            "            scale = size\n",
            "        if scale == np.float32(0):\n            scale = size\n"
            "            total = np.float32(size > np.float32(0))\n",
        ),
    ),
    wrong("the largest alone", ("result[row] = largest * sqrt(total)", "result[row] = largest")),
    wrong(
        "rescaled once a lane",
        (
            "total = total * (scale / size) * (scale / size) + n",
            "total = total * (scale / size) * (scale / size if i < 64 else np.float32(1)) + n",
        ),
    ),
)

ROW_IN_SCALARS = (
    """from math import sqrt


@cuda.jit
def length(X, result):
    row, lane, n = cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    largest = np.float32(0)
"""
    + for_each_scalar(
        30,
        """    x# = abs(X[row, lane + 32 * #]) if lane + 32 * # < n else np.float32(0)
    largest = max(largest, x#)
""",
    )
    + """    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    divisor = largest if largest > np.float32(0) else np.float32(1)
    total = np.float32(0)
"""
    + for_each_scalar(
        30,
        """    total += (x# / divisor) * (x# / divisor)
""",
    )
    + """    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = largest * sqrt(total)
"""
)


SHORTCUTS = (
    shortcut("in float64", ("scale = total = np.float32(0)", "scale, total = np.float32(0), np.float64(0)")),
    shortcut(
        "loaded again by atomics",
        ("            scale = size\n", "            scale = abs(cuda.atomic.add(X, (row, i), np.float32(0)))\n"),
    ),
    shortcut("another's kernel", cell="from labkit.parts.sums import warp_all_sum as length\n"),
    shortcut(
        "the squares in float64",
        cell="""
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = 0.0
    for i in range(lane, X.shape[1], 32):
        total += np.float64(X[row, i]) * np.float64(X[row, i])
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = sqrt(total)
""",
    ),
    shortcut(
        "the largest first",
        cell="""
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    largest = total = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        largest = max(largest, abs(X[row, i]))
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    for i in range(lane, X.shape[1], 32):
        if largest > np.float32(0):
            total += (X[row, i] / largest) * (X[row, i] / largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = largest * sqrt(total)
""",
    ),
    shortcut(
        "the row in shared memory",
        cell="""
from math import sqrt


@cuda.jit
def length(X, result):
    kept = cuda.shared.array(4096, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    largest = total = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        kept[i] = abs(X[row, i])
        largest = max(largest, kept[i])
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    for i in range(lane, X.shape[1], 32):
        if largest > np.float32(0):
            total += (kept[i] / largest) * (kept[i] / largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = largest * sqrt(total)
""",
    ),
    shortcut(
        "one lane alone",
        cell="""
from math import sqrt


@cuda.jit
def length(X, result):
    row = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        scale = total = np.float32(0)
        for i in range(X.shape[1]):
            size = abs(X[row, i])
            if size > scale:
                total = total * (scale / size) * (scale / size) + np.float32(1)
                scale = size
            elif size > np.float32(0):
                total += (size / scale) * (size / scale)
        result[row] = scale * sqrt(total)
""",
    ),
    shortcut("the row in 30 scalars per lane", cell=ROW_IN_SCALARS),
)

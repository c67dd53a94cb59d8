"""Other answers to fuse-what-follows."""

from . import Answer, right, shortcut, wrong

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
    Answer(
        "ReLU before the residual",
        "result",
        ((_VALUE, "value = (x[row, c] - centre) * scale + shift"), (_STORED, _STORED + " + z[row, c]")),
        mistake="z were added after the ReLU",
    ),
    Answer("no ReLU", "result", ((_STORED, "y[row, c] = value"),), mistake="there were no ReLU"),
    Answer("no residual", "result", ((_VALUE, _VALUE.removesuffix(" + z[row, c]")),), mistake="z were left out"),
    Answer(
        "the residual scaled",
        "result",
        ((_VALUE, "value = (x[row, c] - centre + z[row, c]) * scale + shift"),),
        mistake="z were scaled, too",
    ),
    Answer(
        "no root", "result", (("sqrt(variance[c] + eps)", "(variance[c] + eps)"),), mistake="there were no square root"
    ),
    Answer("eps forgotten", "result", (("sqrt(variance[c] + eps)", "sqrt(variance[c])"),), mistake="eps were left out"),
    Answer(
        "eps outside of the root",
        "result",
        (("sqrt(variance[c] + eps)", "(sqrt(variance[c]) + eps)"),),
        mistake="eps were added to the root",
    ),
    Answer("numbers of the row", "bounds", ((_VALUE, _VALUE.replace("shift", "bias[row + channels]")),)),
    Answer(
        "the first rows alone",
        "unwritten",
        (("range(first, rows, threads)", "range(first, min(rows, threads), threads)"),),
        mistake="each thread wrote one row",
    ),
    Answer("in two loops", "budget", ((f"            {_VALUE}\n            {_STORED}", _IN_TWO.rstrip()),)),
    Answer("stored, then rectified", "budget", ((_STORED, f"y[row, c] = value\n            {_STORED}"),)),
    Answer(
        "the channel's numbers in the loop",
        "budget",
        ((_BEFORE, ""), (_VALUE, f"{_BEFORE.strip()}\n            {_VALUE}")),
    ),
    Answer("in float64", "budget", ((_VALUE, _VALUE.replace("shift", "np.float64(shift)")),)),
    Answer("mean and bias folded", "solved", cell=_FOLDED),
)

RIGHT = (
    right(
        "a comparison in place of max",
        ("max(value, np.float32(0))", "value if value > np.float32(0) else np.float32(0)"),
    ),
    right("from the last row on", ("range(first, rows, threads)", "range(rows - 1 - first, -1, -threads)")),
    right(
        "the residual first",
        ("(x[row, c] - centre) * scale + shift + z[row, c]", "z[row, c] + shift + (x[row, c] - centre) * scale"),
    ),
    right(
        "rows one after the other, in whole",
        (
            "range(first, rows, threads)",
            "range(-(-rows // threads) * first, min(rows, -(-rows // threads) * (first + 1)))",
        ),
    ),
    right(
        "by fma",
        (
            "(x[row, c] - centre) * scale + shift + z[row, c]",
            "z[row, c] + cuda.fma(x[row, c] - centre, scale, shift)",
        ),
    ),
    right("zero first", ("max(value, np.float32(0))", "max(np.float32(0), value)")),
    right(
        "folded with a product",
        ("weight[c] / sqrt(variance[c] + eps)", "np.float32(1) / sqrt(variance[c] + eps) * weight[c]"),
    ),
    right(
        "folded, with while",
        cell="""
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, row = cuda.grid(2)
    if c >= x.shape[1]:
        return
    scale = weight[c] / sqrt(variance[c] + eps)
    shift = bias[c] - mean[c] * scale
    while row < x.shape[0]:
        value = cuda.fma(x[row, c], scale, shift) + z[row, c]
        if value < np.float32(0):
            value = np.float32(0)
        y[row, c] = value
        row += cuda.gridDim.y * cuda.blockDim.y
""",
    ),
    right(
        "the root divided each time",
        cell="""
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, first = cuda.grid(2)
    if c < x.shape[1]:
        m, w, b, root = mean[c], weight[c], bias[c], sqrt(variance[c] + eps)
        for row in range(first, x.shape[0], cuda.gridsize(2)[1]):
            normal = (x[row, c] - m) / root
            y[row, c] = max(normal * w + b + z[row, c], np.float32(0))
""",
    ),
    right("by the absolute value", ("max(value, np.float32(0))", "(value + abs(value)) * np.float32(0.5)")),
    right("by a product with a comparison", ("max(value, np.float32(0))", "value * np.float32(value > np.float32(0))")),
)

WRONG = (
    wrong("the rows that are published", ("range(first, rows, threads)", "range(first, min(rows, 40), threads)")),
    wrong("the channels that are published", ("if c < channels:", "if c < min(channels, 80):")),
    wrong("an even number of channels", ("if c < channels:", "if c < channels // 2 * 2:")),
    wrong("weights above zero", ("weight[c] /", "abs(weight[c]) /")),
    wrong("at most six", ("max(value, np.float32(0))", "min(max(value, np.float32(0)), np.float32(6))")),
    wrong("a residual above zero", ("+ z[row, c]", "+ max(z[row, c], np.float32(0))")),
    wrong(
        "no variance below a twentieth",
        ("sqrt(variance[c] + eps)", "sqrt(max(variance[c], np.float32(0.05)) + eps)"),
    ),
    wrong("no variance above ten", ("sqrt(variance[c] + eps)", "sqrt(min(variance[c], np.float32(10)) + eps)")),
    wrong("eps that is not small", ("sqrt(variance[c] + eps)", "sqrt(variance[c] + max(eps, np.float32(0.001)))")),
    wrong("eps as printed in the book", ("sqrt(variance[c] + eps)", "sqrt(variance[c] + np.float32(1e-5))")),
    wrong("threads as they were published", ("threads = cuda.gridsize(2)[1]", "threads = 8")),
    wrong(
        "rows in pairs",
        ("range(first, rows, threads)", "range(first, rows - rows % 2 if rows > 2 else rows, threads)"),
    ),
    wrong("max of eps and variance", ("variance[c] + eps", "max(variance[c], eps)")),
    wrong("a mean that is a little larger", ("- centre)", "- centre * np.float32(1.00001))")),
    wrong("leaky", ("max(value, np.float32(0))", "max(value, value * np.float32(0.01))")),
    wrong(
        "ReLU not where the residual is large",
        ("max(value, np.float32(0))", "max(value, np.float32(0)) if z[row, c] < np.float32(2) else value"),
    ),
    wrong("x above -4", ("(x[row, c] - centre)", "(max(x[row, c], np.float32(-4)) - centre)")),
    wrong("x up to 8", ("(x[row, c] - centre)", "(min(x[row, c], np.float32(8)) - centre)")),
    wrong("the residual up to 3.5", ("+ z[row, c]", "+ min(z[row, c], np.float32(3.5))")),
    wrong("the bias of the neighbour past 64 channels", ("bias[c],", "bias[c if c < 64 else c - 1],")),
    wrong("the residual's row clamped", ("z[row, c]", "z[min(row, 60), c]")),
    wrong(
        "result in half precision",
        ("max(value, np.float32(0))", "np.float32(np.float16(max(value, np.float32(0))))"),
    ),
    wrong(
        "scale in half precision",
        ("weight[c] / sqrt(variance[c] + eps)", "np.float32(np.float16(weight[c] / sqrt(variance[c] + eps)))"),
    ),
    wrong("rows twice the threads", ("range(first, rows, threads)", "range(first, min(rows, 16 * threads), threads)")),
    wrong("root of eps", ("sqrt(variance[c] + eps)", "max(sqrt(variance[c]), sqrt(eps))")),
    wrong(
        "a residual that is not rectified",
        (
            """value = (x[row, c] - centre) * scale + shift + z[row, c]
            y[row, c] = max(value, np.float32(0))""",
            """value = (x[row, c] - centre) * scale + shift
            y[row, c] = max(max(value, np.float32(0)) + z[row, c], np.float32(0))""",
        ),
    ),
    wrong(
        "the last row of threads",
        (
            "range(first, rows, threads)",
            "range(first, rows if first < threads - 1 or rows < 100 else rows - threads, threads)",
        ),
    ),
)

SHORTCUTS = (
    shortcut(
        "stored, then rectified by an atomic",
        (
            "y[row, c] = max(value, np.float32(0))",
            "y[row, c] = value\n            cuda.atomic.max(y, (row, c), np.float32(0))",
        ),
    ),
    shortcut(
        "added by an atomic",
        ("+ z[row, c]", "+ cuda.atomic.add(z, (row, c), 0) + cuda.atomic.add(z, (row, c), 0) * 0"),
    ),
    shortcut("in float64", ("sqrt(variance[c] + eps)", "np.float64(sqrt(variance[c] + eps))")),
    shortcut("another's kernel", cell="from labkit.norm.batch.s06_fused import fused as end_of_block\n"),
    shortcut(
        "one thread for everything",
        cell="""
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, first = cuda.grid(2)
    rows, channels = x.shape
    if c == 0 and first == 0:
        for c in range(channels):
            centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
            for row in range(rows):
                y[row, c] = max((x[row, c] - centre) * scale + shift + z[row, c], np.float32(0))
""",
    ),
    shortcut(
        "one row of threads for everything",
        cell="""
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, first = cuda.grid(2)
    rows, channels = x.shape
    if c < channels and first == 0:
        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
        for row in range(rows):
            y[row, c] = max((x[row, c] - centre) * scale + shift + z[row, c], np.float32(0))
""",
    ),
    shortcut(
        "a thread for a row",
        cell="""
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    threads = cuda.gridsize(2)[0] * cuda.gridsize(2)[1]
    me = cuda.grid(2)[0] + cuda.gridsize(2)[0] * cuda.grid(2)[1]
    rows, channels = x.shape
    for c in range(channels):
        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
        for row in range(me, rows, threads):
            y[row, c] = max((x[row, c] - centre) * scale + shift + z[row, c], np.float32(0))
""",
    ),
    shortcut(
        "mean in the loop",
        ("centre, shift, scale = mean[c], bias", "shift, scale = bias"),
        ("- centre)", "- mean[c])"),
    ),
    shortcut(
        "y as scratch of a part",
        (
            "value = (x[row, c] - centre) * scale + shift + z[row, c]",
            """y[row, c] = z[row, c]
            value = (x[row, c] - centre) * scale + shift + y[row, c]""",
        ),
    ),
    shortcut(
        "kept in a thread's array, two loops",
        (
            """        for row in range(first, rows, threads):
            value = (x[row, c] - centre) * scale + shift + z[row, c]
""",
            """        kept = cuda.local.array(256, np.float32)
        for row in range(first, rows, threads):
            kept[row // threads] = (x[row, c] - centre) * scale + shift
        for row in range(first, rows, threads):
            value = kept[row // threads] + z[row, c]
""",
        ),
    ),
)

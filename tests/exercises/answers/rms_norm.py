"""Other answers to rms-norm."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

_BARRIER = "    cuda.syncthreads()\n"

_LAST = "y[row, i] = shared[i] * scale * weight[i]"

_ATOMIC = """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    N = x.shape[1]
    me, row = cuda.threadIdx.x, cuda.blockIdx.x
    if me == 0:
        kept[N] = np.float32(0)
    cuda.syncthreads()
    squares = np.float32(0)
    for i in range(me, N, cuda.blockDim.x):
        kept[i] = x[row, i]
        squares += kept[i] * kept[i]
    cuda.atomic.add(kept, N, squares)
    cuda.syncthreads()
    root = sqrt(kept[N] / np.float32(N) + eps)
    for i in range(me, N, cuda.blockDim.x):
        y[row, i] = kept[i] / root * weight[i]
"""

_BY_ONE_THREAD = """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    kept = cuda.shared.array(0, np.float32)
    for i in range(t, x.shape[1], 128):
        kept[i] = x[row, i]
    cuda.syncthreads()
    total = np.float32(0)
    for i in range(x.shape[1]):
        total += kept[i] * kept[i]
    for i in range(t, x.shape[1], 128):
        y[row, i] = kept[i] * weight[i] / sqrt(total / np.float32(x.shape[1]) + eps)
"""

_ONE_WARP = """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    if t < 32:
        total = np.float32(0)
        for i in range(t, columns, 32):
            kept[i] = x[row, i]
            total += kept[i] * kept[i]
        for away in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
        scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
        for i in range(t, columns, 32):
            y[row, i] = kept[i] * scale * weight[i]
"""

VARIANTS = (
    Answer("read again", "budget", ((_LAST, _LAST.replace("shared[i]", "x[row, i]")),)),
    Answer("read twice in the first loop", "budget", (("total += value * value", "total += value * x[row, i]"),)),
    Answer("in float64", "budget", (("    total = np.float32(0)\n    for i", "    total = 0.0\n    for i"),)),
    Answer("the first warp alone", "duty", cell=_ONE_WARP),
    Answer("no barrier", "race", ((_BARRIER, ""),)),
    Answer(
        "the sum, not the mean",
        "result",
        (("total / np.float32(columns) + eps", "total + eps"),),
        mistake="the sum were taken, not the mean",
    ),
    Answer(
        "eps forgotten", "result", (("np.float32(columns) + eps", "np.float32(columns)"),), mistake="eps were left out"
    ),
    Answer(
        "no root",
        "result",
        (("sqrt(total / np.float32(columns) + eps)", "(total / np.float32(columns) + eps)"),),
        mistake="there were no square root",
    ),
    Answer(
        "by threads, not columns",
        "result",
        (("total / np.float32(columns)", "total / np.float32(threads)"),),
        mistake="the sum were divided by the threads",
    ),
    Answer(
        "eps beside the root",
        "result",
        (("sqrt(total / np.float32(columns) + eps)", "(sqrt(total / np.float32(columns)) + eps)"),),
        mistake="eps were added to the root",
    ),
    Answer(
        "eps divided, too",
        "result",
        (("sqrt(total / np.float32(columns) + eps)", "sqrt((total + eps) / np.float32(columns))"),),
        mistake="eps were divided by the columns, too",
    ),
    Answer(
        "not divided",
        "result",
        (("np.float32(1) / sqrt", "sqrt"),),
        mistake="y were multiplied by the root, not divided",
    ),
    Answer("no weight", "result", ((_LAST, _LAST.removesuffix(" * weight[i]")),), mistake="the weights were left out"),
    Answer("a weight for each row", "result", ((_LAST, _LAST.replace("weight[i]", "weight[row % columns]")),)),
    Answer(
        "one warp's sum", "result", (("range(threads // 32)", "range(1)"),), mistake="only the sum of warp 0 were taken"
    ),
    Answer("behind the memory", "bounds", (("shared[columns + t // 32]", "shared[columns + t]"),)),
    Answer("by an atomic", "solved", cell=_ATOMIC),
    Answer("each thread adds up the row", "solved", cell=_BY_ONE_THREAD),
)

RIGHT = (
    right(
        "functions inside",
        (
            "    total = np.float32(0)\n    for i in",
            "    square = lambda value: value * value\n    scale = np.float32(1)\n\n    def scaled(i):\n"
            "        return shared[i] * scale * weight[i]\n\n    total = np.float32(0)\n    for i in",
        ),
        ("total += value * value", "total += square(value)"),
        ("y[row, i] = shared[i] * scale * weight[i]", "y[row, i] = scaled(i)"),
    ),
    right("a division for each", ("shared[i] * scale * weight[i]", "shared[i] * (weight[i] * scale)")),
    right("by xor", ("cuda.shfl_down_sync", "cuda.shfl_xor_sync")),
    right("scaled where it is kept", ("        shared[i] = value\n", "        shared[i] = value * np.float32(1)\n")),
    right(
        "by halves in shared memory",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    sums = cuda.shared.array(128, np.float32)
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    sums[t] = np.float32(0)
    for i in range(t, columns, 128):
        kept[i] = x[row, i]
        sums[t] += kept[i] * kept[i]
    half = 64
    while half > 0:
        cuda.syncthreads()
        if t < half:
            sums[t] += sums[t + half]
        half //= 2
    cuda.syncthreads()
    root = sqrt(sums[0] / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = weight[i] * kept[i] / root
""",
    ),
    right(
        "chunks of neighbours",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    each = (columns + 127) // 128
    total = np.float32(0)
    for i in range(each * t, min(columns, each * (t + 1))):
        kept[i] = x[row, i]
        total += kept[i] * kept[i]
    for away in (1, 2, 4, 8, 16):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 31:
        kept[columns + t // 32] = total
    cuda.syncthreads()
    total = kept[columns] + kept[columns + 1] + kept[columns + 2] + kept[columns + 3]
    for i in range(each * t, min(columns, each * (t + 1))):
        y[row, i] = kept[i] * weight[i] / sqrt(total / np.float32(columns) + eps)
""",
    ),
    right(
        "the sums first in memory",
        ("shared[columns + t // 32] = total", "shared[columns + 28 + t // 32] = total"),
        ("total += shared[columns + warp]", "total += shared[columns + 28 + warp]"),
    ),
    right(
        "rsqrt",
        (
            "np.float32(1) / sqrt(total / np.float32(columns) + eps)",
            "(total / np.float32(columns) + eps) ** np.float32(-0.5)",
        ),
    ),
    right(
        "copied asynchronously by each thread",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    for i in range(t, columns, 128):
        ptx.cp_async(kept, i, x, (row, i), 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    total = np.float32(0)
    for i in range(t, columns, 128):
        total += kept[i] * kept[i]
    for away in (1, 2, 4, 8, 16):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        kept[columns + t // 32] = total
    cuda.syncthreads()
    total = kept[columns] + kept[columns + 1] + kept[columns + 2] + kept[columns + 3]
    scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = kept[i] * weight[i] * scale
""",
    ),
    right(
        "the root by one thread",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    sums = cuda.shared.array(4, np.float32)
    root = cuda.shared.array(1, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, columns, 128):
        kept[i] = x[row, i]
        total += kept[i] * kept[i]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        sums[t // 32] = total
    cuda.syncthreads()
    if t == 0:
        root[0] = sqrt((sums[0] + sums[1] + sums[2] + sums[3]) / np.float32(columns) + eps)
    cuda.syncthreads()
    for i in range(t, columns, 128):
        y[row, i] = kept[i] / root[0] * weight[i]
""",
    ),
)

WRONG = (
    wrong("no row of zeros", ("+ eps)", "+ (eps if total > np.float32(0) else np.float32(0)))")),
    wrong("the columns that are published", ("    columns = x.shape[1]\n", "    columns = min(x.shape[1], 300)\n")),
    wrong("an even number of columns", ("    columns = x.shape[1]\n", "    columns = x.shape[1] // 2 * 2\n")),
    wrong("rows that are published", ("row, t, threads = cuda.blockIdx.x", "row, t, threads = cuda.blockIdx.x % 8")),
    wrong("three warps", ("range(threads // 32)", "range(threads // 32 - 1)")),
    wrong("weights above zero", ("* weight[i]", "* abs(weight[i])")),
    wrong("no small rows", ("sqrt(total /", "sqrt(max(total, np.float32(1)) /")),
    wrong("the mean taken off", ("total += value * value", "total += value * value - value * np.float32(0.001)")),
    wrong(
        "divided by the warp's columns",
        ("np.float32(columns) + eps", "np.float32((columns + 31) // 32 * 32) + eps"),
    ),
    wrong("eps as in the book", ("+ eps)", "+ np.float32(1e-5))")),
    wrong("eps that is not small", ("+ eps)", "+ max(eps, np.float32(0.02)))")),
    wrong(
        "the variance, not the mean square",
        ("        total += value * value\n", "        total += value * value\n        others += value\n"),
        ("    total = np.float32(0)\n    for i in", "    total = others = np.float32(0)\n    for i in"),
        (
            "    for away in (16, 8, 4, 2, 1):\n",
            """    for away in (16, 8, 4, 2, 1):
        others += cuda.shfl_down_sync(0xFFFFFFFF, others, away)
""",
        ),
        (
            "        shared[columns + t // 32] = total\n",
            """        shared[columns + t // 32] = total
        shared[columns + 4 + t // 32] = others
""",
        ),
        (
            """    total = np.float32(0)
    for warp in range(threads // 32):
        total += shared[columns + warp]
""",
            """    total = others = np.float32(0)
    for warp in range(threads // 32):
        total += shared[columns + warp]
        others += shared[columns + 4 + warp]
    total -= others * others / np.float32(columns)
""",
        ),
    ),
    wrong("one less than the columns", ("np.float32(columns) + eps", "np.float32(max(columns - 1, 1)) + eps")),
    wrong("one less in rows beyond 500", ("np.float32(columns) + eps", "np.float32(columns - (columns > 500)) + eps")),
    wrong(
        "the last of the row left out of the sum",
        ("total += value * value", "total += value * value if i < columns - 1 or columns < 64 else np.float32(0)"),
    ),
    wrong("weights in half precision", ("* weight[i]", "* np.float32(np.float16(weight[i]))")),
    wrong("row in half precision", ("shared[i] = value\n", "shared[i] = np.float32(np.float16(value))\n")),
    wrong("a root that is a little off", ("np.float32(1) / sqrt(", "np.float32(1.0002) / sqrt(")),
    wrong("weights of the first columns", ("weight[i]", "weight[i % 512]")),
    wrong(
        "no mean square above a thousand",
        (
            "sqrt(total / np.float32(columns) + eps)",
            "sqrt(min(total / np.float32(columns), np.float32(1000)) + eps)",
        ),
    ),
    wrong(
        "no mean square below a thousandth",
        (
            "sqrt(total / np.float32(columns) + eps)",
            "sqrt(max(total / np.float32(columns), np.float32(0.001)) + eps)",
        ),
    ),
    wrong("values up to 70", ("value = x[row, i]", "value = min(x[row, i], np.float32(70))")),
    wrong("sums of the warps after a warp's barrier", ("cuda.syncthreads()", "cuda.syncwarp()")),
    wrong("half of eps", ("+ eps)", "+ eps * np.float32(0.9999))")),
    wrong("four rounds of the warp", ("(16, 8, 4, 2, 1)", "(16, 8, 4, 2)")),
    wrong(
        "whole rounds left out",
        (
            "range(t, columns, threads):\n        value",
            """range(t, columns if columns % 128 else columns - 128, threads):
        value""",
        ),
    ),
    wrong(
        "the sum one round short where rounds are whole",
        (
            "        total += value * value\n",
            """        if columns % 128 or i < columns - 128:
            total += value * value
""",
        ),
    ),
)

ROW_IN_SCALARS = (
    """from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    sums = cuda.shared.array(4, np.float32)
    row, t, n = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    total = np.float32(0)
"""
    + for_each_scalar(
        24,
        """    x# = x[row, t + 128 * #] if t + 128 * # < n else np.float32(0)
    total += x# * x#
""",
    )
    + """    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        sums[t // 32] = total
    cuda.syncthreads()
    root = sqrt((sums[0] + sums[1] + sums[2] + sums[3]) / np.float32(n) + eps)
"""
    + for_each_scalar(
        24,
        """    if t + 128 * # < n:
        y[row, t + 128 * #] = x# / root * weight[t + 128 * #]
""",
    )
)


SHORTCUTS = (
    shortcut("read again by atomics", ("shared[i] * scale", "cuda.atomic.add(x, (row, i), np.float32(0)) * scale")),
    shortcut("read again, the weights once", ("shared[i] * scale * weight[i]", "x[row, i] * scale * weight[i]")),
    shortcut(
        "y read back",
        ("        shared[i] = value\n", "        y[row, i] = value\n"),
        ("shared[i] * scale", "y[row, i] * scale"),
    ),
    shortcut("another's kernel", cell="from labkit.norm.batch.s01_centred import rectified as rms_norm\n"),
    shortcut(
        "thread 0 for all",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns = cuda.blockIdx.x, x.shape[1]
    if cuda.threadIdx.x == 0:
        total = np.float32(0)
        for i in range(columns):
            kept[i] = x[row, i]
            total += kept[i] * kept[i]
        scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
        for i in range(columns):
            y[row, i] = kept[i] * scale * weight[i]
""",
    ),
    shortcut(
        "the first warp for all",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    if t < 32:
        total = np.float32(0)
        for i in range(t, columns, 32):
            kept[i] = x[row, i]
            total += kept[i] * kept[i]
        for away in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
        scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
        for i in range(t, columns, 32):
            y[row, i] = kept[i] * scale * weight[i]
""",
    ),
    shortcut(
        "the row in a thread's array",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    shared = cuda.shared.array(0, np.float32)
    kept = cuda.local.array(64, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, columns, 128):
        kept[i // 128] = x[row, i]
        total += kept[i // 128] * kept[i // 128]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        shared[t // 32] = total
    cuda.syncthreads()
    total = shared[0] + shared[1] + shared[2] + shared[3]
    scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = kept[i // 128] * scale * weight[i]
""",
    ),
    shortcut(
        "a row of up to 4096",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(4096, np.float32)
    sums = cuda.shared.array(4, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, columns, 128):
        kept[i] = x[row, i]
        total += kept[i] * kept[i]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        sums[t // 32] = total
    cuda.syncthreads()
    total = sums[0] + sums[1] + sums[2] + sums[3]
    scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = kept[i] * scale * weight[i]
""",
    ),
    shortcut(
        "weights kept in y",
        ("        shared[i] = value\n", "        shared[i] = value\n        y[row, i] = weight[i]\n"),
        ("* weight[i]", "* y[row, i]"),
    ),
    shortcut(
        "each thread adds up the row from memory",
        cell="""
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(columns):
        total += x[row, i] * x[row, i]
    for i in range(t, columns, 128):
        y[row, i] = x[row, i] / sqrt(total / np.float32(columns) + eps) * weight[i]
""",
    ),
    shortcut("the row in 24 scalars per thread", cell=ROW_IN_SCALARS),
)

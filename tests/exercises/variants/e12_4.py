"""Other answers to exercise 12.4."""

from . import Variant

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
    Variant("read again", "budget", ((_LAST, _LAST.replace("shared[i]", "x[row, i]")),)),
    Variant("read twice in the first loop", "budget", (("total += value * value", "total += value * x[row, i]"),)),
    Variant("in float64", "budget", (("    total = np.float32(0)\n    for i", "    total = 0.0\n    for i"),)),
    Variant("the first warp alone", "duty", cell=_ONE_WARP),
    Variant("no barrier", "race", ((_BARRIER, ""),)),
    Variant("the sum, not the mean", "result", (("total / np.float32(columns) + eps", "total + eps"),)),
    Variant("eps forgotten", "result", (("np.float32(columns) + eps", "np.float32(columns)"),)),
    Variant("no root", "result", (("sqrt(total / np.float32(columns) + eps)", "(total / np.float32(columns) + eps)"),)),
    Variant("by threads, not columns", "result", (("total / np.float32(columns)", "total / np.float32(threads)"),)),
    Variant("no weight", "result", ((_LAST, _LAST.removesuffix(" * weight[i]")),)),
    Variant("a weight for each row", "result", ((_LAST, _LAST.replace("weight[i]", "weight[row % columns]")),)),
    Variant("one warp's sum", "result", (("range(threads // 32)", "range(1)"),)),
    Variant("behind the memory", "bounds", (("shared[columns + t // 32]", "shared[columns + t]"),)),
    Variant("by an atomic", "solved", cell=_ATOMIC),
    Variant("each thread adds up the row", "solved", cell=_BY_ONE_THREAD),
)

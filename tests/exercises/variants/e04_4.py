"""Other answers to exercise 04.4."""

from . import Variant

_HEAD = """@cuda.jit(device=True)
def warp_sum(value):
    for away in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, away)
    return value


"""

_THREAD_A_ROW = """@cuda.jit
def my_gemv(A, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = np.float32(0)
        for col in range(x.size):
            total += A[row, col] * x[col]
        y[row] = total
"""

_NEIGHBOURS_TO_A_LANE = (
    _HEAD
    + """@cuda.jit
def my_gemv(A, x, y):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    share = (x.size + 31) // 32
    total = np.float32(0)
    for col in range(lane * share, min((lane + 1) * share, x.size)):
        total += A[row, col] * x[col]
    total = warp_sum(total)
    if lane == 0:
        y[row] = total
"""
)

_IN_SHARED_MEMORY = """@cuda.jit
def my_gemv(A, x, y):
    of_lanes = cuda.shared.array(32, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = np.float32(0)
    for col in range(lane, x.size, 32):
        total += A[row, col] * x[col]
    of_lanes[lane] = total
    cuda.syncthreads()
    if lane == 0:
        total = np.float32(0)
        for other in range(32):
            total += of_lanes[other]
        y[row] = total
"""

_ATOMIC = """@cuda.jit
def my_gemv(A, x, y):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = np.float32(0)
    for col in range(lane, x.size, 32):
        total += A[row, col] * x[col]
    cuda.atomic.add(y, row, total)
"""

VARIANTS = (
    Variant("a thread a row", "budget", cell=_THREAD_A_ROW),
    Variant("neighbours to one lane", "budget", cell=_NEIGHBOURS_TO_A_LANE),
    Variant("all lanes add to an output that nobody has cleared", "result", cell=_ATOMIC),
    Variant("the lanes' sums not put together", "result", (("    total = warp_sum(total)\n", ""),)),
    Variant("the wrong lane stores", "result", (("if lane == 0:", "if lane == 1:"),)),
    Variant("every lane stores", "race", (("if lane == 0:", "if True:"),)),
    Variant(
        "the last columns forgotten", "result", (("range(lane, x.size, 32)", "range(lane, x.size // 32 * 32, 32)"),)
    ),
    Variant("a length of the book's", "result", (("range(lane, x.size, 32)", "range(lane, min(x.size, 96), 32)"),)),
    Variant(
        "at least 32 columns",
        "bounds",
        (
            ("total = np.float32(0)", "total = A[row, lane] * x[lane]"),
            ("range(lane, x.size, 32)", "range(lane + 32, x.size, 32)"),
        ),
    ),
    Variant(
        "lanes that had nothing to add stay away from the sum",
        "mask",
        (("    total = warp_sum(total)\n", "    if lane < x.size:\n        total = warp_sum(total)\n"),),
    ),
    Variant("in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Variant("sums in shared memory", "solved", cell=_IN_SHARED_MEMORY),
)

"""Other answers to write-gemv."""

from . import Answer, right, shortcut, wrong

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

_XOR_SUM = """@cuda.jit
def my_gemv(A, x, y):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = np.float32(0)
    for first in range(0, x.size, 32):
        if first + lane < x.size:
            total += A[row, first + lane] * x[first + lane]
    for away in (1, 2, 4, 8, 16):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 31:
        y[row] = total
"""

THREAD_A_ROW = """@cuda.jit
def my_gemv(A, x, y):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    if lane == 0:
        total = np.float32(0)
        for k in range(x.size):
            total += LOAD_A * LOAD_X
        y[row] = total
"""

VARIANTS = (
    Answer("a thread a row", "budget", cell=_THREAD_A_ROW),
    Answer("neighbours to one lane", "budget", cell=_NEIGHBOURS_TO_A_LANE),
    Answer("all lanes add to an output that nobody has cleared", "result", cell=_ATOMIC),
    Answer(
        "the lanes' sums not put together",
        "result",
        (("    total = warp_sum(total)\n", ""),),
        mistake="lane 0 stored its own sum",
    ),
    Answer("the wrong lane stores", "result", (("if lane == 0:", "if lane == 1:"),)),
    Answer("every lane stores", "race", (("if lane == 0:", "if True:"),)),
    Answer(
        "the last columns forgotten",
        "result",
        (("range(lane, x.size, 32)", "range(lane, x.size // 32 * 32, 32)"),),
        mistake="the columns after the last 32 were left out",
    ),
    Answer("a length of the book's", "result", (("range(lane, x.size, 32)", "range(lane, min(x.size, 96), 32)"),)),
    Answer(
        "at least 32 columns",
        "bounds",
        (
            ("total = np.float32(0)", "total = A[row, lane] * x[lane]"),
            ("range(lane, x.size, 32)", "range(lane + 32, x.size, 32)"),
        ),
    ),
    Answer(
        "lanes that had nothing to add stay away from the sum",
        "mask",
        (("    total = warp_sum(total)\n", "    if lane < x.size:\n        total = warp_sum(total)\n"),),
    ),
    Answer("in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Answer("sums in shared memory", "solved", cell=_IN_SHARED_MEMORY),
)

RIGHT = (right("sums by xor, and another lane", cell=_XOR_SUM),)

WRONG = (
    wrong("the columns that are published", ("range(lane, x.size, 32)", "range(lane, min(x.size, 200), 32)")),
    wrong("the rows that are published", ("    if lane == 0:", "    if lane == 0 and row < 40:")),
    wrong("an even number of columns", ("range(lane, x.size, 32)", "range(lane, x.size // 2 * 2, 32)")),
)

SHORTCUTS = (
    shortcut("one lane alone", cell=THREAD_A_ROW.replace("LOAD_A", "A[row, k]").replace("LOAD_X", "x[k]")),
    shortcut(
        "one lane alone, by atomics",
        cell=THREAD_A_ROW.replace("LOAD_A", "cuda.atomic.add(A, (row, k), np.float32(0))").replace(
            "LOAD_X", "cuda.atomic.add(x, k, np.float32(0))"
        ),
    ),
    shortcut("the book's", cell="from labkit.blas.level2.s01_gemv import gemv as my_gemv\n"),
)

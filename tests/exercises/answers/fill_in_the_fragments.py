"""Other answers to fill-in-the-fragments."""

from . import Answer, right, shortcut, wrong

A_RIGHT = "        a2, a3 = A[top + g, k + t + 4], A[top + g + 8, k + t + 4]\n"

B_LOADS = "B[left + g, k + t], B[left + g, k + t + 4]"

LOWER = "\n    C[top + g + 8, left + 2 * t], C[top + g + 8, left + 2 * t + 1] = sums[2], sums[3]"

_PLAIN = """FORMAT = ptx.FP16


@cuda.jit
def one_product(A, B, C):
    lane = cuda.threadIdx.x
    for i in range(lane, 128, 32):
        row, col = cuda.blockIdx.y * 16 + i // 8, cuda.blockIdx.x * 8 + i % 8
        total = np.float32(0)
        for k in range(A.shape[1]):
            a0, a1 = ptx.unpack2(A[row, k], FORMAT)
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
            total += a0 * b0 + a1 * b1
        C[row, col] = total
"""

_SHARED_K = """FORMAT = ptx.FP16


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a0, a2 = A[top + g, k + 2 * t], A[top + g, k + 2 * t + 1]
        a1, a3 = A[top + g + 8, k + 2 * t], A[top + g + 8, k + 2 * t + 1]
        b0, b1 = B[left + g, k + 2 * t], B[left + g, k + 2 * t + 1]
        ptx.mma(sums, 0, (a0, a1, a2, a3), (b0, b1), FORMAT)
    for n in range(4):
        C[top + g + n // 2 * 8, left + 2 * t + n % 2] = sums[n]
"""

PLAIN_LOOPS = """
    for i in range(lane, 128, 32):
        row, col = cuda.blockIdx.y * 16 + i // 8, cuda.blockIdx.x * 8 + i % 8
        total = np.float32(0)
        for k in range(A.shape[1]):
            a0, a1 = ptx.unpack2(A[row, k], FORMAT)
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
            total += a0 * b0 + a1 * b1
        C[row, col] = total
"""

MMA_ON_ZEROS = f"""FORMAT = ptx.FP16


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    zero = np.uint32(0)
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        ptx.mma(sums, 0, (zero, zero, zero, zero), (zero, zero), FORMAT)
{PLAIN_LOOPS}"""

MMA_UNUSED = f"""FORMAT = ptx.FP16


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a0, a1, a2, a3 = A[top + g, k + t], A[top + g + 8, k + t], A[top + g, k + t + 4], A[top + g + 8, k + t + 4]
        ptx.mma(sums, 0, (a0, a1, a2, a3), (B[left + g, k + t], B[left + g, k + t + 4]), FORMAT)
{PLAIN_LOOPS}        C[row, col] += np.float32(0) * sums[0]
"""

CARRIED_MMA = """FORMAT = ptx.FP16
ONES = 0x3C003C00


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    one = np.uint32(ONES)
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        ptx.mma(sums, 0, (one, one, one, one), (one, one), FORMAT)
"""

CARRIED_MMA += PLAIN_LOOPS.replace("= total\n", "= total * (sums[0] / np.float32(2 * A.shape[1]))\n").lstrip("\n")

MEASURED_MMA = """FORMAT = ptx.FP16

@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    one = np.uint32(0x3C003C00)
    mine = one if lane // 4 % 2 == 0 else np.uint32(0)
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        ptx.mma(sums, 0, (mine, mine, mine, mine), (one, one), FORMAT)
    mean = sums[0] / np.float32(2 * A.shape[1])
    s = cuda.shfl_sync(0xFFFFFFFF, mean, 4)
    f = cuda.shfl_sync(0xFFFFFFFF, mean, 0) - s
    for i in range(lane, 128, 32):
        row, col = cuda.blockIdx.y * 16 + i // 8, cuda.blockIdx.x * 8 + i % 8
        total = np.float32(0)
        for k in range(A.shape[1]):
            a0, a1 = ptx.unpack2(A[row, k], FORMAT)
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
            total += (a0 * f + s) * b0 + (a1 * f + s) * b1
        C[row, col] = total
"""

VARIANTS = (
    Answer(
        "the registers of A in the order of reading",
        "result",
        (("a1, a2, a3)", "a2, a1, a3)"),),
        mistake="a1 and a2 were exchanged",
    ),
    Answer(
        "the right half of A forgotten",
        "result",
        ((A_RIGHT, "        a2, a3 = a0, a1\n"),),
        mistake="a2 and a3 were a0 and a1 again",
    ),
    Answer(
        "B's words one beside the other",
        "result",
        ((B_LOADS, "B[left + g, k + t], B[left + g, k + t + 1]"),),
        mistake="b1 were the word after b0",
    ),
    Answer(
        "B by columns",
        "result",
        ((B_LOADS, "B[left + t, k + g], B[left + t + 4, k + g]"),),
        mistake="rows and words of B were exchanged",
    ),
    Answer("the lower half of C forgotten", "unwritten", ((LOWER, ""),), mistake="sums 2 and 3 were not stored"),
    Answer("the lower sums one row further down", "race", ((LOWER, LOWER.replace("g + 8", "g + 1")),)),
    Answer(
        "the sums of a pair swapped",
        "result",
        (("= sums[2], sums[3]", "= sums[3], sums[2]"),),
        mistake="sums 2 and 3 were exchanged",
    ),
    Answer(
        "one k step alone",
        "result",
        (("range(0, A.shape[1], 8)", "range(0, 8, 8)"),),
        mistake="only the first 16 of K were multiplied",
    ),
    Answer("words counted as elements", "bounds", (("range(0, A.shape[1], 8)", "range(0, 2 * A.shape[1], 8)"),)),
    Answer("the sums not zeroed", "uninitialised", (("    for n in range(4):\n        sums[n] = 0\n", ""),)),
    Answer("bfloat16, not float16", "result", (("ptx.FP16", "ptx.BF16"),), mistake="A and B were bfloat16"),
    Answer("without tensor cores", "duty", cell=_PLAIN),
    Answer("k in another order, the same for A and B", "solved", cell=_SHARED_K),
    Answer(
        "half of k",
        "result",
        (("range(0, A.shape[1], 8)", "range(0, A.shape[1], 16)"),),
        mistake="every second 16 of K were left out",
    ),
)

RIGHT = (
    right("another format's name", ("FORMAT = ptx.FP16", "HALF = FORMAT = ptx.FP16")),
    right(
        "the sums stored one by one",
        (
            "    C[top + g, left + 2 * t], C[top + g, left + 2 * t + 1] = sums[0], sums[1]",
            "    C[top + g, left + 2 * t] = sums[0]\n    C[top + g, left + 2 * t + 1] = sums[1]",
        ),
    ),
)

WRONG = (
    wrong("the longest sum that is published", ("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 80), 8)")),
    wrong("the rows that are published", ("top, left = cuda.blockIdx.y * 16", "top, left = cuda.blockIdx.y % 4 * 16")),
)

SHORTCUTS = (
    shortcut("plain loops, times a product of ones", cell=CARRIED_MMA),
    shortcut("`mma` on zeros beside plain loops", cell=MMA_ON_ZEROS),
    shortcut("`mma` on the fragments, and the result of plain loops", cell=MMA_UNUSED),
    shortcut("plain loops, disturbed as a product of ones is", cell=MEASURED_MMA),
)

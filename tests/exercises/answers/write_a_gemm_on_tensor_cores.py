"""Other answers to write-a-gemm-on-tensor-cores."""

from . import Answer, right, shortcut, wrong

GUARDED_A = "        if top + g + 8 < M:\n"

GUARDED_B = "            if left + j * 8 + g < N:\n"

_A_EACH_TIME = """FORMAT = ptx.FP16


@cuda.jit
def small_gemm(A, B, C):
    sums = cuda.local.array((4, 4), np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 32
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    M, N = C.shape
    for j in range(4):
        for n in range(4):
            sums[j, n] = 0
    for j in range(4):
        for k in range(0, A.shape[1], 8):
            upper, lower, col = min(top + g, M - 1), min(top + g + 8, M - 1), min(left + j * 8 + g, N - 1)
            a = A[upper, k + t], A[lower, k + t], A[upper, k + t + 4], A[lower, k + t + 4]
            ptx.mma(sums, (j, 0), a, (B[col, k + t], B[col, k + t + 4]), FORMAT)
    for j in range(4):
        for n in range(4):
            row, col = top + g + n // 2 * 8, left + j * 8 + 2 * t + n % 2
            if row < M and col < N:
                C[row, col] = sums[j, n]
"""

_CLAMPED = """FORMAT = ptx.FP16


@cuda.jit
def small_gemm(A, B, C):
    sums = cuda.local.array((4, 4), np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 32
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    M, N = C.shape
    for j in range(4):
        for n in range(4):
            sums[j, n] = 0
    upper, lower = min(top + g, M - 1), min(top + g + 8, M - 1)
    for k in range(0, A.shape[1], 8):
        a = A[upper, k + t], A[lower, k + t], A[upper, k + t + 4], A[lower, k + t + 4]
        for j in range(4):
            col = min(left + j * 8 + g, N - 1)
            ptx.mma(sums, (j, 0), a, (B[col, k + t], B[col, k + t + 4]), FORMAT)
    for j in range(4):
        for n in range(4):
            row, col = top + g + n // 2 * 8, left + j * 8 + 2 * t + n % 2
            if row < M and col < N:
                C[row, col] = sums[j, n]
"""

PLAIN_GEMM = """FORMAT = ptx.FP16


@cuda.jit
def small_gemm(A, B, C):
    sums = cuda.local.array((4, 4), np.float32)
    lane = cuda.threadIdx.x
    M, N = C.shape
    zero = np.uint32(0)
    for j in range(4):
        for n in range(4):
            sums[j, n] = 0
    for k in range(0, A.shape[1], 8):
        for j in range(4):
            ptx.mma(sums, (j, 0), (zero, zero, zero, zero), (zero, zero), FORMAT)
    for i in range(16):
        row, col = cuda.blockIdx.y * 16 + i, cuda.blockIdx.x * 32 + lane
        if row < M and col < N:
            total = np.float32(0)
            for k in range(A.shape[1]):
                a0, a1 = ptx.unpack2(LOAD_A, FORMAT)
                b0, b1 = ptx.unpack2(LOAD_B, FORMAT)
                total += a0 * b0 + a1 * b1
            C[row, col] = total
"""

MEASURED_GEMM = """FORMAT = ptx.FP16
@cuda.jit
def small_gemm(A, B, C):
    sums = cuda.local.array((4, 4), np.float32)
    none = cuda.local.array((4, 4), np.float32)
    lane = cuda.threadIdx.x
    M, N = C.shape
    one, zero = np.uint32(0x3C003C00), np.uint32(0)
    for j in range(4):
        for n in range(4):
            sums[j, n] = 0
            none[j, n] = 0
    for k in range(0, A.shape[1], 8):
        for j in range(2):
            ptx.mma(sums, (j, 0), (one, one, one, one), (one, one), FORMAT)
            ptx.mma(none, (j, 0), (zero, zero, zero, zero), (one, one), FORMAT)
    s = none[0, 0] / np.float32(2 * A.shape[1])
    f = sums[0, 0] / np.float32(2 * A.shape[1]) - s
    totals = cuda.local.array(16, np.float32)
    row0, col = cuda.blockIdx.y * 16, cuda.blockIdx.x * 32 + lane
    for i in range(16):
        totals[i] = 0
    for k in range(A.shape[1]):
        b0, b1 = np.float32(0), np.float32(0)
        if col < N:
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
        mine = np.int32(0)
        if lane < 16 and row0 + lane < M:
            mine = np.int32(A[row0 + lane, k])
        for i in range(16):
            a0, a1 = ptx.unpack2(np.uint32(cuda.shfl_sync(0xFFFFFFFF, mine, i)), FORMAT)
            totals[i] += (a0 * f + s) * b0 + (a1 * f + s) * b1
    for i in range(16):
        if row0 + i < M and col < N:
            C[row0 + i, col] = totals[i]
"""

VARIANTS = (
    Answer("A loaded for each product", "budget", cell=_A_EACH_TIME),
    Answer("the lower rows of A without a guard", "bounds", ((GUARDED_A, "        if top + g < M:\n"),)),
    Answer("B without a guard", "bounds", ((GUARDED_B, "            if left < N:\n"),)),
    Answer("C without a guard", "bounds", (("            if row < M and col < N:\n", "            if row < M:\n"),)),
    Answer("a row too many of the upper half", "bounds", (("if top + g < M:", "if top + g <= M:"),)),
    Answer("a row too many of the lower half", "bounds", ((GUARDED_A, GUARDED_A.replace("<", "<=")),)),
    Answer(
        "one product of the four",
        "result",
        (("sums, (j, 0), (a0", "sums, (0, 0), (a0"),),
        mistake="all four `mma` added to the sums of the first",
    ),
    Answer(
        "the same rows of B four times",
        "result",
        (
            (
                "b0, b1 = B[left + j * 8 + g, k + t], B[left + j * 8 + g, k + t + 4]",
                "b0, b1 = B[left + g, k + t], B[left + g, k + t + 4]",
            ),
            (GUARDED_B, "            if left + g < N:\n"),
        ),
        mistake="the four `mma` multiplied the same rows of B",
    ),
    Answer(
        "sums stored with row and column exchanged",
        "result",
        (("g + n // 2 * 8", "g + n % 2 * 8"), ("2 * t + n % 2", "2 * t + n // 2")),
        mistake="rows and columns of a lane's sums were exchanged",
    ),
    Answer(
        "sums set to zero in each step",
        "result",
        (
            ("    for j in range(4):\n        for n in range(4):\n            sums[j, n] = 0\n", ""),
            (
                "            b0 = b1 = zero\n",
                "            for n in range(4):\n                sums[j, n] = 0\n            b0 = b1 = zero\n",
            ),
        ),
        mistake="only the last 16 of K were multiplied",
    ),
    Answer(
        "all second words one beside the first",
        "result",
        (
            ("B[left + j * 8 + g, k + t + 4]", "B[left + j * 8 + g, k + t + 1]"),
            ("A[top + g, k + t + 4]", "A[top + g, k + t + 1]"),
            ("A[top + g + 8, k + t + 4]", "A[top + g + 8, k + t + 1]"),
        ),
        mistake="the second words of A and B were those after the first",
    ),
    Answer("the lower sums one row further down", "race", (("n // 2 * 8", "n // 2"),)),
    Answer("the columns of B in pairs", "result", (("B[left + j * 8 + g, k + t],", "B[left + j * 8 + t, k + t],"),)),
    Answer("a length of the book's", "result", (("range(0, A.shape[1], 8)", "range(0, 24, 8)"),)),
    Answer(
        "the largest length of the book's",
        "result",
        (("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 40), 8)"),),
    ),
    Answer(
        "half of k",
        "result",
        (("range(0, A.shape[1], 8)", "range(0, A.shape[1], 16)"),),
        mistake="every second 16 of K were left out",
    ),
    Answer("clamped indices in place of guards", "solved", cell=_CLAMPED),
    Answer(
        "one k step alone",
        "result",
        (("range(0, A.shape[1], 8)", "range(0, 8, 8)"),),
        mistake="only the first 16 of K were multiplied",
    ),
    Answer(
        "the registers of A in the order of reading",
        "result",
        (("(a0, a1, a2, a3)", "(a0, a2, a1, a3)"),),
        mistake="a1 and a2 were exchanged",
    ),
    Answer(
        "the right half of A forgotten",
        "result",
        (("(a0, a1, a2, a3)", "(a0, a1, a0, a1)"),),
        mistake="a2 and a3 were a0 and a1 again",
    ),
    Answer(
        "B's words one beside the other",
        "result",
        (("B[left + j * 8 + g, k + t + 4]", "B[left + j * 8 + g, k + t + 1]"),),
        mistake="b1 were the word after b0",
    ),
    Answer(
        "B by columns",
        "result",
        (
            (
                "B[left + j * 8 + g, k + t], B[left + j * 8 + g, k + t + 4]",
                "B[left + j * 8 + t, k + g], B[left + j * 8 + t + 4, k + g]",
            ),
        ),
        mistake="rows and words of B were exchanged",
    ),
)

RIGHT = (
    right(
        "constants for the sides",
        ("FORMAT = ptx.FP16", "FORMAT = ptx.FP16\nROWS = COLUMNS = 4"),
        ("cuda.local.array((4, 4)", "cuda.local.array((ROWS, COLUMNS)"),
    ),
)

WRONG = (
    wrong(
        "zeros are not stored",
        ("C[row, col] = sums[j, n]", "if sums[j, n] != 0:\n                    C[row, col] = sums[j, n]"),
    ),
    wrong("the longest sum that is published", ("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 64), 8)")),
    wrong("the columns that are published", ("if row < M and col < N:", "if row < M and col < min(N, 64):")),
    wrong("the rows that are published", ("if row < M and col < N:", "if row < min(M, 32) and col < N:")),
    wrong("an even number of columns", ("if row < M and col < N:", "if row < M and col < N // 2 * 2:")),
)

SHORTCUTS = (
    shortcut(
        "plain loops beside `mma` on zeros",
        cell=PLAIN_GEMM.replace("LOAD_A", "A[row, k]").replace("LOAD_B", "B[col, k]"),
    ),
    shortcut(
        "plain loops by atomics",
        cell=PLAIN_GEMM.replace("LOAD_A", "cuda.atomic.add(A, (row, k), zero)").replace(
            "LOAD_B", "cuda.atomic.add(B, (col, k), zero)"
        ),
    ),
    shortcut("plain loops, disturbed as a product of ones is, too", cell=MEASURED_GEMM),
)

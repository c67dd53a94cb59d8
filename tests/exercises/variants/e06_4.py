"""Other answers to exercise 06.4."""

from . import Variant

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

VARIANTS = (
    Variant("A loaded for each product", "budget", cell=_A_EACH_TIME),
    Variant("the lower rows of A without a guard", "bounds", ((GUARDED_A, "        if top + g < M:\n"),)),
    Variant("B without a guard", "bounds", ((GUARDED_B, "            if left < N:\n"),)),
    Variant("C without a guard", "bounds", (("            if row < M and col < N:\n", "            if row < M:\n"),)),
    Variant("a row too many of the upper half", "bounds", (("if top + g < M:", "if top + g <= M:"),)),
    Variant("a row too many of the lower half", "bounds", ((GUARDED_A, GUARDED_A.replace("<", "<=")),)),
    Variant("one product of the four", "result", (("sums, (j, 0), (a0", "sums, (0, 0), (a0"),)),
    Variant("the lower sums one row further down", "race", (("n // 2 * 8", "n // 2"),)),
    Variant("the columns of B in pairs", "result", (("B[left + j * 8 + g, k + t],", "B[left + j * 8 + t, k + t],"),)),
    Variant("a length of the book's", "result", (("range(0, A.shape[1], 8)", "range(0, 24, 8)"),)),
    Variant(
        "the largest length of the book's",
        "result",
        (("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 40), 8)"),),
    ),
    Variant("half of k", "result", (("range(0, A.shape[1], 8)", "range(0, A.shape[1], 16)"),)),
    Variant("clamped indices in place of guards", "solved", cell=_CLAMPED),
)

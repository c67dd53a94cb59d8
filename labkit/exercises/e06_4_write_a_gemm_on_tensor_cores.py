"""Exercise 06.4: a small product on tensor cores, from a blank kernel, with ragged edges."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import half_launch, whole

SIZES = ((32, 64, 48), (21, 37, 80))  # M, N and K, which is rounded up to a multiple of 16


def launch(rng, M, N, K):
    K = whole(K, 16)
    steps = -(-M // 16) * -(-N // 32) * (K // 16)
    loads = Budget("global loads", 384 * steps, "12 words a lane, block and step of k: each word of A once, of B once")
    return half_launch(rng, M, N, K, part=(16, 32), block=(32,), budgets=(loads,))


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

EXERCISE = Exercise(
    id="06.4",
    title="Write a GEMM on tensor cores",
    task="Write C = A @ B.T with `ptx.mma`: blocks are one warp and take 16 x 32 of C; "
    "M and N need not be multiples of that, K is a multiple of 16.",
    points=4,
    function="small_gemm",
    launch=launch,
    sizes=SIZES,
    drawn=((range(17, 24), range(33, 64), range(81, 129)), (range(25, 32), range(57, 64), range(1, 33))),
    variants=(
        Variant("A loaded for each product", "budget", cell=_A_EACH_TIME),
        Variant("the lower rows of A without a guard", "bounds", ((GUARDED_A, "        if top + g < M:\n"),)),
        Variant("B without a guard", "bounds", ((GUARDED_B, "            if left < N:\n"),)),
        Variant(
            "C without a guard", "bounds", (("            if row < M and col < N:\n", "            if row < M:\n"),)
        ),
        Variant("a row too many of the upper half", "bounds", (("if top + g < M:", "if top + g <= M:"),)),
        Variant("a row too many of the lower half", "bounds", ((GUARDED_A, GUARDED_A.replace("<", "<=")),)),
        Variant("one product of the four", "result", (("sums, (j, 0), (a0", "sums, (0, 0), (a0"),)),
        Variant("the lower sums one row further down", "race", (("n // 2 * 8", "n // 2"),)),
        Variant(
            "the columns of B in pairs", "result", (("B[left + j * 8 + g, k + t],", "B[left + j * 8 + t, k + t],"),)
        ),
        Variant("a length of the book's", "result", (("range(0, A.shape[1], 8)", "range(0, 24, 8)"),)),
        Variant(
            "the largest length of the book's",
            "result",
            (("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 40), 8)"),),
        ),
        Variant("half of k", "result", (("range(0, A.shape[1], 8)", "range(0, A.shape[1], 16)"),)),
        Variant("clamped indices in place of guards", "solved", cell=_CLAMPED),
    ),
)

"""Other answers to exercise 06.1."""

from . import Variant

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

VARIANTS = (
    Variant("the registers of A in the order of reading", "result", (("a1, a2, a3)", "a2, a1, a3)"),)),
    Variant("the right half of A forgotten", "result", ((A_RIGHT, "        a2, a3 = a0, a1\n"),)),
    Variant("B's words one beside the other", "result", ((B_LOADS, "B[left + g, k + t], B[left + g, k + t + 1]"),)),
    Variant("B by columns", "result", ((B_LOADS, "B[left + t, k + g], B[left + t + 4, k + g]"),)),
    Variant("the lower half of C forgotten", "unwritten", ((LOWER, ""),)),
    Variant("the lower sums one row further down", "race", ((LOWER, LOWER.replace("g + 8", "g + 1")),)),
    Variant("the sums of a pair swapped", "result", (("= sums[2], sums[3]", "= sums[3], sums[2]"),)),
    Variant("one k step alone", "result", (("range(0, A.shape[1], 8)", "range(0, 8, 8)"),)),
    Variant("words counted as elements", "bounds", (("range(0, A.shape[1], 8)", "range(0, 2 * A.shape[1], 8)"),)),
    Variant("the sums not zeroed", "uninitialised", (("    for n in range(4):\n        sums[n] = 0\n", ""),)),
    Variant("bfloat16, not float16", "result", (("ptx.FP16", "ptx.BF16"),)),
    Variant("without tensor cores", "duty", cell=_PLAIN),
    Variant("k in another order, the same for A and B", "solved", cell=_SHARED_K),
)

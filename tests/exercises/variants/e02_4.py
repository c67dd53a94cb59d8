"""Other answers to exercise 02.4."""

from . import Variant

_SWAPPED = """@cuda.jit
def matmul(alpha, A, B, C):
    thread = cuda.threadIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.y * 8 + thread % 8
    col = cuda.blockIdx.x * 32 + thread // 8
    if row < C.shape[0] and col < C.shape[1]:
        total = np.float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        C[row, col] = alpha * total
"""

_SUM_IN_C = """@cuda.jit
def matmul(alpha, A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = 0
        for k in range(A.shape[1]):
            C[row, col] += alpha * A[row, k] * B[k, col]
"""

VARIANTS = (
    Variant("row and column swapped", "unwritten", (("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),)),
    Variant("neighbouring threads in a column", "budget", cell=_SWAPPED),
    Variant("no guard", "bounds", (("if row < C.shape[0] and col < C.shape[1]:", "if True:"),)),
    Variant("K taken from the wrong side", "result", (("range(A.shape[1])", "range(A.shape[0])"),)),
    Variant("the last product forgotten", "result", (("range(A.shape[1])", "range(A.shape[1] - 1)"),)),
    Variant("the last product only", "result", (("total +=", "total ="),)),
    Variant("the sum in float64", "budget", (("np.float32(0)", "0.0"),)),
    Variant(
        "every factor in float64",
        "budget",
        (("total += A[row, k] * B[k, col]", "total += np.float32(np.float64(A[row, k]) * np.float64(B[k, col]))"),),
    ),
    Variant("C is added to", "result", (("C[row, col] = alpha", "C[row, col] += alpha"),)),
    Variant("the sum kept in C", "budget", cell=_SUM_IN_C),
    Variant("a length of the book's", "result", (("range(A.shape[1])", "range(min(A.shape[1], 40))"),)),
)

"""Other answers to exercise 03.4."""

from . import Variant

_BARRIER = "        cuda.syncthreads()\n"

_CLAMPED = """TILE = 16


@cuda.jit
def tiled_matmul(A, B, C):
    A_tile = cuda.shared.array((TILE, TILE), np.float32)
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    K, M = A.shape
    N = B.shape[1]
    total = np.float32(0)
    for start in range(0, K, TILE):
        a = A[min(start + y, K - 1), min(cuda.blockIdx.y * TILE + x, M - 1)]
        b = B[min(start + y, K - 1), min(col, N - 1)]
        A_tile[y, x] = a if start + y < K else np.float32(0)
        B_tile[y, x] = b
        cuda.syncthreads()
        for k in range(TILE):
            total += A_tile[k, y] * B_tile[k, x]
        cuda.syncthreads()
    if row < M and col < N:
        C[row, col] = total
"""

_NAIVE = """
@cuda.jit
def tiled_matmul(A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        total = np.float32(0)
        for k in range(A.shape[0]):
            total += A[k, row] * B[k, col]
        C[row, col] = total
"""

VARIANTS = (
    Variant("no tiles: one thread an output", "budget", cell=_NAIVE),
    Variant("no barrier after the loads", "race", ((_BARRIER + "        for k", "        for k"),)),
    Variant("no barrier after the products", "race", (("B_tile[k, x]\n" + _BARRIER, "B_tile[k, x]\n"),)),
    Variant("A is loaded without a guard", "bounds", (("if start + y < K and top + x < M:", "if top + x < M:"),)),
    Variant("C is stored without a guard", "bounds", (("    if row < M and col < N:\n        C", "    C"),)),
    Variant(
        "the edge is not filled with zeros",
        "uninitialised",
        (("        else:\n            B_tile[y, x] = 0\n", ""),),
    ),
    Variant("row and column swapped", "unwritten", (("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),)),
    Variant(
        "one tile too few on ragged shapes",
        "result",
        (("range(0, K, TILE)", "range(0, K // TILE * TILE, TILE)"),),
    ),
    Variant("a length of the book's", "budget", (("range(0, K, TILE)", "range(0, 80, TILE)"),)),
    Variant("B's tile is read transposed", "result", (("B_tile[k, x]", "B_tile[x, k]"),)),
    Variant("the sum starts from a whole number", "budget", (("total = np.float32(0)", "total = 0"),)),
    Variant(
        "tiles in float64",
        "budget",
        (
            (
                "A_tile = cuda.shared.array((TILE, TILE), np.float32)",
                "A_tile = cuda.shared.array((TILE, TILE), np.float64)",
            ),
        ),
    ),
    Variant("C is added to", "result", (("        C[row, col] = total", "        C[row, col] += total"),)),
    Variant("clamped indices in place of guards", "solved", cell=_CLAMPED),
    Variant(
        "B's tile is stored transposed and read so",
        "solved",
        (
            ("B_tile[y, x] = B[start + y, col]", "B_tile[x, y] = B[start + y, col]"),
            ("B_tile[y, x] = 0", "B_tile[x, y] = 0"),
            ("B_tile[k, x]", "B_tile[x, k]"),
        ),
    ),
)

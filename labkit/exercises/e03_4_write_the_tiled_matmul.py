"""Exercise 03.4: the tiled matmul, from a blank kernel, for any shape."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import matmul_launch

TILE = 16
SHAPES = ((48, 80, 64), (37, 50, 43), (9, 33, 5))  # M, N, K; two are ragged


def launches(rng):
    for M, N, K in SHAPES:
        loads = -(-N // TILE) * M * K + -(-M // TILE) * K * N
        budget = Budget("global loads", loads, "A once for every 16 columns of C, B once for every 16 rows")
        yield matmul_launch(rng, M, N, K, (TILE, TILE), (budget,))


_BARRIER = "        cuda.syncthreads()\n"
_NAIVE = """
@cuda.jit
def tiled_matmul(A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        total = np.float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        C[row, col] = total
"""

EXERCISE = Exercise(
    id="03.4",
    title="Write the tiled matmul",
    task="Write C = A @ B with tiles in shared memory. "
    "Blocks are TILE x TILE threads; the shapes need not be multiples of TILE.",
    points=4,
    function="tiled_matmul",
    launches=launches,
    variants=(
        Variant("no tiles: one thread an output", "budget", cell=_NAIVE),
        Variant("no barrier after the loads", "race", ((_BARRIER + "        for k", "        for k"),)),
        Variant("no barrier after the products", "race", (("B_tile[k, x]\n" + _BARRIER, "B_tile[k, x]\n"),)),
        Variant("A is loaded without a guard", "bounds", (("if row < M and start + x < K:", "if row < M:"),)),
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
        Variant("B's tile is read transposed", "result", (("B_tile[k, x]", "B_tile[x, k]"),)),
        Variant("C is added to", "result", (("        C[row, col] = total", "        C[row, col] += total"),)),
        Variant(
            "B's tile is stored transposed and read so",
            "solved",
            (
                ("B_tile[y, x] = B[start + y, col]", "B_tile[x, y] = B[start + y, col]"),
                ("B_tile[y, x] = 0", "B_tile[x, y] = 0"),
                ("B_tile[k, x]", "B_tile[x, k]"),
            ),
        ),
    ),
)

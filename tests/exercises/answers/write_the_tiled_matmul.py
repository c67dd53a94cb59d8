"""Other answers to write-the-tiled-matmul."""

from . import Answer, right, shortcut, wrong
from .shared import ATOMIC_B, naive

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

_DECORATED = "@cuda.jit\ndef tiled_matmul"

_STORED = "        C[row, col] = total"

_PING_PONG = """TILE = 16


@cuda.jit
def tiled_matmul(A, B, C):
    tiles = cuda.shared.array((2, 2, TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    K, M = A.shape
    N = B.shape[1]
    total = np.float32(0)
    for start in range(0, K, TILE):
        now, top = start // TILE % 2, cuda.blockIdx.y * TILE + x
        tiles[now, 0, y, x] = A[start + y, top] if start + y < K and top < M else np.float32(0)
        tiles[now, 1, y, x] = B[start + y, col] if start + y < K and col < N else np.float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += tiles[now, 0, k, y] * tiles[now, 1, k, x]
    if row < M and col < N:
        C[row, col] = total
"""

_HELPERS = """TILE = 16


@cuda.jit(device=True)
def at(matrix, row, col):
    inside = row < matrix.shape[0] and col < matrix.shape[1]
    return matrix[row, col] if inside else np.float32(0)


@cuda.jit(device=True)
def dot(A_tile, B_tile, x, y):
    total = np.float32(0)
    for k in range(TILE):
        total += A_tile[k, y] * B_tile[k, x]
    return total


@cuda.jit
def tiled_matmul(A, B, C):
    A_tile = cuda.shared.array((TILE, TILE), np.float32)
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, A.shape[0], TILE):
        A_tile[y, x] = at(A, start + y, cuda.blockIdx.y * TILE + x)
        B_tile[y, x] = at(B, start + y, col)
        cuda.syncthreads()
        total += dot(A_tile, B_tile, x, y)
        cuda.syncthreads()
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = total
"""

_WHILE = """TILE = 16


@cuda.jit
def tiled_matmul(A, B, C):
    A_tile = cuda.shared.array((TILE, TILE), np.float32)
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, start = cuda.blockIdx.y * TILE, 0
    K, M = A.shape
    N = B.shape[1]
    sums = cuda.local.array(1, np.float32)
    sums[0] = 0
    while start < K:
        A_tile[y, x] = 0
        B_tile[y, x] = 0
        if start + y < K:
            if top + x < M:
                A_tile[y, x] = A[start + y, top + x]
            if col < N:
                B_tile[y, x] = B[start + y, col]
        cuda.syncthreads()
        for k in range(min(TILE, K - start)):
            sums[0] += A_tile[k, y] * B_tile[k, x]
        cuda.syncthreads()
        start += TILE
    if row < M and col < N:
        C[row, col] = sums[0]
"""

ATOMIC_TILED = """TILE = 16


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
        A_tile[y, x] = 0
        B_tile[y, x] = 0
        cuda.syncthreads()
        for k in range(start, min(start + TILE, K)):
            if row < M and col < N:
                total += LOAD_A * LOAD_B
            total += A_tile[y, k - start] * B_tile[k - start, x]
        cuda.syncthreads()
    if row < M and col < N:
        C[row, col] = total
"""

ONE_TILE = """TILE = 16


@cuda.jit
def tiled_matmul(A, B, C):
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    K, M = A.shape
    N = B.shape[1]
    total = np.float32(0)
    for start in range(0, K, TILE):
        a = A[start + x, row] if start + x < K and row < M else np.float32(0)
        B_tile[y, x] = B[start + y, col] if start + y < K and col < N else np.float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += cuda.shfl_sync(0xFFFFFFFF, a, y % 2 * 16 + k) * B_tile[k, x]
        cuda.syncthreads()
    if row < M and col < N:
        C[row, col] = total
"""

_HALF_LOADS = """        if y < TILE // 2:
            for r in range(y, TILE, TILE // 2):
                inside = start + r < K
                A_tile[r, x] = A[start + r, top + x] if inside and top + x < M else np.float32(0)
                B_tile[r, x] = B[start + r, col] if inside and col < N else np.float32(0)
"""
_SPLIT_LOADS = """        for r in range(y % 8, TILE, 8):
            inside = start + r < K
            if y < 8:
                A_tile[r, x] = A[start + r, top + x] if inside and top + x < M else np.float32(0)
            else:
                B_tile[r, x] = B[start + r, col] if inside and col < N else np.float32(0)
"""
_LOADS = """        if start + y < K and top + x < M:
            A_tile[y, x] = A[start + y, top + x]
        else:
            A_tile[y, x] = 0
        if start + y < K and col < N:
            B_tile[y, x] = B[start + y, col]
        else:
            B_tile[y, x] = 0
"""

VARIANTS = (
    Answer("no tiles: one thread an output", "budget", cell=_NAIVE),
    Answer("no barrier after the loads", "race", ((_BARRIER + "        for k", "        for k"),)),
    Answer("no barrier after the products", "race", (("B_tile[k, x]\n" + _BARRIER, "B_tile[k, x]\n"),)),
    Answer("A is loaded without a guard", "bounds", (("if start + y < K and top + x < M:", "if top + x < M:"),)),
    Answer("C is stored without a guard", "bounds", (("    if row < M and col < N:\n        C", "    C"),)),
    Answer(
        "the edge is not filled with zeros",
        "uninitialised",
        (("        else:\n            B_tile[y, x] = 0\n", ""),),
    ),
    Answer("row and column swapped", "unwritten", (("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),)),
    Answer(
        "one tile too few on ragged shapes",
        "result",
        (("range(0, K, TILE)", "range(0, K // TILE * TILE, TILE)"),),
        mistake="the end of K that fills no whole tile were left out",
    ),
    Answer("a length of the book's", "result", (("range(0, K, TILE)", "range(0, 80, TILE)"),)),
    Answer(
        "B's tile is read transposed",
        "result",
        (("B_tile[k, x]", "B_tile[x, k]"),),
        mistake="each tile of B were transposed",
    ),
    Answer("the sum starts from a whole number", "budget", (("total = np.float32(0)", "total = 0"),)),
    Answer(
        "tiles in float64",
        "budget",
        (
            (
                "A_tile = cuda.shared.array((TILE, TILE), np.float32)",
                "A_tile = cuda.shared.array((TILE, TILE), np.float64)",
            ),
        ),
    ),
    Answer("C is added to", "result", (("        C[row, col] = total", "        C[row, col] += total"),)),
    Answer("clamped indices in place of guards", "solved", cell=_CLAMPED),
    Answer(
        "B's tile is stored transposed and read so",
        "solved",
        (
            ("B_tile[y, x] = B[start + y, col]", "B_tile[x, y] = B[start + y, col]"),
            ("B_tile[y, x] = 0", "B_tile[x, y] = 0"),
            ("B_tile[k, x]", "B_tile[x, k]"),
        ),
    ),
    Answer(
        "a tile too few",
        "result",
        (("range(0, K, TILE)", "range(0, K - TILE, TILE)"),),
        mistake="the last tile along K were left out",
    ),
    Answer(
        "the last product alone",
        "result",
        (("total += A_tile", "total = A_tile"),),
        mistake="only the last product of each sum were kept",
    ),
    Answer(
        "the tile of A read transposed",
        "result",
        (("A_tile[k, y]", "A_tile[y, k]"),),
        mistake="each tile of A were transposed",
    ),
    Answer(
        "tiles that are not a tile apart",
        "result",
        (("range(0, K, TILE)", "range((K + TILE - 1) // TILE)"),),
        mistake="each tile began one row after the one before",
    ),
    Answer("no start in B", "result", (("B[start + y, col]", "B[y, col]"),), mistake="every tile of B were the first"),
    Answer(
        "x is the row",
        "unwritten",
        (
            ("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),
            ("x, y = cuda.threadIdx.x, cuda.threadIdx.y", "y, x = cuda.threadIdx.x, cuda.threadIdx.y"),
            ("cuda.blockIdx.y", "cuda.blockIdx.x"),
        ),
        mistake="row and column had changed places, in the grid or in the guard",
    ),
)

RIGHT = (
    right(
        "sums in shared memory",
        (
            "    total = np.float32(0)\n",
            "    total = cuda.shared.array((TILE, TILE), np.float32)\n    total[y, x] = 0\n",
        ),
        ("total += A_tile", "total[y, x] += A_tile"),
        ("C[row, col] = total", "C[row, col] = total[y, x]"),
    ),
    right(
        "decorated afterwards",
        (_DECORATED, "def tiled_matmul"),
        (_STORED, f"{_STORED}\n\n\ntiled_matmul = cuda.jit(tiled_matmul)"),
    ),
    right("helpers in the same cell", cell=_HELPERS),
    right("two tiles of each in turn, one barrier a round", cell=_PING_PONG),
    right("a while loop, zeros first, a local array", cell=_WHILE),
    right(
        "shapes in a constant",
        ("TILE = 16\n", "TILE = 16\nSHAPE = (TILE, TILE)\n"),
        ("A_tile = cuda.shared.array((TILE, TILE)", "A_tile = cuda.shared.array(SHAPE"),
        ("B_tile = cuda.shared.array((TILE, TILE)", "B_tile = cuda.shared.array(SHAPE"),
    ),
    right(
        "padded tiles",
        ("TILE = 16\n", "TILE = 16\nWIDTH = TILE + 1\n"),
        ("A_tile = cuda.shared.array((TILE, TILE)", "A_tile = cuda.shared.array((TILE, WIDTH)"),
    ),
    right(
        "the barrier first in the round",
        ("B_tile[k, x]\n        cuda.syncthreads()\n", "B_tile[k, x]\n"),
        (
            "    for start in range(0, K, TILE):\n",
            "    for start in range(0, K, TILE):\n        cuda.syncthreads()\n",
        ),
    ),
    right(
        "types of numba",
        ("TILE = 16\n", "from numba import float32\n\nTILE = 16\n"),
        ("total = np.float32(0)", "total = float32(0)"),
    ),
    right("half of the threads load A, the others B", (_LOADS, _SPLIT_LOADS)),
)

WRONG = (
    wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 100), TILE)")),
    wrong("the rows that are published", ("    if row < M and col < N:", "    if row < min(M, 64) and col < N:")),
    wrong("the columns that are published", ("    if row < M and col < N:", "    if row < M and col < min(N, 96):")),
    wrong("an even number of products", ("if start + y < K and top + x", "if start + y < K // 2 * 2 and top + x")),
    wrong(
        "C stored in each round",
        (
            "        cuda.syncthreads()\n    if row < M and col < N:\n        C[row, col]",
            "        cuda.syncthreads()\n        if row < M and col < N:\n            C[row, col]",
        ),
    ),
    wrong("the first round is not enough", ("total = np.float32(0)", "total = np.float32(1e-3) * (K == 1)")),
)

SHORTCUTS = (
    shortcut(
        "an alias",
        cell=ATOMIC_TILED.replace("LOAD_A", "A[k, row]").replace("LOAD_B", "B[k, col]").replace("tiled_matmul", "tuned")
        + "\n\ntiled_matmul = tuned\n",
    ),
    shortcut("the book's", cell="from labkit.gemm.fp32.s03_tiled import tiled as tiled_matmul\n"),
    shortcut(
        "no tiles, by atomics",
        cell=naive(
            "tiled_matmul",
            "A, B, C",
            "cuda.atomic.add(A, (k, row), np.float32(0)) * " + ATOMIC_B,
            "C[row, col] = total",
            K="A.shape[0]",
        ),
    ),
    shortcut("tiles of zeros", cell=ATOMIC_TILED.replace("LOAD_A", "A[k, row]").replace("LOAD_B", "B[k, col]")),
    shortcut(
        "tiles of zeros, and atomics",
        cell=ATOMIC_TILED.replace("LOAD_A", "cuda.atomic.add(A, (k, row), np.float32(0))").replace("LOAD_B", ATOMIC_B),
    ),
    shortcut("one tile, and shuffles for the other", cell=ONE_TILE),
    shortcut(
        "loads that do not coalesce",
        (
            "if start + y < K and top + x < M:\n            A_tile[y, x] = A[start + y, top + x]",
            "if start + x < K and row < M:\n            A_tile[x, y] = A[start + x, row]",
        ),
        ("            A_tile[y, x] = 0", "            A_tile[x, y] = 0"),
    ),
    shortcut(
        "a third barrier",
        (
            "    for start in range(0, K, TILE):\n",
            "    for start in range(0, K, TILE):\n        cuda.syncthreads()\n",
        ),
    ),
    shortcut(
        "one warp of each block multiplies",
        (
            "    total = np.float32(0)\n",
            """    sums = cuda.local.array(8, np.float32)
    for i in range(8):
        sums[i] = 0
""",
        ),
        (
            "        for k in range(TILE):\n            total += A_tile[k, y] * B_tile[k, x]\n",
            """        for i in range(8 * (y < 2)):
            for k in range(TILE):
                sums[i] += A_tile[k, y + 2 * i] * B_tile[k, x]
""",
        ),
        (
            "    if row < M and col < N:\n        C[row, col] = total",
            """    for i in range(8 * (y < 2)):
        row = cuda.blockIdx.y * TILE + y + 2 * i
        if row < M and col < N:
            C[row, col] = sums[i]""",
        ),
    ),
    shortcut("half of the threads load", (_LOADS, _HALF_LOADS)),
)

"""Right kernels in other clothes: constants written in other ways, helpers, and other ways to the same end."""

from variants import Variant
from variants.e07_4 import IN_PLACE, IN_REGISTERS
from variants.e10_1 import BY_FREQUENCY
from variants.e10_2 import IN_Y
from variants.e10_3 import THREE_PRODUCTS
from variants.e10_4 import TWO_LINES


def _right(what, *edits):
    return Variant(what, "solved", edits)


def _other(what, cell):
    return Variant(what, "solved", cell=cell)


def _tile(what, text):
    return _right(what, ("TILE = 16\n", f"{text}\n"))


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
_RING = """@cuda.jit
def mended(x, out, rounds):
    hands = cuda.shared.array((3, 64), np.float32)
    me = cuda.threadIdx.x
    hands[0, me] = x[me]
    for r in range(rounds):
        cuda.syncthreads()
        hands[(r + 1) % 3, me] = hands[r % 3, me - 1 if me > 0 else 63]
    out[me] = hands[rounds % 3, me]
"""
_TILED_05_4 = "        C[row, col] = alpha * total + (beta * C[row, col] if beta != 0 else zero)"

_RIM_APART = """HIGH, WIDE = 8, 32
RR, CC, CS = HIGH + 4, WIDE + 4, WIDE + 2


@cuda.jit(device=True)
def heat(tile, r, c, middle, rate):
    around = tile[r - 1, c] + tile[r + 1, c] + tile[r, c - 1] + tile[r, c + 1]
    return middle + rate * (around - np.float32(4) * middle)


@cuda.jit
def two_steps(t, later, rate):
    now = cuda.shared.array((RR, CC), np.float32)
    soon = cuda.shared.array((RR, CC), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    H, W = t.shape
    top, left = cuda.blockIdx.y * HIGH - 2, cuda.blockIdx.x * WIDE - 2
    row, col = top + y + 2, left + x + 2
    n = y * WIDE + x
    mine = np.float32(0)
    if row < H and col < W:
        mine = t[row, col]
    now[y + 2, x + 2] = mine
    # the rim: two rows above, two below, two columns on each side
    if n < 4 * (WIDE + 4):
        r, c = n // (WIDE + 4), n % (WIDE + 4)
        r = r if r < 2 else HIGH + r
        inside = 0 <= top + r < H and 0 <= left + c < W
        now[r, c] = t[top + r, left + c] if inside else np.float32(0)
    elif n < 4 * (WIDE + 4) + 4 * HIGH:
        m = n - 4 * (WIDE + 4)
        r, c = m // 4 + 2, m % 4
        c = c if c < 2 else WIDE + c
        inside = 0 <= top + r < H and 0 <= left + c < W
        now[r, c] = t[top + r, left + c] if inside else np.float32(0)
    cuda.syncthreads()
    if row < H and col < W:
        mine = heat(now, y + 2, x + 2, mine, rate)
    soon[y + 2, x + 2] = mine
    if n < 2 * WIDE:
        r, c = (1 if n < WIDE else HIGH + 2), n % WIDE + 2
        inside = 0 <= top + r < H and 0 <= left + c < W
        soon[r, c] = heat(now, r, c, now[r, c], rate) if inside else np.float32(0)
    elif n < 2 * WIDE + 2 * HIGH:
        m = n - 2 * WIDE
        r, c = m // 2 + 2, (1 if m % 2 == 0 else WIDE + 2)
        inside = 0 <= top + r < H and 0 <= left + c < W
        soon[r, c] = heat(now, r, c, now[r, c], rate) if inside else np.float32(0)
    cuda.syncthreads()
    if row < H and col < W:
        later[row, col] = heat(soon, y + 2, x + 2, mine, rate)
"""
_OWN_COLUMN = """HIGH, WIDE = 8, 32
RR, CC, CS = HIGH + 4, WIDE + 4, WIDE + 2


@cuda.jit(device=True)
def heat(tile, r, c, rate):
    around = tile[r - 1, c] + tile[r + 1, c] + tile[r, c - 1] + tile[r, c + 1]
    return tile[r, c] + rate * (around - np.float32(4) * tile[r, c])


@cuda.jit
def two_steps(t, later, rate):
    now = cuda.shared.array((RR, CC), np.float32)
    soon = cuda.shared.array((HIGH, CS), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    H, W = t.shape
    zero = np.float32(0)
    top, left = cuda.blockIdx.y * HIGH - 2, cuda.blockIdx.x * WIDE - 2
    row, col = top + y + 2, left + x + 2
    n = y * WIDE + x
    for i in range(n, (HIGH + 4) * (WIDE + 4), HIGH * WIDE):
        r, c = i // (WIDE + 4), i % (WIDE + 4)
        now[r, c] = t[top + r, left + c] if 0 <= top + r < H and 0 <= left + c < W else zero
    cuda.syncthreads()
    up = heat(now, y + 1, x + 2, rate) if row > 0 and col < W and row - 1 < H else zero
    down = heat(now, y + 3, x + 2, rate) if row + 1 < H and col < W else zero
    middle = heat(now, y + 2, x + 2, rate) if row < H and col < W else zero
    soon[y, x + 1] = middle
    if x < 2:
        c = 1 if x == 0 else WIDE + 2
        soon[y, c - 1] = heat(now, y + 2, c, rate) if row < H and 0 <= left + c < W else zero
    cuda.syncthreads()
    if row < H and col < W:
        around = up + down + soon[y, x] + soon[y, x + 2]
        later[row, col] = middle + rate * (around - np.float32(4) * middle)
"""

_GROUPS = (
    "    return call.x",
    "    last = call.layout == 'NHWC'\n"
    "    taps = (call.w[0], call.w[1], call.w[2]) if last else (call.w[0], call.w[2], call.w[3])\n"
    "    groups = call.x[3] // call.w[3] if last else call.x[1] // call.w[1]\n"
    "    return call.x",
)

RIGHT = {
    "00.1": (
        _other("three hands in a ring", _RING),
        _right("the sum of what is beside one", ("(me - 1) % 64", "(me + 63) % 64")),
        _right("a while loop", ("    for _ in range(rounds):\n", "    for r in range(rounds, 0, -1):\n")),
    ),
    "01.1": (
        _right("loops with steps", ("range(C.shape[0])", "range(0, C.shape[0], 1)")),
        _right(
            "names for the sides",
            ("    for i in range(C.shape[0])", "    M, K = A.shape\n    for i in range(M)"),
            ("range(A.shape[1])", "range(K)"),
        ),
    ),
    "01.2": (
        _right(
            "j in the middle of nothing",
            ("                C[i, j] += A[k, i] * B[k, j]", "                C[i, j] = C[i, j] + B[k, j] * A[k, i]"),
        ),
    ),
    "01.3": (
        _right("a block of 32, folded", ("BLOCK = 32", "BLOCK = 1 << 5")),
        _right(
            "rows of B last",
            (
                "    for k0 in range(0, K, BLOCK):\n        for j0 in range(0, N, BLOCK):\n",
                "    for j0 in range(0, N, BLOCK):\n        for k0 in range(0, K, BLOCK):\n",
            ),
        ),
    ),
    "02.1": (
        _right("the index by hand", ("cuda.grid(1)", "cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x")),
        _right(
            "an early return",
            (
                "    if i < out.size:\n        out[i]",
                "    if i >= x.shape[0]:\n        return\n    if True:\n        out[i]",
            ),
        ),
        _right("len", ("out.size", "len(out)")),
        _right("another name for cuda", ("@cuda.jit", "from numba import cuda as nc\n\n\n@cuda.jit")),
        _right("decorated by a call", ("@cuda.jit", "@cuda.jit()")),
        _right("decorated with an option", ("@cuda.jit", "@cuda.jit(fastmath=False)")),
        _right("a docstring", ("    i = cuda.grid(1)", '    """out = a x + y"""\n    i = cuda.grid(1)')),
        _other(
            "a helper",
            "@cuda.jit(device=True)\ndef axpy(a, x, y):\n    return a * x + y\n\n\n"
            "@cuda.jit\ndef saxpy(a, x, y, out):\n    i = cuda.grid(1)\n"
            "    if i < out.size:\n        out[i] = axpy(a, x[i], y[i])\n",
        ),
        _other(
            "decorated afterwards",
            "def saxpy(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
            "        out[i] = a * x[i] + y[i]\n\n\nsaxpy = cuda.jit(saxpy)\n",
        ),
        _other(
            "decorated afterwards, by a call",
            "def saxpy(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
            "        out[i] = a * x[i] + y[i]\n\n\nsaxpy = cuda.jit()(saxpy)\n",
        ),
    ),
    "02.2": (_right("no names for the indices", ("A[row, col] + B[row, col]", "B[row][col] + A[row][col]")),),
    "02.3": (
        _right("constants in a chain", ("PER_THREAD = 4", "N = PER_THREAD = 4")),
        _right("a constant that is added to", ("PER_THREAD = 4", "PER_THREAD = 3\nPER_THREAD += 1")),
    ),
    "02.4": (
        _right(
            "alpha in the sum",
            ("total += A[row, k] * B[k, col]", "total += alpha * A[row, k] * B[k, col]"),
            ("= alpha * total", "= total"),
        ),
        _right("backwards", ("range(A.shape[1])", "range(A.shape[1] - 1, -1, -1)")),
    ),
    "03.1": (
        _right(
            "barrier first",
            ("B_tile[k, x]\n        cuda.syncthreads()\n", "B_tile[k, x]\n"),
            ("        A_tile[y, x] =", "        cuda.syncthreads()\n        A_tile[y, x] ="),
        ),
        _right(
            "folded shapes",
            ("TILE = 8\n", "TILE = 8\nSHAPE = TILE, TILE\n"),
            ("A_tile = cuda.shared.array((TILE, TILE)", "A_tile = cuda.shared.array(SHAPE"),
        ),
    ),
    "03.2": (
        _right("a width from the ceiling", ("WIDTH = TILE + 1", "import math\nWIDTH = math.ceil(TILE * 33 / 32)")),
        _right("a width in steps", ("WIDTH = TILE + 1", "WIDTH = TILE\nWIDTH += 1")),
    ),
    "03.3": (
        _tile("added to", "TILE = 4\nTILE += 12"),
        _tile("multiplied", "TILE = 4\nTILE *= 4"),
        _tile("in a chain", "P = TILE = 16"),
        _tile("a length", "TILE = len((1, 2, 3, 4)) ** 2"),
        _tile("a ceiling", "from math import ceil\nTILE = ceil(15.2)"),
        _tile("a root", "import math\nTILE = int(math.sqrt(256))"),
        _tile("unpacked", "(TILE, OTHER), REST = (16, 8), 4"),
        _tile("an entry", "SIZES = 8, 16, 32\nTILE = SIZES[1]"),
        _tile("annotated", "TILE: int = max(8, 16)"),
        _tile("a list of targets", "[TILE, OTHER] = 16, 32"),
    ),
    "03.4": (
        _right(
            "sums in shared memory",
            (
                "    total = np.float32(0)\n",
                "    total = cuda.shared.array((TILE, TILE), np.float32)\n    total[y, x] = 0\n",
            ),
            ("total += A_tile", "total[y, x] += A_tile"),
            ("C[row, col] = total", "C[row, col] = total[y, x]"),
        ),
        _right(
            "decorated afterwards",
            (_DECORATED, "def tiled_matmul"),
            (_STORED, f"{_STORED}\n\n\ntiled_matmul = cuda.jit(tiled_matmul)"),
        ),
        _other("helpers in the same cell", _HELPERS),
        _other("two tiles of each in turn, one barrier a round", _PING_PONG),
        _other("a while loop, zeros first, a local array", _WHILE),
        _right(
            "shapes in a constant",
            ("TILE = 16\n", "TILE = 16\nSHAPE = (TILE, TILE)\n"),
            ("A_tile = cuda.shared.array((TILE, TILE)", "A_tile = cuda.shared.array(SHAPE"),
            ("B_tile = cuda.shared.array((TILE, TILE)", "B_tile = cuda.shared.array(SHAPE"),
        ),
        _right(
            "padded tiles",
            ("TILE = 16\n", "TILE = 16\nWIDTH = TILE + 1\n"),
            ("A_tile = cuda.shared.array((TILE, TILE)", "A_tile = cuda.shared.array((TILE, WIDTH)"),
        ),
        _right(
            "the barrier first in the round",
            ("B_tile[k, x]\n        cuda.syncthreads()\n", "B_tile[k, x]\n"),
            (
                "    for start in range(0, K, TILE):\n",
                "    for start in range(0, K, TILE):\n        cuda.syncthreads()\n",
            ),
        ),
        _right(
            "types of numba",
            ("TILE = 16\n", "from numba import float32\n\nTILE = 16\n"),
            ("total = np.float32(0)", "total = float32(0)"),
        ),
    ),
    "04.1": (
        _right(
            "fences of all lanes",
            (
                "        cuda.threadfence()\n        before",
                "        cuda.threadfence()\n        cuda.threadfence()\n        before",
            ),
        ),
        _right("a power", ("total += apart * apart", "total += apart ** 2")),
    ),
    "04.2": (_right("products in another order", ("        xy += x * y\n", "        xy = xy + y * x\n")),),
    "04.3": (
        _right("ten", ("BATCH = 8", "BATCH = 2 * 5")),
        _right("twelve, in steps", ("BATCH = 8", "BATCH = 8\nBATCH += 4")),
    ),
    "04.4": (_other("sums by xor, and another lane", _XOR_SUM),),
    "05.1": (_right("constants one by one", ("BM, BN, BK, TM = 32, 32, 8, 4", "BM = BN = 32\nBK = 8\nTM = BM // BK")),),
    "05.2": (_right("in a chain", ("BM, BN, TM, TN = 32, 32, 4, 4", "BM = BN = 32\nTM = TN = 4")),),
    "05.3": (
        _right(
            "swapped when stored and read",
            ("tile[k, row ^ k * 4]", "tile[k, (row + 4 * k) % BM]"),
            ("tile[k, t ^ k * 4]", "tile[k, (t + 4 * k) % BM]"),
        ),
    ),
    "05.4": (
        _right(
            "in one line",
            (
                "        if beta == 0:\n            C[row, col] = alpha * total\n        else:\n"
                "            C[row, col] = alpha * total + beta * C[row, col]",
                _TILED_05_4,
            ),
        ),
    ),
    "06.1": (
        _right("another format's name", ("FORMAT = ptx.FP16", "HALF = FORMAT = ptx.FP16")),
        _right(
            "the sums stored one by one",
            (
                "    C[top + g, left + 2 * t], C[top + g, left + 2 * t + 1] = sums[0], sums[1]",
                "    C[top + g, left + 2 * t] = sums[0]\n    C[top + g, left + 2 * t + 1] = sums[1]",
            ),
        ),
    ),
    "06.2": (_right("the other way round", ("piece ^ row % 8", "row % 8 ^ piece")),),
    "06.3": (_right("waiting for everything", ("cp_async_wait(AHEAD)", "cp_async_wait(0)")),),
    "06.4": (
        _right(
            "constants for the sides",
            ("FORMAT = ptx.FP16", "FORMAT = ptx.FP16\nROWS = COLUMNS = 4"),
            ("cuda.local.array((4, 4)", "cuda.local.array((ROWS, COLUMNS)"),
        ),
    ),
    "07.1": (
        _right("ceilings from one less", ("(H + stride - 1) // stride,", "(H - 1) // stride + 1,")),
        _right(
            "zeros behind first",
            (
                "max(0, (P - 1) * stride + R - H) // 2",
                "max(0, (P - 1) * stride + R - H) - (max(0, (P - 1) * stride + R - H) + 1) // 2",
            ),
        ),
        _right("taps from the last to the first", ("for s in range(S)", "for s in range(S - 1, -1, -1)")),
    ),
    "07.2": (
        _right(
            "by while",
            (
                "    for i in range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE):\n",
                "    i = ty * WIDE + tx\n    while i < ROWS * COLS:\n",
            ),
            (
                "            tile[row, col] = x[top + row, left + col]\n",
                "            tile[row, col] = x[top + row, left + col]\n        i += HIGH * WIDE\n",
            ),
        ),
        _right(
            "two rounds",
            (
                "    for i in range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE):\n",
                "    for j in range(2):\n        i = j * HIGH * WIDE + ty * WIDE + tx\n",
            ),
            ("        if top + row < H and", "        if row < ROWS and top + row < H and"),
        ),
        _right(
            "zeros beyond the image",
            (
                "        if top + row < H and left",
                "        tile[row, col] = np.float32(0)\n        if top + row < H and left",
            ),
        ),
        _right("by divmod", ("row, col = i // COLS, i % COLS", "row, col = divmod(i, COLS)")),
        _right(
            "a padded tile",
            ("cuda.shared.array((ROWS, COLS), np.float32)", "cuda.shared.array((ROWS, 37), np.float32)"),
        ),
    ),
    "07.3": (
        _right(
            "channels outside",
            (
                "        for r in range(R):\n            for s in range(S):\n                for c in range(C):",
                "        for c in range(C):\n            for r in range(R):\n                for s in range(S):",
            ),
        ),
        _right("unsigned indices", ("k // (K // groups) * C", "np.uint32(k) // np.uint32(K // groups) * np.uint32(C)")),
        _right("negative indices", ("w[R - 1 - r, S - 1 - s, c, k]", "w[-1 - r, -1 - s, c, k]")),
        _right(
            "fused multiply-adds",
            (
                "total += pixel * w[R - 1 - r, S - 1 - s, c, k]",
                "total = cuda.fma(pixel, w[R - 1 - r, S - 1 - s, c, k], total)",
            ),
        ),
    ),
    "07.4": (
        _other("own pixels and the rim apart", _RIM_APART),
        _other("above and below its own", _OWN_COLUMN),
        _right(
            "the middle kept aside",
            (
                "heated = now[r, c] + rate * (around - np.float32(4) * now[r, c])",
                "middle = now[r, c]\n            heated = middle + rate * (around - np.float32(4) * middle)",
            ),
        ),
        _right(
            "the middle taken away four times",
            (
                "around - np.float32(4) * soon[r, c])",
                "around - soon[r, c] - soon[r, c] - soon[r, c] - soon[r, c])",
            ),
        ),
        _other("one tile, in place", IN_PLACE),
        _other("the second step from five first ones of its own", IN_REGISTERS),
    ),
    "08.1": (
        _right(
            "unsigned", ("npq, rsc = cuda.grid(2)", "npq, rsc = np.uint32(cuda.grid(2)[0]), np.uint32(cuda.grid(2)[1])")
        ),
        _right("what is left is subtracted", ("rsc // C % S, rsc % C", "rsc // C % S, rsc - rsc // C * C")),
        _right("R is counted", ("rsc // (S * C), rsc", "rsc // C // S, rsc")),
    ),
    "08.2": (
        _right("as a product", (">> np.uint64(32)\n", "// np.uint64(2**32)\n")),
        _right(
            "the sum halved",
            ("(high + np.uint64(n)) >> np.uint64(shift)", "(high + n >> np.uint64(shift))"),
        ),
        _right(
            "with the bit put back",
            (
                "np.uint64(n) * np.uint64(multiplier) >> np.uint64(32)",
                "np.uint64(n) * np.uint64(multiplier) >> np.uint64(32)\n        n = np.uint32(n)",
            ),
        ),
    ),
    "08.3": (
        _right(
            "bytes counted apart",
            (
                "ptx.cp_async(tile, (i, t), x, row * W + col, 4, 4 if inside else 0)",
                "valid = np.uint32(4) if inside else np.uint32(0)\n"
                "        ptx.cp_async(tile, (i, t), x, row * W + col, 4, valid)",
            ),
        ),
        _right("a place inside for what lies outside", ("row * W + col, 4", "(row * W + col if inside else 0), 4")),
        _right("a group for each copy", ("    ptx.cp_async_commit()\n", "        ptx.cp_async_commit()\n")),
    ),
    "08.4": (
        _right(
            "a tile that is padded",
            ("x_tile = cuda.shared.array((TILE, TILE)", "x_tile = cuda.shared.array((TILE, 17)"),
        ),
        _right("constants", ("start in range(0, C * L, TILE)", "start in range(0, C * L, 16)")),
        _right(
            "fused",
            (
                "total += w_tile[down, i] * x_tile[i, across]",
                "total = cuda.fma(w_tile[down, i], x_tile[i, across], total)",
            ),
        ),
    ),
    "09.1": (
        _right("by fused multiply-adds", ("two * d0 - three * d1 + d2", "cuda.fma(two, d0, cuda.fma(-three, d1, d2))")),
        _right("by differences", ("two * d1 - three * d2 + d3", "d3 - d2 - two * (d2 - d1)")),
        _right(
            "one after the other",
            (
                "V[0, t], V[1, t], V[2, t], V[3, t] = v0, v1, v2, v3",
                "V[0, t] = v0\n        V[1, t], V[2, t] = v1, v2\n        V[3, t] = v3",
            ),
        ),
    ),
    "09.2": (
        _right(
            "by unsigned comparisons",
            (
                "0 <= row < x.shape[0] and 0 <= col < x.shape[1]",
                "np.uint64(row) < np.uint64(x.shape[0]) and np.uint64(col) < np.uint64(x.shape[1])",
            ),
        ),
        _right(
            "a branch around all",
            (
                "            d[i, j] = 0\n            if 0 <= row",
                "            d[i, j] = np.float32(0)\n            if 0 <= row",
            ),
        ),
        _right(
            "both outputs asked for",
            (
                "        if row < y.shape[0]:\n            y[row, col] =",
                "        if row < y.shape[0] and col < y.shape[1]:\n            y[row, col] =",
            ),
        ),
        _right(
            "columns first",
            ("0 <= row < x.shape[0] and 0 <= col < x.shape[1]", "0 <= col < x.shape[1] and 0 <= row < x.shape[0]"),
        ),
    ),
    "09.3": (
        _right(
            "from the largest to the smallest",
            ("range(2, 7)", "range(6, 1, -1)"),
            ("count < least", "count < least or count == least and tile > m > 1 and tile != 1"),
        ),
        _right(
            "F(1 x 1) in the loop",
            ("least, tile = P[i] * Q[i] * R[i] * R[i], 1", "least, tile = 1 << 40, 0"),
            ("range(2, 7)", "range(1, 7)"),
        ),
        _right("a square", ("(m + R[i] - 1) * (m + R[i] - 1)", "(m + R[i] - 1) ** 2")),
    ),
    "09.4": (
        _right("numbers of V kept", ("m[i] += U[i, c] * V[i, c, t]", "m[i] = cuda.fma(U[i, c], V[i, c, t], m[i])")),
        _right(
            "zeros by a condition",
            (
                "                d[i] = 0\n                if 2 * t + i < x.shape[1]:\n"
                "                    d[i] = x[c, 2 * t + i]\n",
                "                d[i] = x[c, 2 * t + i] if 2 * t + i < x.shape[1] else np.float32(0)\n",
            ),
        ),
        _right("written out", ("d[3] + d[4] - four * (d[1] + d[2])", "d[3] + d[4] - four * d[1] - four * d[2]")),
    ),
    "10.1": (
        _other("split by frequency, reversed at the end", BY_FREQUENCY),
        _right(
            "two bits at a time swapped",
            (
                "        place, rest = 0, k\n        for _ in range(digits):\n"
                "            place, rest = 4 * place + rest % 4, rest // 4\n",
                "        bits = np.uint32(cuda.brev(np.uint32(k)) >> np.uint32(32 - 2 * digits))\n"
                "        place = (bits & 0x55555555) << 1 | bits >> 1 & 0x55555555\n",
            ),
        ),
        _right(
            "bits of a digit by shifts",
            ("place, rest = 4 * place + rest % 4, rest // 4", "place, rest = place << 2 | rest & 3, rest >> 2"),
        ),
        _right(
            "from the first digit on",
            (
                "        place, rest = 0, k\n        for _ in range(digits):\n"
                "            place, rest = 4 * place + rest % 4, rest // 4\n",
                "        place, weight, rest = 0, points // 4, k\n        while weight > 0:\n"
                "            place += rest % 4 * weight\n            rest //= 4\n            weight //= 4\n",
            ),
        ),
        _right(
            "each place asks which point it takes",
            (
                "re[place], im[place] = x[line, k, 0], x[line, k, 1]",
                "re[k], im[k] = x[line, place, 0], x[line, place, 1]",
            ),
        ),
    ),
    "10.2": (
        _other("only the taps that there are", IN_Y),
        _right(
            "turned while loading",
            ("taps[t] = w[t] if t < S", "taps[t] = w[S - 1 - t] if t < S"),
            ("tile[(t - s) % T]", "tile[(t + s + 1 - S) % T]"),
        ),
        _right(
            "a sum by fma",
            ("total += taps[s] * tile[(t - s) % T]", "total = cuda.fma(taps[s], tile[(t - s) % T], total)"),
        ),
        _right(
            "T - S + 1 under a name",
            (
                "    begin = cuda.blockIdx.x * (T - S + 1) - (S - 1)\n",
                "    stained = S - 1\n    begin = cuda.blockIdx.x * (T - stained) - stained\n",
            ),
        ),
    ),
    "10.3": (
        _other("three products", THREE_PRODUCTS),
        _right(
            "the sign as a factor",
            (
                "        if turned == 0:\n            w_im = -w_im\n",
                "        w_im *= np.float32(1) if turned else np.float32(-1)\n",
            ),
        ),
        _right("negative indices", ("Y[line, T - k, 0], Y[line, T - k, 1]", "Y[line, -k, 0], Y[line, -k, 1]")),
    ),
    "10.4": (
        _right("a line for each number", *TWO_LINES),
        _right(
            "rounded",
            ("int(im[k] / np.float32(2 * points) + np.float32(0.5))", "int(round(im[k] / np.float32(2 * points)))"),
        ),
        _right(
            "a digit and what is left",
            (
                "            product[k] = carry % 10\n            carry //= 10",
                "            left = carry // 10\n            product[k] = carry - 10 * left\n            carry = left",
            ),
        ),
        _right("another thread carries", ("if t == 0:", "if t == 127:")),
    ),
    "11.1": (
        _right(
            "a helper",
            ("def applies(", "def is_plain(a, b):\n    return a == b == 1\n\n\ndef applies("),
            ("problem.stride_h == 1 and problem.stride_w == 1", "is_plain(problem.stride_h, problem.stride_w)"),
        ),
        _right(
            "a constant",
            ("def applies(", "TAPS = 3\n\n\ndef applies("),
            ("problem.R == 3 and problem.S == 3", "problem.R == TAPS == problem.S"),
        ),
        _right(
            "all of a list",
            (
                "return taps and strides and dilations and problem.groups == 1",
                "return all([taps, strides, dilations, problem.groups == 1])",
            ),
        ),
        _right(
            "with types",
            ("def applies(problem, format):", "def applies(problem: Forward, format: str) -> bool:"),
            ("taps = problem.R == 3", "taps: bool = problem.R == 3"),
        ),
        _right("a text that begins so", ('format != "float32"', "not format.startswith('float32')")),
        _right(
            "strides that make one",
            ("problem.stride_h == 1 and problem.stride_w == 1", "problem.stride_h * problem.stride_w == 1"),
        ),
    ),
    "11.2": (
        _right(
            "a dictionary's items",
            ("return call.x, call.w, stride,", "return frozenset({'x': call.x, 'w': call.w}.items()), stride,"),
        ),
        _right(
            "text with marks between", ("return call.x, call.w,", "return ' '.join(str(n) for n in call.x + call.w),")
        ),
        _right(
            "one key of two", ("return call.x, call.w, stride,", "shapes = call.x, call.w\n    return shapes, stride,")
        ),
        _right("with a list comprehension", ("(call.padding,) * 4", "tuple([call.padding for _ in range(4)])")),
        _right("an f-string", ("return call.x,", "return f'{call.x}',")),
        _right("as Python writes it", ("return call.x,", "return repr(call.x),")),
        _right("groups in place of a group's channels", ("call.w, stride", "taps, groups, stride"), _GROUPS),
        _right("one tuple of all numbers", ("call.x, call.w, stride, padding,", "call.x + call.w + stride + padding,")),
        _right(
            "less than nothing for no limit",
            ("call.limit_bytes", "-1 if call.limit_bytes is None else call.limit_bytes"),
        ),
        _right("the limit in KB", ("call.limit_bytes", "call.limit_bytes and call.limit_bytes / 1024")),
    ),
    "11.3": (
        _right(
            "min over a filter",
            (
                "    best = None\n    for",
                "    best = None\n    rows = tuple(filter(lambda row: not row.reason, rows))\n    for",
            ),
        ),
        _right(
            "a limit for none",
            (
                "    best = None\n",
                "    limit_bytes = 10**30 if limit_bytes is None else limit_bytes\n    best = None\n".replace(
                    "10**30", "1000000000000000000"
                ),
            ),
        ),
        _other(
            "the next of a sorted list",
            """
def fitting(rows, limit_bytes):
    order = sorted(rows, key=lambda row: (row.time_ms or 0, row.workspace_bytes or 0))
    fits = (row for row in order if not row.reason and (limit_bytes is None or row.workspace_bytes <= limit_bytes))
    return next((row.algorithm for row in fits), None)
""",
        ),
        _other(
            "infinity for no limit",
            """
NO_LIMIT = None


def fitting(rows, limit_bytes):
    most = float("inf") if limit_bytes is NO_LIMIT else limit_bytes
    fits = [(time, size) for _, time, size, reason in rows if reason == "" and size <= most]
    best = min(fits, default=None)
    for name, time, size, reason in rows:
        if not reason and (time, size) == best:
            return name
""",
        ),
        _other(
            "chosen by hand",
            """
def fitting(rows, limit_bytes):
    left = list(rows)
    while left:
        first = left[0]
        for row in left:
            if row.time_ms is not None and (first.time_ms is None or row.time_ms < first.time_ms):
                first = row
        for row in left:
            if row.time_ms == first.time_ms and row.time_ms is not None and row.workspace_bytes < first.workspace_bytes:
                first = row
        if first.time_ms is None:
            return None
        if limit_bytes is None or first.workspace_bytes <= limit_bytes:
            return first.algorithm
        left.remove(first)
    return None
""",
        ),
        _other(
            "enumerated",
            """
def fitting(rows, limit_bytes):
    found = []
    for place, row in enumerate(rows):
        fits = limit_bytes is None or (row.workspace_bytes or 0) <= limit_bytes
        if not row.reason and fits:
            found.append((row.time_ms, row.workspace_bytes, place))
    return rows[min(found)[2]].algorithm if found else None
""",
        ),
    ),
    "11.4": (
        _right(
            "rounds by halves",
            (
                "    while length < numbers:\n        rounds, length = rounds + 1, length * 2\n",
                "    left = numbers\n    while left > 1:\n        rounds, left = rounds + 1, (left + 1) // 2\n",
            ),
        ),
        _right("by get", ("key=lambda name: times[name]", "key=times.get")),
        _right("sorted", ("min(times, key=lambda name: times[name])", "sorted(times, key=times.get)[0]")),
        _right(
            "factors in another order", ("costs.merge_ns * numbers * rounds", "rounds * (numbers * costs.merge_ns)")
        ),
        _right(
            "pairs of time and name",
            ("times = {", "times: dict[str, float] = {"),
            ("min(times, key=lambda name: times[name])", "min((time, name) for name, time in times.items())[1]"),
        ),
        _right("memory in elements", ("4 * keys <= free_bytes", "keys <= free_bytes // 4")),
    ),
    "12.1": (
        _right(
            "from the last part on", ("for p in range(count.shape[0]):", "for p in range(count.shape[0] - 1, -1, -1):")
        ),
        _right("the mean weighed", ("average += away * share", "average = average + share * away")),
        _right("the squares by both distances", ("away * away * total * share", "away * (away - away * share) * n")),
        _right(
            "cross term by the larger",
            ("away * away * total * share", "away * away * min(total, n) * max(share, np.float32(1) - share)"),
        ),
        _right(
            "from the middle out",
            (
                "for p in range(count.shape[0]):",
                """for k in range(count.shape[0]):
            p = (k + count.shape[0] // 2) % count.shape[0]""",
            ),
        ),
        _right(
            "a grid-stride loop",
            (
                "    c = cuda.grid(1)\n    if c < mean.size:",
                "    for c in range(cuda.grid(1), mean.size, cuda.gridsize(1)):",
            ),
        ),
        _other(
            "continue, and squares last",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c >= mean.size:
        return
    total = average = away_squared = np.float32(0)
    p = 0
    while p < count.shape[0]:
        n = count[p, c]
        p += 1
        if n <= np.float32(0):
            continue
        both = total + n
        d = means[p - 1, c] - average
        average += d * (n / both)
        away_squared += squares[p - 1, c] + d * d * (total * n / both)
        total = both
    mean[c] = average
    variance[c] = away_squared / total
""",
        ),
        _other(
            "about the first mean with a rest",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total = shift = a = b = np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = count[p, c], means[p, c], squares[p, c]
            if n > np.float32(0):
                if total == np.float32(0):
                    shift = m
                d = m - shift
                total, a, b = total + n, a + n * d, b + s + n * d * d
        mean[c] = shift + a / total
        variance[c] = (b - a * a / total) / total
""",
        ),
        _other(
            "a running pair merged symmetrically",
            """@cuda.jit(device=True)
def both(n, m, s, k, v, t):
    total = n + k
    d = v - m
    return total, (n * m + k * v) / total, s + t + d * d * n * k / total


@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        n = m = s = np.float32(0)
        for p in range(count.shape[0]):
            k, v, t = count[p, c], means[p, c], squares[p, c]
            if k != np.float32(0):
                n, m, s = both(n, m, s, k, v, t)
        mean[c], variance[c] = m, s / n
""",
        ),
        _right(
            "the mean weighed from the other side",
            ("average += away * share", "average = its_mean - away * (total / (total + n))"),
        ),
    ),
    "12.2": (
        _right("from the last element on", ("range(lane, X.shape[1], 32)", "range(X.shape[1] - 1 - lane, -1, -32)")),
        _right(
            "by both means",
            ("(sum_xy - sum_x * sum_y / count) / count", "sum_xy / count - sum_x / count * (sum_y / count)"),
        ),
        _right("the first element left out", ("range(lane, X.shape[1], 32)", "range(lane + 1, X.shape[1], 32)")),
        _right(
            "the last element, by shuffles",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    at = X.shape[1] - 1
    first_x = cuda.shfl_sync(0xFFFFFFFF, X[row, at], 31)
    first_y = cuda.shfl_sync(0xFFFFFFFF, Y[row, at], 31)
""",
            ),
        ),
        _other(
            "means of distances",
            """
@cuda.jit
def covariance(X, Y, result):
    row, lane, N = cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    at_x = X[row, lane % N]
    at_y = Y[row, lane % N]
    at_x, at_y = cuda.shfl_sync(0xFFFFFFFF, at_x, 0), cuda.shfl_sync(0xFFFFFFFF, at_y, 0)
    a = b = ab = np.float32(0)
    i = lane
    while i < N:
        u = X[row, i] - at_x
        v = Y[row, i] - at_y
        a, b, ab = a + u, b + v, ab + u * v
        i += cuda.blockDim.x
    for away in (1, 2, 4, 8, 16):
        a += cuda.shfl_xor_sync(0xFFFFFFFF, a, away)
        b += cuda.shfl_xor_sync(0xFFFFFFFF, b, away)
        ab += cuda.shfl_xor_sync(0xFFFFFFFF, ab, away)
    a, b, ab = a / np.float32(N), b / np.float32(N), ab / np.float32(N)
    if lane == 31:
        result[row] = ab - a * b
""",
        ),
        _other(
            "lanes merged by Chan",
            """
@cuda.jit
def covariance(X, Y, result):
    row, lane, N = cuda.blockIdx.x, cuda.threadIdx.x, X.shape[1]
    fx, fy = X[row, 0], Y[row, 0]
    n = mx = my = m = np.float32(0)
    for i in range(lane, N, 32):
        n += np.float32(1)
        dx = X[row, i] - fx - mx
        dy = Y[row, i] - fy - my
        mx += dx / n
        my += dy / n
        m += dx * (dy - dy / n)
    for away in (16, 8, 4, 2, 1):
        k = cuda.shfl_xor_sync(0xFFFFFFFF, n, away)
        ox = cuda.shfl_xor_sync(0xFFFFFFFF, mx, away)
        oy = cuda.shfl_xor_sync(0xFFFFFFFF, my, away)
        o = cuda.shfl_xor_sync(0xFFFFFFFF, m, away)
        total = n + k
        if total > np.float32(0):
            dx, dy = ox - mx, oy - my
            m += o + dx * dy * (n * k / total)
            mx += dx * (k / total)
            my += dy * (k / total)
        n = total
    if lane == 0:
        result[row] = m / n
""",
        ),
        _right(
            "one shift at a time",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    first_x = X[row, X.shape[1] // 3]
    first_y = Y[row, X.shape[1] - 1]
""",
            ),
        ),
    ),
    "12.3": (
        _right(
            "a comparison in place of max",
            ("max(value, np.float32(0))", "value if value > np.float32(0) else np.float32(0)"),
        ),
        _right("from the last row on", ("range(first, rows, threads)", "range(rows - 1 - first, -1, -threads)")),
        _right(
            "the residual first",
            ("(x[row, c] - centre) * scale + shift + z[row, c]", "z[row, c] + shift + (x[row, c] - centre) * scale"),
        ),
        _right(
            "rows one after the other, in whole",
            (
                "range(first, rows, threads)",
                "range(-(-rows // threads) * first, min(rows, -(-rows // threads) * (first + 1)))",
            ),
        ),
        _right(
            "by fma",
            (
                "(x[row, c] - centre) * scale + shift + z[row, c]",
                "z[row, c] + cuda.fma(x[row, c] - centre, scale, shift)",
            ),
        ),
        _right("zero first", ("max(value, np.float32(0))", "max(np.float32(0), value)")),
        _right(
            "folded with a product",
            ("weight[c] / sqrt(variance[c] + eps)", "np.float32(1) / sqrt(variance[c] + eps) * weight[c]"),
        ),
        _other(
            "folded, with while",
            """
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, row = cuda.grid(2)
    if c >= x.shape[1]:
        return
    scale = weight[c] / sqrt(variance[c] + eps)
    shift = bias[c] - mean[c] * scale
    while row < x.shape[0]:
        value = cuda.fma(x[row, c], scale, shift) + z[row, c]
        if value < np.float32(0):
            value = np.float32(0)
        y[row, c] = value
        row += cuda.gridDim.y * cuda.blockDim.y
""",
        ),
        _other(
            "the root divided each time",
            """
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, first = cuda.grid(2)
    if c < x.shape[1]:
        m, w, b, root = mean[c], weight[c], bias[c], sqrt(variance[c] + eps)
        for row in range(first, x.shape[0], cuda.gridsize(2)[1]):
            normal = (x[row, c] - m) / root
            y[row, c] = max(normal * w + b + z[row, c], np.float32(0))
""",
        ),
        _right("by the absolute value", ("max(value, np.float32(0))", "(value + abs(value)) * np.float32(0.5)")),
        _right(
            "by a product with a comparison", ("max(value, np.float32(0))", "value * np.float32(value > np.float32(0))")
        ),
    ),
    "12.4": (
        _right("a division for each", ("shared[i] * scale * weight[i]", "shared[i] * (weight[i] * scale)")),
        _right("by xor", ("cuda.shfl_down_sync", "cuda.shfl_xor_sync")),
        _right(
            "scaled where it is kept", ("        shared[i] = value\n", "        shared[i] = value * np.float32(1)\n")
        ),
        _other(
            "by halves in shared memory",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    sums = cuda.shared.array(128, np.float32)
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    sums[t] = np.float32(0)
    for i in range(t, columns, 128):
        kept[i] = x[row, i]
        sums[t] += kept[i] * kept[i]
    half = 64
    while half > 0:
        cuda.syncthreads()
        if t < half:
            sums[t] += sums[t + half]
        half //= 2
    cuda.syncthreads()
    root = sqrt(sums[0] / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = weight[i] * kept[i] / root
""",
        ),
        _other(
            "chunks of neighbours",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    each = (columns + 127) // 128
    total = np.float32(0)
    for i in range(each * t, min(columns, each * (t + 1))):
        kept[i] = x[row, i]
        total += kept[i] * kept[i]
    for away in (1, 2, 4, 8, 16):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 31:
        kept[columns + t // 32] = total
    cuda.syncthreads()
    total = kept[columns] + kept[columns + 1] + kept[columns + 2] + kept[columns + 3]
    for i in range(each * t, min(columns, each * (t + 1))):
        y[row, i] = kept[i] * weight[i] / sqrt(total / np.float32(columns) + eps)
""",
        ),
        _right(
            "the sums first in memory",
            ("shared[columns + t // 32] = total", "shared[columns + 28 + t // 32] = total"),
            ("total += shared[columns + warp]", "total += shared[columns + 28 + warp]"),
        ),
        _right(
            "rsqrt",
            (
                "np.float32(1) / sqrt(total / np.float32(columns) + eps)",
                "(total / np.float32(columns) + eps) ** np.float32(-0.5)",
            ),
        ),
        _other(
            "copied by the copy engine of each thread",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    for i in range(t, columns, 128):
        ptx.cp_async(kept, i, x, (row, i), 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    total = np.float32(0)
    for i in range(t, columns, 128):
        total += kept[i] * kept[i]
    for away in (1, 2, 4, 8, 16):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        kept[columns + t // 32] = total
    cuda.syncthreads()
    total = kept[columns] + kept[columns + 1] + kept[columns + 2] + kept[columns + 3]
    scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = kept[i] * weight[i] * scale
""",
        ),
        _other(
            "the root by one thread",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    sums = cuda.shared.array(4, np.float32)
    root = cuda.shared.array(1, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, columns, 128):
        kept[i] = x[row, i]
        total += kept[i] * kept[i]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        sums[t // 32] = total
    cuda.syncthreads()
    if t == 0:
        root[0] = sqrt((sums[0] + sums[1] + sums[2] + sums[3]) / np.float32(columns) + eps)
    cuda.syncthreads()
    for i in range(t, columns, 128):
        y[row, i] = kept[i] / root[0] * weight[i]
""",
        ),
    ),
    "13.1": (
        _right("a remainder by the product", ("i // V, i % V", "i // V, i - i // V * V")),
        _right(
            "the guard by elements",
            ("if pixel < y.shape[0]:", "if i < y.size:"),
        ),
        _other(
            "by a loop over the grid",
            """
@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
        ),
        _right("divmod", ("pixel, c = i // V, i % V", "pixel, c = divmod(i, V)")),
        _right(
            "a product with a comparison inside",
            (
                "        y[pixel, c] = x[c, pixel] if c < C else np.float32(0)",
                """        if c >= C:
            value = np.float32(0)
        else:
            value = x[c, pixel]
        y[pixel, c] = value""",
            ),
        ),
        _other(
            "by a flat view of indices",
            """@cuda.jit
def padded_pixels(x, y):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    pixels, V = y.shape
    if i >= pixels * V:
        return
    c = i % V
    pixel = (i - c) // V
    value = np.float32(0)
    if c < x.shape[0]:
        value = x[c, pixel]
    y[pixel, c] = value
""",
        ),
        _other(
            "through a tile in shared memory",
            """@cuda.jit
def padded_pixels(x, y):
    kept = cuda.shared.array(128, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 128
    C, V = x.shape[0], y.shape[1]
    i = first + t
    kept[t] = np.float32(0)
    if i // V < y.shape[0] and i % V < C:
        kept[t] = x[i % V, i // V]
    cuda.syncthreads()
    if i < y.size:
        y[i // V, i % V] = kept[t]
""",
        ),
    ),
    "13.2": (
        _right("by a sum", ("lane ^ 4 * line", "(lane + 4 * line) % 32"), ("pixel ^ 4 * c", "(pixel + 4 * c) & 31")),
        _right("by a shift", ("lane ^ 4 * line", "lane ^ (line << 2)"), ("pixel ^ 4 * c", "pixel ^ (c << 2)")),
        _right(
            "a flat tile",
            ("cuda.shared.array((CHANNELS, PIXELS), np.float32)", "cuda.shared.array(256, np.float32)"),
            ("tile[line, lane ^ 4 * line]", "tile[PIXELS * line + (lane ^ 4 * line)]"),
            ("tile[c, pixel ^ 4 * c]", "tile[PIXELS * c + (pixel ^ 4 * c)]"),
        ),
        _right(
            "channels the other way",
            ("lane ^ 4 * line", "lane ^ 4 * (7 - line)"),
            ("pixel ^ 4 * c", "pixel ^ 4 * (7 - c)"),
        ),
        _right(
            "rotated backwards",
            ("tile[line, lane ^ 4 * line]", "tile[line, (lane - 4 * line) % PIXELS]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, (pixel - 4 * c) % PIXELS]"),
        ),
        _right(
            "channels by another permutation",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * (line ^ 5)]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * (c ^ 5)]"),
        ),
        _other(
            "the tile turned before it is stored",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((PIXELS, CHANNELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[lane, line ^ (lane // 4)] = x[line, first + lane]
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = tile[pixel, c ^ (pixel // 4)]
""",
        ),
        _other(
            "another order of the lanes that load from the tile",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array(256, np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[32 * line + (lane + 4 * line) % 32] = x[line, first + lane]
    cuda.syncthreads()
    c, pixel = lane % 8, 4 * line + lane // 8
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = tile[32 * c + (pixel + 4 * c) % 32]
""",
        ),
        _right(
            "a zero in the places that are not there",
            (
                "    if first + lane < x.shape[1]:\n",
                """    tile[line, lane ^ 4 * line] = np.float32(0)
    if first + lane < x.shape[1]:
""",
            ),
        ),
        _other(
            "copied past the registers",
            """
CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        ptx.cp_async(tile, (line, lane ^ 4 * line), x, (line, first + lane), 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = tile[c, pixel ^ 4 * c]
""",
        ),
    ),
    "13.3": (
        _right(
            "image by image",
            ("i // (pixels * V) % groups * V + i % V", "i % (groups * pixels * V) // (pixels * V) * V + i % V"),
        ),
        _right(
            "axis by axis",
            (
                "        c = i // (pixels * V) % groups * V + i % V\n",
                "        lane, rest = i % V, i // V\n        c = rest // pixels % groups * V + lane\n",
            ),
        ),
        _right("padding as it is", ("else np.float32(0)", "else x[i]")),
        _right(
            "unsigned indices",
            ("i // (pixels * V) % groups", "np.uint32(i) // np.uint32(pixels * V) % np.uint32(groups)"),
        ),
        _other(
            "by a loop over the grid",
            """
@cuda.jit
def add_bias(x, bias, y, V, pixels):
    groups = (bias.size + V - 1) // V
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        c = i // V // pixels % groups * V + i % V
        total = x[i]
        if c < bias.size:
            total += bias[c]
        y[i] = total
""",
        ),
        _right("C rounded for the images", ("% groups * V", "% (C // V + (C % V > 0)) * V")),
        _right(
            "the place by subtraction",
            (
                "i // (pixels * V) % groups * V + i % V",
                "(i // (pixels * V) - i // (pixels * V * groups) * groups) * V + i - i // V * V",
            ),
        ),
        _right(
            "NCHW apart",
            (
                """        c = i // (pixels * V) % groups * V + i % V
        y[i] = x[i] + bias[c] if c < C else np.float32(0)""",
                """        c = i // pixels % C if V == 1 else i // (pixels * V) % groups * V + i % V
        y[i] = x[i] + (bias[c] if c < C else np.float32(0))""",
            ),
        ),
        _right(
            "three cases",
            (
                "        c = i // (pixels * V) % groups * V + i % V\n",
                """        if V == 1:
            c = i // pixels % C
        elif V == C:
            c = i % C
        else:
            c = i // (pixels * V) % groups * V + i % V
""",
            ),
        ),
    ),
    "13.4": (
        _right(
            "by while",
            ("    for i in range(t, RUN, STRUCTS):\n", "    i = t\n    while i < RUN:\n"),
            (
                "            run[i] = structs[FIELDS * first + i]\n",
                "            run[i] = structs[FIELDS * first + i]\n        i += STRUCTS\n",
            ),
        ),
        _right(
            "round by round",
            (
                "    for i in range(t, RUN, STRUCTS):\n",
                "    for turn in range(FIELDS):\n        i = turn * STRUCTS + t\n",
            ),
        ),
        _right(
            "a tile of two axes",
            ("cuda.shared.array(RUN, np.float32)", "cuda.shared.array((STRUCTS, FIELDS), np.float32)"),
            ("run[i]", "run[i // FIELDS, i % FIELDS]"),
            ("run[FIELDS * t + field]", "run[t, field]"),
        ),
        _right(
            "a run with a little room",
            ("RUN = FIELDS * STRUCTS", "RUN = FIELDS * STRUCTS  # a whole block"),
            ("cuda.shared.array(RUN,", "cuda.shared.array(1024,"),
        ),
        _other(
            "each warp for itself",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    warp, lane = t // 32, t % 32
    for i in range(224 * warp + lane, 224 * warp + 224, 32):
        if FIELDS * first + i < structs.size:
            run[i] = structs[FIELDS * first + i]
    cuda.syncwarp()
    if first + t < arrays.shape[1]:
        for field in range(FIELDS):
            arrays[field, first + t] = run[FIELDS * t + field]
""",
        ),
        _right(
            "zeros behind the last struct",
            (
                """        if FIELDS * first + i < structs.size:
            run[i] = structs[FIELDS * first + i]
""",
                """        at = FIELDS * first + i
        run[i] = structs[at] if at < structs.size else np.float32(0)
""",
            ),
        ),
        _right(
            "the fields in another order by each warp",
            (
                "            arrays[field, first + t] = run[FIELDS * t + field]",
                """            f = (field + t // 32) % FIELDS
            arrays[f, first + t] = run[FIELDS * t + f]""",
            ),
        ),
        _other(
            "by the number of arrays",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, block = cuda.threadIdx.x, cuda.blockIdx.x
    left = structs.size - RUN * block
    i = t
    while i < min(RUN, left):
        run[i] = structs[RUN * block + i]
        i += cuda.blockDim.x
    cuda.syncthreads()
    s = block * STRUCTS + t
    if s >= arrays.shape[1]:
        return
    for field in range(arrays.shape[0]):
        arrays[field, s] = run[t * FIELDS + field]
""",
        ),
        _other(
            "copied past the registers",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    for i in range(t, RUN, STRUCTS):
        if FIELDS * first + i < structs.size:
            ptx.cp_async(run, i, structs, FIELDS * first + i, 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    if first + t < arrays.shape[1]:
        for field in range(FIELDS):
            arrays[field, first + t] = run[FIELDS * t + field]
""",
        ),
    ),
    "15.1": (
        _right("rescaled where it is worth it", ("if value > maximum:", "if value > maximum + np.float32(1):")),
        _right("at least, not more", ("if value > maximum:", "if value >= maximum:")),
        _right(
            "from the last row on",
            ("range(x.shape[0])", "range(x.shape[0] - 1, -1, -1)"),
        ),
        _right(
            "a grid-stride loop",
            (
                "    c = cuda.grid(1)\n    if c < result.size:",
                "    for c in range(cuda.grid(1), result.size, cuda.gridsize(1)):",
            ),
        ),
        _right("from another least number on", ("np.float32(-3e38)", "np.float32(-20_000)")),
        _right(
            "minus infinity passed over",
            ("np.float32(-3e38)", "np.float32(-np.inf)"),
            ("            else:\n", "            elif value > -np.inf:\n"),
        ),
        _right("the maximum added last", ("maximum + log(total)", "log(total) + maximum")),
        _other(
            "by powers of 2",
            """
from math import exp2, log2

LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        m, s = np.float32(-3e38), np.float32(0)
        i = 0
        while i < x.shape[0]:
            v = x[i, c]
            power = exp2(-abs(v - m) * LOG2_E)
            if v > m:
                s, m = s * power + np.float32(1), v
            else:
                s += power
            i += 1
        result[c] = m + log2(s) * LN_2
""",
        ),
        _other(
            "two at a time",
            """
from math import exp, log


@cuda.jit(device=True)
def both(m, s, n, t):
    larger = max(m, n, np.float32(-3e38))
    return larger, s * exp(m - larger) + t * exp(n - larger)


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        m, s = np.float32(-3e38), np.float32(0)
        for i in range(0, x.shape[0] - 1, 2):
            n, t = both(x[i, c], np.float32(1), x[i + 1, c], np.float32(1))
            m, s = both(m, s, n, t)
        if x.shape[0] % 2 == 1:
            m, s = both(m, s, x[x.shape[0] - 1, c], np.float32(1))
        result[c] = m + log(s)
""",
        ),
    ),
    "15.2": (
        _right("from the last part on", ("range(maxima.shape[0])", "range(maxima.shape[0] - 1, -1, -1)")),
        _right("the empty part by its equality", ("if its_s > np.float32(0):", "if its_s != np.float32(0):")),
        _right(
            "a grid-stride loop",
            (
                "    r = cuda.grid(1)\n    if r < maximum.size:",
                "    for r in range(cuda.grid(1), maximum.size, cuda.gridsize(1)):",
            ),
        ),
        _other(
            "with a branch",
            """
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r >= maximum.size:
        return
    m, s = np.float32(-np.inf), np.float32(0)
    for p in range(maxima.shape[0]):
        its_m, its_s = maxima[p, r], totals[p, r]
        if its_s == np.float32(0):
            continue
        if its_m > m:
            s, m = s * exp(m - its_m) + its_s, its_m
        else:
            s += its_s * exp(its_m - m)
    maximum[r] = m
    total[r] = s
""",
        ),
        _other(
            "the maximum replaced where the part is empty",
            """
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(-3e38), np.float32(0)
        for p in range(maxima.shape[0]):
            n, t = maxima[p, r], totals[p, r]
            n = n if t > np.float32(0) else np.float32(-3e38)
            k = max(m, n)
            s, m = s * exp(m - k) + t * exp(n - k), k
        maximum[r], total[r] = m, s
""",
        ),
    ),
    "15.3": (
        _right("another way to count", ("max(row + keys - queries + 1, 0)", "max(0, keys - (queries - 1 - row))")),
        _right(
            "from the last key on",
            ("for j in range(lane, allowed, 32):", "for j in range(allowed - 1 - lane, -1, -32):"),
        ),
        _right("the least float32", ("np.float32(-3e38)", "np.float32(-3.4028234e38)")),
        _other(
            "the maximum apart from minus infinity",
            """
from math import exp, inf, isinf


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    queries, keys = S.shape
    allowed = row + keys - queries + 1
    m, s = np.float32(-inf), np.float32(0)
    for j in range(lane, allowed, 32):
        value = S[row, j]
        if not isinf(value):
            if value > m:
                s = s * exp(m - value) + np.float32(1)
                m = value
            else:
                s += exp(value - m)
    top = m
    for away in (1, 2, 4, 8, 16):
        top = max(top, cuda.shfl_xor_sync(0xFFFFFFFF, top, away))
    s = s * exp(m - top) if s > np.float32(0) else np.float32(0)
    for away in (1, 2, 4, 8, 16):
        s += cuda.shfl_xor_sync(0xFFFFFFFF, s, away)
    for j in range(lane, keys, 32):
        P[row, j] = exp(S[row, j] - top) / s if j < allowed else np.float32(0)
""",
        ),
        _other(
            "zeros in a loop of their own",
            """
from math import exp


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    allowed = max(0, row + 1 + S.shape[1] - S.shape[0])
    m, s = np.float32(-1e38), np.float32(0)
    for j in range(lane, allowed, 32):
        v = S[row, j]
        k = max(m, v)
        s, m = s * exp(m - k) + exp(v - k), k
    for away in (16, 8, 4, 2, 1):
        n, t = cuda.shfl_xor_sync(0xFFFFFFFF, m, away), cuda.shfl_xor_sync(0xFFFFFFFF, s, away)
        k = max(m, n)
        s, m = s * exp(m - k) + t * exp(n - k), k
    for j in range(lane, allowed, 32):
        P[row, j] = exp(S[row, j] - m) / s
    for j in range(allowed + lane, S.shape[1], 32):
        P[row, j] = np.float32(0)
""",
        ),
    ),
    "15.4": (
        _right("from the last element on", ("range(lane, X.shape[1], 32)", "range(X.shape[1] - 1 - lane, -1, -32)")),
        _right("rescaled where it is worth it", ("if size > scale:", "if size > scale * np.float32(2):")),
        _right("at least as large", ("if size > scale:", "if size >= scale and size > np.float32(0):")),
        _right(
            "by one factor",
            (
                "total *= (scale / largest) * (scale / largest)",
                "moved = scale / largest\n        total *= moved * moved",
            ),
        ),
        _other(
            "merged pair by pair",
            """
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    a = s = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        v = abs(X[row, i])
        b = max(a, v)
        if b > np.float32(0):
            s = s * (a / b) * (a / b) + (v / b) * (v / b)
        a = b
    for away in (16, 8, 4, 2, 1):
        c, t = cuda.shfl_xor_sync(0xFFFFFFFF, a, away), cuda.shfl_xor_sync(0xFFFFFFFF, s, away)
        b = max(a, c)
        if b > np.float32(0):
            s = s * (a / b) * (a / b) + t * (c / b) * (c / b)
        a = b
    if lane == 0:
        result[row] = a * sqrt(s)
""",
        ),
        _other(
            "three lengths of three sizes",
            """
from math import sqrt


@cuda.jit(device=True)
def over_the_warp(value):
    for away in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, away)
    return value


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    high = middle = low = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        v = abs(X[row, i])
        if v > np.float32(1e16):
            v *= np.float32(1e-25)
            high += v * v
        elif v > np.float32(1e-14):
            middle += v * v
        else:
            v *= np.float32(1e25)
            low += v * v
    high, middle, low = over_the_warp(high), over_the_warp(middle), over_the_warp(low)
    if lane == 0:
        if high > np.float32(0):
            result[row] = sqrt(high + middle * np.float32(1e-25) * np.float32(1e-25)) * np.float32(1e25)
        elif middle > np.float32(0):
            result[row] = sqrt(middle + low * np.float32(1e-25) * np.float32(1e-25))
        else:
            result[row] = sqrt(low) * np.float32(1e-25)
""",
        ),
    ),
    "16.1": (
        _right(
            "from a least number on",
            ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(-3e38)"),
        ),
        _right("a difference", ("if highest > origin + np.float32(8):", "if highest - origin > np.float32(8):")),
        _right(
            "always multiplied",
            (
                """        if highest > origin + np.float32(8):
            shrunk = exp(origin - highest)
            total *= shrunk
            for d in range(HEAD):
                o[d] *= shrunk
            origin = highest
""",
                """        moved = highest if highest > origin + np.float32(8) else origin
        shrunk = exp(origin - moved)
        total *= shrunk
        for d in range(HEAD):
            o[d] *= shrunk
        origin = moved
""",
            ),
        ),
        _right(
            "with the first weights",
            (
                """            total *= shrunk
            for d in range(HEAD):
                o[d] *= shrunk
            origin = highest
""",
                "            origin = highest\n        else:\n            shrunk = np.float32(1)\n",
            ),
            ("            total += weight\n", "            total = total * shrunk + weight\n"),
            ("o[d] += weight * V_tile[j, d]", "o[d] = o[d] * shrunk + weight * V_tile[j, d]"),
            (
                "            weight = exp(",
                "            if j > 0:\n                shrunk = np.float32(1)\n            weight = exp(",
            ),
        ),
        _right(
            "a quotient",
            ("shrunk = exp(origin - highest)", "shrunk = np.float32(1) / exp(min(highest - origin, np.float32(88)))"),
            ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(-1e4)"),
        ),
        _right(
            "the total beside the sums",
            ("HEAD = 32, 8, 8\n", "HEAD = 32, 8, 8\nALL = HEAD + 1\n"),
            ("o = cuda.local.array(HEAD, np.float32)", "o = cuda.local.array(ALL, np.float32)"),
            ("        o[d] = 0\n", "        o[d] = 0\n    o[HEAD] = 0\n"),
            ("            total *= shrunk\n            for d in range(HEAD):", "            for d in range(HEAD + 1):"),
            ("            total += weight\n", "            o[HEAD] += weight\n"),
            ("    total = np.float32(0)\n", ""),
            ("= total, origin", "= o[HEAD], origin"),
        ),
        _right(
            "by powers of 2",
            ("from math import exp\n", "from math import exp2\n\nLOG2_E = np.float32(1.4426950408889634)\n"),
            ("exp(origin - highest)", "exp2((origin - highest) * LOG2_E)"),
            ("exp(scores[j] - origin)", "exp2((scores[j] - origin) * LOG2_E)"),
        ),
        _right(
            "at once, and moved back in the end",
            (
                """        if highest > origin + np.float32(8):
            shrunk = exp(origin - highest)
            total *= shrunk
            for d in range(HEAD):
                o[d] *= shrunk
            origin = highest
        most = highest
""",
                """        shrunk = exp(most - highest)
        total *= shrunk
        for d in range(HEAD):
            o[d] *= shrunk
        if highest > origin + np.float32(8):
            origin = highest
        most = highest
""",
            ),
            ("exp(scores[j] - origin)", "exp(scores[j] - most)"),
            (
                "    if row < queries:\n",
                """    total *= exp(most - origin)
    for d in range(HEAD):
        o[d] *= exp(most - origin)
    if row < queries:
""",
            ),
        ),
    ),
    "16.2": (
        _right(
            "asked otherwise",
            (
                "if left >= sinks and left + KEYS - 1 <= first - window:",
                "if not (left < sinks or left + KEYS > first - window + 1):",
            ),
        ),
        _right("no branch, but an end", ("range(0, last + 1, KEYS)", "range(0, (last // KEYS + 1) * KEYS, KEYS)")),
        _right(
            "by numbers of tiles",
            (
                "    for left in range(0, last + 1, KEYS):\n",
                "    for tile in range(last // KEYS + 1):\n        left = tile * KEYS\n",
            ),
        ),
        _right(
            "rows of keys that nobody sees left out",
            (
                "if left + j < keys else np.float32(0)\n            V_tile",
                "if left + j <= last else np.float32(0)\n            V_tile",
            ),
        ),
        _right("from the last tile on", ("range(0, last + 1, KEYS)", "range(last // KEYS * KEYS, -1, -KEYS)")),
        _right(
            "a while",
            (
                "    for left in range(0, last + 1, KEYS):\n        if left",
                "    left = -KEYS\n    while left + KEYS <= last:\n        left += KEYS\n        if left",
            ),
        ),
        _right(
            "a jump",
            (
                """    for left in range(0, last + 1, KEYS):
        if left >= sinks and left + KEYS - 1 <= first - window:
            continue
""",
                """    left = -KEYS
    while True:
        left += KEYS
        if left >= sinks:
            left = max(left, (first - window + 1) // KEYS * KEYS)
        if left > last:
            break
""",
            ),
        ),
        _right(
            "a helper",
            (
                "@cuda.jit\ndef with_sinks",
                """@cuda.jit(device=True)
def unseen(left, first, sinks, window):
    return left >= sinks and left + KEYS <= first - window + 1


@cuda.jit
def with_sinks""",
            ),
            ("if left >= sinks and left + KEYS - 1 <= first - window:", "if unseen(left, first, sinks, window):"),
        ),
        _right(
            "by a vote",
            (
                """        if left >= sinks and left + KEYS - 1 <= first - window:
            continue
""",
                """        sees = False
        for j in range(left, left + KEYS):
            sees = sees or (row < queries and j <= place and (j < sinks or j > place - window))
        if not cuda.any_sync(0xFFFFFFFF, sees):
            continue
""",
            ),
        ),
        _right(
            "compared by numbers of tiles",
            (
                "if left >= sinks and left + KEYS - 1 <= first - window:",
                "if left >= sinks and left // KEYS < (first - window + 1) // KEYS:",
            ),
        ),
    ),
    "16.3": (
        _right(
            "rows inside",
            (
                "    for rows in range(16, 257, 16):\n        for columns in range(16, 257, 16):",
                "    for columns in range(16, 257, 16):\n        for rows in range(16, 257, 16):",
            ),
        ),
        _right("from the largest on", ("for rows in range(16, 257, 16)", "for rows in range(256, 0, -16)")),
        _right(
            "asked for by two",
            (
                "if in_shared > shared_bytes or in_registers > registers:",
                "if not (in_shared <= shared_bytes and in_registers <= registers):",
            ),
        ),
        _right(
            "in bytes",
            ("brought += min(tiles * columns, keys)", "brought += 4 * head_dim * min(tiles * columns, keys)"),
        ),
        _right(
            "all keys for the last block",
            ("                if causal:\n", "                if causal and top + rows < queries:\n"),
        ),
        _other(
            "a helper and a list",
            """
def cost(queries, keys, causal, rows, columns):
    ends = [min(top + rows, queries) for top in range(0, queries, rows)]
    seen = [max(0, keys - (queries - end)) if causal else keys for end in ends]
    tiles = [-(-each // columns) for each in seen]
    return sum([min(each * columns, keys) for each in tiles]), sum(tiles)


def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    sides = [16 * n for n in range(1, 17)]
    fitting = [
        (rows, columns)
        for rows in sides
        for columns in sides
        if head_dim * (2 * rows + 8 * columns) <= shared_bytes and rows * columns + rows * head_dim <= registers
    ]
    return min(fitting, key=lambda tile: cost(queries, keys, causal, tile[0], tile[1]), default=None)
""",
        ),
        _other(
            "blocks counted where it is not causal",
            """
def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    best = None
    for rows in range(16, 257, 16):
        for columns in range(16, 257, 16):
            if 2 * rows * head_dim + 8 * columns * head_dim > shared_bytes:
                continue
            if rows * columns + rows * head_dim > registers:
                continue
            blocks = -(-queries // rows)
            if not causal:
                cost = blocks * keys, blocks * -(-keys // columns)
            else:
                cost = 0, 0
                behind = queries
                while blocks > 0:
                    seen = max(0, behind + keys - queries)
                    tiles = -(-seen // columns)
                    cost = cost[0] + min(keys, tiles * columns), cost[1] + tiles
                    blocks -= 1
                    behind = blocks * rows
            if best is None or cost < best[0]:
                best = cost, rows, columns
    return None if best is None else (best[1], best[2])
""",
        ),
    ),
    "16.4": (
        _right(
            "one exponential",
            (
                "            total = total * exp(most - larger) + exp(logit - larger)\n",
                """            if logit > most:
                total = total * exp(most - logit) + np.float32(1)
            else:
                total += exp(logit - most)
""",
            ),
        ),
        _right(
            "zeros beyond the last word",
            (
                """            if first + n // WIDTH < words:
                W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
""",
                """            j, d = first + n // WIDTH, n % WIDTH
            W_tile[n // WIDTH, d] = W[j, d] if j < words else np.float32(0)
""",
            ),
            (
                "for j in range(min(WORDS, words - first)):\n            logit = np.float32(0)\n",
                "for j in range(WORDS):\n            logit = np.float32(0 if first + j < words else -np.inf)\n",
            ),
        ),
        _right(
            "the target first",
            ("            if first + j == target:\n                of_target = logit\n", ""),
            (
                "            larger = max(most, logit)\n",
                """            if target == first + j:
                of_target = logit
            larger = max(most, logit)
""",
            ),
        ),
        _right("from the last word on", ("range(0, words, WORDS)", "range((words - 1) // WORDS * WORDS, -1, -WORDS)")),
        _right(
            "rubbish where there is no place",
            ("x[d] = X[d, row] if row < rows else np.float32(0)", "x[d] = X[d, row] if row < rows else np.float32(d)"),
        ),
        _right(
            "a late origin", ("larger = max(most, logit)", "larger = logit if logit > most + np.float32(8) else most")
        ),
        _other(
            "a tile at a time",
            """
from math import exp, log

ROWS, WORDS, WIDTH = 32, 16, 8


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    logits = cuda.local.array(WORDS, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = -1
    if row < rows:
        target = targets[row]
        for d in range(WIDTH):
            x[d] = X[d, row]
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
    for first in range(0, words, WORDS):
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        if row < rows:
            before = most
            for j in range(min(WORDS, words - first)):
                logits[j] = 0
                for d in range(WIDTH):
                    logits[j] += x[d] * W_tile[j, d]
                most = max(most, logits[j])
                if first + j == target:
                    of_target = logits[j]
            total *= exp(before - most)
            for j in range(min(WORDS, words - first)):
                total += exp(logits[j] - most)
        cuda.syncthreads()
    if row < rows:
        if target < 0:
            loss[row] = 0
        else:
            loss[row] = log(total) + (most - of_target)
""",
        ),
        _other(
            "by powers of 2",
            """
from math import exp2, log2

ROWS, WORDS, WIDTH = 32, 8, 8
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d] = X[d, row] * LOG2_E if row < rows else np.float32(0)
    most, total, of_target = np.float32(-np.inf), np.float32(0), np.float32(0)
    for first in range(0, words, WORDS):
        cuda.syncthreads()
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        for j in range(min(WORDS, words - first)):
            logit = np.float32(0)
            for d in range(WIDTH):
                logit += x[d] * W_tile[j, d]
            larger = max(most, logit)
            total = total * exp2(most - larger) + exp2(logit - larger)
            most = larger
            if first + j == target:
                of_target = logit
    if row < rows:
        loss[row] = (most - of_target + log2(total)) * LN_2 if target >= 0 else np.float32(0)
""",
        ),
        _other(
            "rows of W handed round by shuffles",
            """
from math import exp, log


@cuda.jit
def cross_entropy(X, W, targets, loss):
    x = cuda.local.array(8, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(8):
        x[d] = X[d, row] if row < rows else np.float32(0)
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
    for first in range(0, words, 4):
        mine = np.float32(0)
        if first + t // 8 < words:
            mine = W[first + t // 8, t % 8]
        for j in range(4):
            logit = np.float32(0)
            for d in range(8):
                logit += x[d] * cuda.shfl_sync(0xFFFFFFFF, mine, j * 8 + d)
            if first + j < words:
                larger = max(most, logit)
                total = total * exp(most - larger) + exp(logit - larger)
                most = larger
                if first + j == target:
                    of_target = logit
    if row < rows:
        loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)
""",
        ),
    ),
    "17.1": (
        _right(
            "a ring of four stages", ("HEAD, STAGES, CONSUMERS = 16, 8, 2, 2", "HEAD, STAGES, CONSUMERS = 16, 8, 4, 2")
        ),
        _right(
            "a round more for the last tile",
            (
                "for tile in range(tiles):\n            stage, turn = tile % STAGES, tile // STAGES\n"
                "            ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n"
                "            key, d = tile * TILE + lane // 2, lane % 2 * 4\n"
                "            ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < keys else 0)\n",
                "for tile in range(tiles + 1):\n            stage, turn = tile % STAGES, tile // STAGES\n"
                "            key, d = tile * TILE + lane // 2, lane % 2 * 4\n            if tile < tiles:\n"
                "                ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n"
                "                ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, "
                "16 if key < keys else 0)\n",
            ),
            ("        ptx.cp_async_wait(0)\n        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n", ""),
        ),
        _right(
            "one arrival of a warp",
            ("ptx.mbarrier_init(full, stage, 32)", "ptx.mbarrier_init(full, stage, 1)"),
            ("ptx.mbarrier_init(empty, stage, 32 * CONSUMERS)", "ptx.mbarrier_init(empty, stage, CONSUMERS)"),
            (
                "                ptx.mbarrier_arrive(full, (tile - 1) % STAGES)\n",
                "                cuda.syncwarp()\n                if lane == 0:\n"
                "                    ptx.mbarrier_arrive(full, (tile - 1) % STAGES)\n",
            ),
            (
                "        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
                "        cuda.syncwarp()\n        if lane == 0:\n"
                "            ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
            ),
            (
                "            ptx.mbarrier_arrive(empty, stage)\n",
                "            cuda.syncwarp()\n            if lane == 0:\n"
                "                ptx.mbarrier_arrive(empty, stage)\n",
            ),
        ),
        _right(
            "the last tile is not given back",
            (
                "            ptx.mbarrier_arrive(empty, stage)\n",
                "            if tile + STAGES < tiles:\n                ptx.mbarrier_arrive(empty, stage)\n",
            ),
        ),
        _right(
            "in pieces of 8 bytes",
            (
                "            key, d = tile * TILE + lane // 2, lane % 2 * 4\n"
                "            ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < keys else 0)\n",
                "            for n in range(lane, TILE * HEAD // 2, 32):\n"
                "                key, d = tile * TILE + n // 4, n % 4 * 2\n"
                "                ptx.cp_async(K_tiles, (stage, n // 4, d), K, (key, d), 8, 8 if key < keys else 0)\n",
            ),
        ),
    ),
    "17.2": (
        _right(
            "no weight, no gradient",
            (
                "            if key <= top + i + keys - queries:\n                score",
                "            if True:\n                score",
            ),
            (
                "weight = exp(score - lse_tile[i])",
                "weight = np.float32(0)\n                if top + i - queries >= key - keys:\n"
                "                    weight = exp(score - lse_tile[i])",
            ),
        ),
        _right(
            "queries that see none of the block's keys are not brought",
            (
                "range(0, queries, QUERIES)",
                "range(max(0, cuda.blockIdx.x * KEYS + queries - keys) // QUERIES * QUERIES, queries, QUERIES)",
            ),
        ),
        _right(
            "by powers of 2",
            ("from math import exp\n", "from math import exp2\n\nLOG2_E = np.float32(1.4426950408889634)\n"),
            ("exp(score - lse_tile[i])", "exp2((score - lse_tile[i]) * LOG2_E)"),
        ),
        _right(
            "delta first",
            ("score = slope = np.float32(0)\n", "score, slope = -lse_tile[i], -delta_tile[i]\n"),
            ("weight = exp(score - lse_tile[i])", "weight = exp(score)"),
            ("slope = weight * (slope - delta_tile[i])", "slope *= weight"),
        ),
        _right(
            "from the last query on",
            (
                "for i in range(min(QUERIES, queries - top)):",
                "for i in range(min(QUERIES, queries - top) - 1, -1, -1):",
            ),
        ),
        _right(
            "larger where it is seen", ("if key <= top + i + keys - queries:", "if not key > top + i + keys - queries:")
        ),
    ),
    "17.3": (
        _right("from the last part on", ("range(lse_parts.shape[0])", "range(lse_parts.shape[0] - 1, -1, -1)")),
        _right("not equal", ("if of_part > np.float32(-np.inf):", "if of_part != np.float32(-np.inf):")),
        _other(
            "the average moved towards the part",
            """
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size:
        sum_so_far, o = np.float32(-np.inf), np.float32(0)
        for part in range(lse_parts.shape[0]):
            of_part = lse_parts[part, row]
            if of_part == np.float32(-np.inf):
                continue
            most = max(sum_so_far, of_part)
            merged = most + log(exp(sum_so_far - most) + exp(of_part - most))
            o = o * exp(sum_so_far - merged) + O_parts[part, row, d] * exp(of_part - merged)
            sum_so_far = merged
        O[row, d] = o
        if d == 0:
            lse[row] = sum_so_far
""",
        ),
        _other(
            "one exponential",
            """
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row >= lse.size:
        return
    most, total, o = np.float32(-3e38), np.float32(0), np.float32(0)
    for part in range(lse_parts.shape[0]):
        of_part = lse_parts[part, row]
        value = O_parts[part, row, d]
        if of_part > most:
            shrunk = exp(most - of_part)
            total, o, most = total * shrunk + np.float32(1), o * shrunk + value, of_part
        elif of_part > np.float32(-np.inf):
            weight = exp(of_part - most)
            total, o = total + weight, o + weight * value
    if total == np.float32(0):
        O[row, d] = 0
    else:
        O[row, d] = o / total
    if d == 0 and total == np.float32(0):
        lse[row] = -np.inf
    elif d == 0:
        lse[row] = most + log(total)
""",
        ),
        _other(
            "log-sum-exps handed round by shuffles",
            """
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    parts = lse_parts.shape[0]
    if row < lse.size:
        most, total, o = np.float32(-np.inf), np.float32(0), np.float32(0)
        for first in range(0, parts, 32):
            mine = lse_parts[first + d, row] if first + d < parts else np.float32(-np.inf)
            for n in range(min(32, parts - first)):
                of_part = cuda.shfl_sync(0xFFFFFFFF, mine, n)
                if of_part > np.float32(-np.inf):
                    larger = max(most, of_part)
                    total = total * exp(most - larger) + exp(of_part - larger)
                    o = o * exp(most - larger) + exp(of_part - larger) * O_parts[first + n, row, d]
                    most = larger
        O[row, d] = o / total if total > np.float32(0) else np.float32(0)
        if d == 0:
            lse[row] = most + log(total)
""",
        ),
    ),
    "17.4": (
        _right(
            "GELU first halved",
            (
                "HALF * total * (np.float32(1) + erf(total * ROOT_HALF))",
                "total * (HALF + HALF * erf(total * ROOT_HALF))",
            ),
        ),
        _right(
            "by the complement",
            ("from math import erf\n", "from math import erfc\n"),
            ("(np.float32(1) + erf(total * ROOT_HALF))", "erfc(-total * ROOT_HALF)"),
        ),
        _right(
            "a helper",
            (
                "\n\n@cuda.jit\n",
                "\n\n@cuda.jit(device=True)\ndef gelu(x):\n"
                "    return HALF * x * (np.float32(1) + erf(x * ROOT_HALF))\n\n\n@cuda.jit\n",
            ),
            ("C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))", "C[row, col] = gelu(total)"),
        ),
        _right(
            "A's tile transposed",
            ("ptx.cp_async(A_tiles, (stage, y, x), A", "ptx.cp_async(A_tiles, (stage, x, y), A"),
            ("A_tiles[stage, y, k]", "A_tiles[stage, k, y]"),
        ),
        _right(
            "one array for both",
            (
                "A_tiles = cuda.shared.array((STAGES, TILE, TILE), np.float32)\n"
                "    B_tiles = cuda.shared.array((STAGES, TILE, TILE), np.float32)",
                "tiles = cuda.shared.array((STAGES, 2, TILE, TILE), np.float32)",
            ),
            ("A_tiles, (stage, y, x)", "tiles, (stage, 0, y, x)"),
            ("B_tiles, (stage, y, x)", "tiles, (stage, 1, y, x)"),
            ("A_tiles[stage, y, k] * B_tiles[stage, k, x]", "tiles[stage, 0, y, k] * tiles[stage, 1, k, x]"),
        ),
        _right(
            "no products behind the last k",
            ("            for k in range(TILE):\n", "            for k in range(min(TILE, K - (step - 1) * TILE)):\n"),
        ),
        _right(
            "from the last tile on",
            ("stage, k = step % STAGES, step * TILE", "stage, k = step % STAGES, (steps - 1 - step) * TILE"),
        ),
    ),
}

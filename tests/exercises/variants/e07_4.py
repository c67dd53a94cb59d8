"""Other answers to exercise 07.4."""

from . import Variant

_BARRIER = "    cuda.syncthreads()\n"

IN_PLACE = """HIGH, WIDE = 8, 32
ROWS, COLS = HIGH + 4, WIDE + 4


@cuda.jit
def two_steps(t, later, rate):
    tile = cuda.shared.array((ROWS, COLS), np.float32)
    heated = cuda.local.array(2, np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * HIGH - 2, cuda.blockIdx.x * WIDE - 2
    H, W = t.shape
    zero = np.float32(0)
    for row in range(y, ROWS, HIGH):
        for col in range(x, COLS, WIDE):
            inside = 0 <= top + row < H and 0 <= left + col < W
            tile[row, col] = t[top + row, left + col] if inside else zero
    cuda.syncthreads()
    first = y * WIDE + x
    for j in range(2):
        i = first + j * HIGH * WIDE
        if i < (ROWS - 2) * (COLS - 2):
            r, c = i // (COLS - 2) + 1, i % (COLS - 2) + 1
            around = tile[r - 1, c] + tile[r + 1, c] + tile[r, c - 1] + tile[r, c + 1]
            heated[j] = tile[r, c] * (np.float32(1) - np.float32(4) * rate) + rate * around
    cuda.syncthreads()
    for j in range(2):
        i = first + j * HIGH * WIDE
        if i < (ROWS - 2) * (COLS - 2):
            r, c = i // (COLS - 2) + 1, i % (COLS - 2) + 1
            tile[r, c] = heated[j] if 0 <= top + r < H and 0 <= left + c < W else zero
    cuda.syncthreads()
    r, c = y + 2, x + 2
    if top + r < H and left + c < W:
        around = tile[r - 1, c] + tile[r + 1, c] + tile[r, c - 1] + tile[r, c + 1]
        later[top + r, left + c] = tile[r, c] * (np.float32(1) - np.float32(4) * rate) + rate * around
"""

IN_REGISTERS = """HIGH, WIDE = 8, 32
ROWS, COLS = HIGH + 4, WIDE + 4


@cuda.jit(device=True)
def step(tile, r, c, rate):
    around = tile[r - 1, c] + tile[r + 1, c] + tile[r, c - 1] + tile[r, c + 1]
    return tile[r, c] + rate * (around - np.float32(4) * tile[r, c])


@cuda.jit
def two_steps(t, later, rate):
    tile = cuda.shared.array((ROWS, COLS), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * HIGH - 2, cuda.blockIdx.x * WIDE - 2
    H, W = t.shape
    zero = np.float32(0)
    for i in range(y * WIDE + x, ROWS * COLS, HIGH * WIDE):
        row, col = top + i // COLS, left + i % COLS
        tile[i // COLS, i % COLS] = t[row, col] if 0 <= row < H and 0 <= col < W else zero
    cuda.syncthreads()
    r, c = y + 2, x + 2
    row, col = top + r, left + c
    if row < H and col < W:
        around = zero
        if row > 0:
            around += step(tile, r - 1, c, rate)
        if row < H - 1:
            around += step(tile, r + 1, c, rate)
        if col > 0:
            around += step(tile, r, c - 1, rate)
        if col < W - 1:
            around += step(tile, r, c + 1, rate)
        middle = step(tile, r, c, rate)
        later[row, col] = middle + rate * (around - np.float32(4) * middle)
"""

_FROM_MEMORY = """HIGH, WIDE = 8, 32


@cuda.jit(device=True)
def at(t, row, col):
    return t[row, col] if 0 <= row < t.shape[0] and 0 <= col < t.shape[1] else np.float32(0)


@cuda.jit(device=True)
def step(t, row, col, rate):
    if not (0 <= row < t.shape[0] and 0 <= col < t.shape[1]):
        return np.float32(0)
    around = at(t, row - 1, col) + at(t, row + 1, col) + at(t, row, col - 1) + at(t, row, col + 1)
    return at(t, row, col) + rate * (around - np.float32(4) * at(t, row, col))


@cuda.jit
def two_steps(t, later, rate):
    col, row = cuda.grid(2)
    if row < t.shape[0] and col < t.shape[1]:
        around = step(t, row - 1, col, rate) + step(t, row + 1, col, rate)
        around += step(t, row, col - 1, rate) + step(t, row, col + 1, rate)
        middle = step(t, row, col, rate)
        later[row, col] = middle + rate * (around - np.float32(4) * middle)
"""

VARIANTS = (
    Variant("all from global memory", "budget", cell=_FROM_MEMORY),
    Variant("no barrier before the first step", "race", ((_BARRIER + "    for i", "    for i"),)),
    Variant("no barrier before the second step", "race", ((_BARRIER + "    r, c", "    r, c"),)),
    Variant("heat around the plate", "result", (("heated if 0 <= row < H and 0 <= col < W else zero", "heated"),)),
    Variant(
        "nothing around the plate",
        "uninitialised",
        (
            (
                "        now[r, c] = t[row, col] if 0 <= row < H and 0 <= col < W else zero",
                "        if 0 <= row < H and 0 <= col < W:\n            now[r, c] = t[row, col]",
            ),
        ),
    ),
    Variant("a halo of one", "bounds", (("ROWS, COLS = HIGH + 4, WIDE + 4", "ROWS, COLS = HIGH + 2, WIDE + 2"),)),
    Variant("one step", "result", (("soon[r, c] = heated if", "soon[r, c] = now[r, c] if"),)),
    Variant(
        "a rate of its own",
        "result",
        (("later[row, col] = soon[r, c] + rate", "later[row, col] = soon[r, c] + abs(rate)"),),
    ),
    Variant(
        "no guard of the output",
        "bounds",
        (("    if row < H and col < W:\n        around", "    if True:\n        around"),),
    ),
    Variant("four in float64", "budget", (("(around - np.float32(4) * soon[r, c])", "(around - 4.0 * soon[r, c])"),)),
    Variant("one tile, in place", "solved", cell=IN_PLACE),
    Variant("the second step from five first ones of its own", "solved", cell=IN_REGISTERS),
)

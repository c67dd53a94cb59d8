"""Other answers to two-steps-of-heat."""

from . import Answer, right, shortcut, wrong

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

LEFT_ASIDE = """HIGH, WIDE = 8, 32


@cuda.jit
def two_steps(t, later, rate):
    tile = cuda.shared.array((HIGH, WIDE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    H, W = t.shape
    sums = cuda.local.array(5, np.float32)
    if row < H and col < W:
        tile[y, x] = np.float32(1)
        for i in range(5):
            r, c = row + (i == 1) - (i == 2), col + (i == 3) - (i == 4)
            sums[i] = np.float32(0)
            if 0 <= r < H and 0 <= c < W:
                around = np.float32(0)
                if r > 0:
                    around += t[r - 1, c]
                if r < H - 1:
                    around += t[r + 1, c]
                if c > 0:
                    around += t[r, c - 1]
                if c < W - 1:
                    around += t[r, c + 1]
                sums[i] = t[r, c] + rate * (around - np.float32(4) * t[r, c])
        around = sums[1] + sums[2] + sums[3] + sums[4]
        later[row, col] = (sums[0] + rate * (around - np.float32(4) * sums[0])) * tile[y, x]
"""

VARIANTS = (
    Answer("all from global memory", "budget", cell=_FROM_MEMORY),
    Answer("no barrier before the first step", "race", ((_BARRIER + "    for i", "    for i"),)),
    Answer("no barrier before the second step", "race", ((_BARRIER + "    r, c", "    r, c"),)),
    Answer(
        "heat around the plate",
        "result",
        (("heated if 0 <= row < H and 0 <= col < W else zero", "heated"),),
        mistake="the first step heated what is around the plate",
    ),
    Answer(
        "nothing around the plate",
        "uninitialised",
        (
            (
                "        now[r, c] = t[row, col] if 0 <= row < H and 0 <= col < W else zero",
                "        if 0 <= row < H and 0 <= col < W:\n            now[r, c] = t[row, col]",
            ),
        ),
    ),
    Answer("a halo of one", "bounds", (("ROWS, COLS = HIGH + 4, WIDE + 4", "ROWS, COLS = HIGH + 2, WIDE + 2"),)),
    Answer(
        "one step",
        "result",
        (("soon[r, c] = heated if", "soon[r, c] = now[r, c] if"),),
        mistake="there were only one step",
    ),
    Answer(
        "nothing subtracted",
        "result",
        (
            ("rate * (around - np.float32(4) * now[r, c])", "rate * around"),
            ("rate * (around - np.float32(4) * soon[r, c])", "rate * around"),
        ),
        mistake="nothing were subtracted in a step",
    ),
    Answer(
        "no rate in the second step",
        "result",
        (("rate * (around - np.float32(4) * soon[r, c])", "(around - np.float32(4) * soon[r, c])"),),
        mistake="the rate of one of both steps were 1",
    ),
    Answer(
        "no rate in the first step",
        "result",
        (("rate * (around - np.float32(4) * now[r, c])", "(around - np.float32(4) * now[r, c])"),),
        mistake="the rate of one of both steps were 1",
    ),
    Answer(
        "added to the temperature before",
        "result",
        (("= soon[r, c] + rate", "= now[r, c] + rate"),),
        mistake="the second step added to the temperature before the first",
    ),
    Answer(
        "the edge goes on",
        "result",
        (
            (
                "t[row, col] if 0 <= row < H and 0 <= col < W else zero",
                "t[min(max(row, 0), H - 1), min(max(col, 0), W - 1)]",
            ),
        ),
        mistake="around the plate it were as warm as at its edge",
    ),
    Answer(
        "tiles without a halo above and left",
        "unwritten",
        (("cuda.blockIdx.y * HIGH - 2, cuda.blockIdx.x * WIDE - 2", "cuda.blockIdx.y * HIGH, cuda.blockIdx.x * WIDE"),),
        mistake="the tiles began at a block's first output",
    ),
    Answer(
        "a rate of its own",
        "result",
        (("later[row, col] = soon[r, c] + rate", "later[row, col] = soon[r, c] + abs(rate)"),),
    ),
    Answer(
        "no guard of the output",
        "bounds",
        (("    if row < H and col < W:\n        around", "    if True:\n        around"),),
    ),
    Answer("four in float64", "budget", (("(around - np.float32(4) * soon[r, c])", "(around - 4.0 * soon[r, c])"),)),
    Answer("one tile, in place", "solved", cell=IN_PLACE),
    Answer("the second step from five first ones of its own", "solved", cell=IN_REGISTERS),
)

RIGHT = (
    right("own pixels and the rim apart", cell=_RIM_APART),
    right("above and below its own", cell=_OWN_COLUMN),
    right(
        "the middle kept aside",
        (
            "heated = now[r, c] + rate * (around - np.float32(4) * now[r, c])",
            "middle = now[r, c]\n            heated = middle + rate * (around - np.float32(4) * middle)",
        ),
    ),
    right(
        "the middle taken away four times",
        (
            "around - np.float32(4) * soon[r, c])",
            "around - soon[r, c] - soon[r, c] - soon[r, c] - soon[r, c])",
        ),
    ),
    right("one tile, in place", cell=IN_PLACE),
    right("the second step from five first ones of its own", cell=IN_REGISTERS),
)

WRONG = (
    wrong(
        "zeros are not stored",
        (
            "        later[row, col] = soon[r, c] + rate * (around - np.float32(4) * soon[r, c])",
            "        value = soon[r, c] + rate * (around - np.float32(4) * soon[r, c])\n"
            "        if value != 0:\n            later[row, col] = value",
        ),
    ),
    wrong("a rate that is positive", ("heated = now[r, c] + rate", "heated = now[r, c] + abs(rate)")),
    wrong("the last row kept as it is", ("if row < H and col < W", "if row < max(H - 1, 1) and col < W")),
    wrong(
        "no heat lost to the right",
        (
            "else zero\n    cuda.syncthreads()\n    r, c",
            "else (zero if col < W else heated)\n    cuda.syncthreads()\n    r, c",
        ),
    ),
    wrong("the columns that are published", ("if row < H and col < W", "if row < H and col < min(W, 64)")),
    wrong(
        "the plate goes on around itself",
        ("t[row, col] if 0 <= row < H", "t[(row + H) % H, col] if -2 <= row < H + 2"),
    ),
    wrong("a barrier of each warp", ("    cuda.syncthreads()\n    for", "    cuda.syncwarp()\n    for")),
)

SHORTCUTS = (
    shortcut(
        "neighbours straight from t, by atomics",
        ("now[r - 1, c] + now[r + 1, c]", "cuda.atomic.add(t, (max(row - 1, 0), col), zero) + now[r + 1, c]"),
    ),
    shortcut(
        "one step, twice as far",
        ("soon[r, c] = heated", "soon[r, c] = now[r, c]"),
        ("soon[r, c] + rate", "soon[r, c] + rate * 2"),
    ),
    shortcut("a barrier of each warp", ("    cuda.syncthreads()\n    r, c", "    cuda.syncwarp()\n    r, c")),
    shortcut("tiles filled and left aside", cell=LEFT_ASIDE),
    shortcut(
        "one warp fills both tiles",
        (
            """    for i in range(first, ROWS * COLS, HIGH * WIDE):
        r, c = i // COLS, i % COLS
        row, col = top + r, left + c
        now""",
            """    for i in range(x, ROWS * COLS * (y == 0), 32):
        r, c = i // COLS, i % COLS
        row, col = top + r, left + c
        now""",
        ),
        (
            """    for i in range(first, ROWS * COLS, HIGH * WIDE):
        r, c = i // COLS, i % COLS
        row, col = top + r, left + c
        if 0 < r""",
            """    for i in range(x, ROWS * COLS * (y == 0), 32):
        r, c = i // COLS, i % COLS
        row, col = top + r, left + c
        if 0 < r""",
        ),
    ),
)

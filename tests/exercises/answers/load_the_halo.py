"""Other answers to load-the-halo."""

from . import Answer, right, shortcut, wrong

_LOOP = """    for i in range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE):
        row, col = i // COLS, i % COLS
        if top + row < H and left + col < W:
            tile[row, col] = x[top + row, left + col]
"""

_OWN = """    if top + ty < H and left + tx < W:
        tile[ty, tx] = x[top + ty, left + tx]
"""

_ROWS = """    for row in range(ty, ROWS, HIGH):
        for col in range(tx, COLS, WIDE):
            if top + row < H and left + col < W:
                tile[row, col] = x[top + row, left + col]
"""

_FOUR_TIMES = """    for dy in range(R):
        for dx in range(S):
            if top + ty + dy < H and left + tx + dx < W:
                tile[ty + dy, tx + dx] = x[top + ty + dy, left + tx + dx]
"""

_ONE_THREAD = """    if tx == 0 and ty == 0:
        for row in range(min(ROWS, H - top)):
            for col in range(min(COLS, W - left)):
                tile[row, col] = x[top + row, left + col]
"""

VARIANTS = (
    Answer("the kernel as it stands there", "budget", ((_LOOP, _ROWS),)),
    Answer("no halo", "uninitialised", ((_LOOP, _OWN),)),
    Answer("each thread its whole window", "budget", ((_LOOP, _FOUR_TIMES),)),
    Answer("one thread for all", "budget", ((_LOOP, _ONE_THREAD),)),
    Answer("down the columns", "budget", (("i // COLS, i % COLS", "i % ROWS, i // ROWS"),)),
    Answer("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Answer("straight from x", "budget", (("tile[ty + r, tx + s]", "x[top + ty + r, left + tx + s]"),)),
    Answer("no guard", "bounds", (("        if top + row < H and left + col < W:\n            tile", "        tile"),)),
    Answer("the guard of the outputs", "uninitialised", (("if top + row < H and", "if top + row < y.shape[0] and"),)),
    Answer("one round alone", "uninitialised", ((", HIGH * WIDE):", ", ROWS * COLS):"),)),
    Answer(
        "the turned filter", "result", (("taps[r, s]", "taps[R - 1 - r, S - 1 - s]"),), mistake="the filter were turned"
    ),
    Answer(
        "clamped indices in place of a guard",
        "solved",
        (
            ("        if top + row < H and left + col < W:\n            tile", "        tile"),
            ("x[top + row, left + col]", "x[min(top + row, H - 1), min(left + col, W - 1)]"),
        ),
    ),
)

RIGHT = (
    right(
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
    right(
        "two rounds",
        (
            "    for i in range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE):\n",
            "    for j in range(2):\n        i = j * HIGH * WIDE + ty * WIDE + tx\n",
        ),
        ("        if top + row < H and", "        if row < ROWS and top + row < H and"),
    ),
    right(
        "zeros beyond the image",
        (
            "        if top + row < H and left",
            "        tile[row, col] = np.float32(0)\n        if top + row < H and left",
        ),
    ),
    right("by divmod", ("row, col = i // COLS, i % COLS", "row, col = divmod(i, COLS)")),
    right(
        "a padded tile",
        ("cuda.shared.array((ROWS, COLS), np.float32)", "cuda.shared.array((ROWS, 37), np.float32)"),
    ),
)

WRONG = (
    wrong(
        "zeros are not stored",
        ("y[top + ty, left + tx] = total", "if total != 0:\n            y[top + ty, left + tx] = total"),
    ),
    wrong("the rows that are published", ("if top + ty < y.shape[0]", "if top + ty < min(y.shape[0], 47)")),
    wrong("the columns that are published", ("left + tx < y.shape[1]", "left + tx < min(y.shape[1], 64)")),
    wrong("a barrier for warps alone", ("    cuda.syncthreads()\n", "    cuda.syncwarp()\n")),
    wrong("an even number of columns", ("left + tx < y.shape[1]", "left + tx < y.shape[1] // 2 * 2")),
    wrong("at least a whole tile", ("if top + row < H and", "if top + row < max(H, ROWS) and")),
)

SHORTCUTS = (
    shortcut(
        "straight from x, by atomics",
        ("tile[ty + r, tx + s]", "cuda.atomic.add(x, (top + ty + r, left + tx + s), np.float32(0))"),
    ),
    shortcut(
        "the tile filled and left aside",
        ("tile[ty + r, tx + s]", "(x[top + ty + r, left + tx + s] + np.float32(0) * tile[ty, tx])"),
    ),
    shortcut(
        "one warp for all",
        ("range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE)", "range(tx, ROWS * COLS * (ty == 0), 2)"),
    ),
    shortcut(
        "one lane of each warp",
        ("range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE)", "range(ty, ROWS * COLS * (tx == 0), HIGH)"),
    ),
    shortcut(
        "straight from x where the window ends",
        ("tile[ty + r, tx + s]", "(tile[ty + r, tx + s] if s < S - 1 else x[top + ty + r, left + tx + s])"),
    ),
    shortcut(
        "one warp loads",
        ("range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE)", "range(tx, ROWS * COLS * (ty == 0), WIDE)"),
    ),
)

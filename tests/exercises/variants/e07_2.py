"""Other answers to exercise 07.2."""

from . import Variant

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
    Variant("the kernel as it stands there", "budget", ((_LOOP, _ROWS),)),
    Variant("no halo", "uninitialised", ((_LOOP, _OWN),)),
    Variant("each thread its whole window", "budget", ((_LOOP, _FOUR_TIMES),)),
    Variant("one thread for all", "budget", ((_LOOP, _ONE_THREAD),)),
    Variant("down the columns", "budget", (("i // COLS, i % COLS", "i % ROWS, i // ROWS"),)),
    Variant("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Variant("straight from x", "budget", (("tile[ty + r, tx + s]", "x[top + ty + r, left + tx + s]"),)),
    Variant(
        "no guard", "bounds", (("        if top + row < H and left + col < W:\n            tile", "        tile"),)
    ),
    Variant("the guard of the outputs", "uninitialised", (("if top + row < H and", "if top + row < y.shape[0] and"),)),
    Variant("one round alone", "uninitialised", ((", HIGH * WIDE):", ", ROWS * COLS):"),)),
    Variant("the turned filter", "result", (("taps[r, s]", "taps[R - 1 - r, S - 1 - s]"),)),
    Variant(
        "clamped indices in place of a guard",
        "solved",
        (
            ("        if top + row < H and left + col < W:\n            tile", "        tile"),
            ("x[top + row, left + col]", "x[min(top + row, H - 1), min(left + col, W - 1)]"),
        ),
    ),
)

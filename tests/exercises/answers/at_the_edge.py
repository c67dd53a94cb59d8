"""Other answers to at-the-edge."""

from . import Answer, right, shortcut, wrong

_GUARD = """    if 2 * tile_y >= y.shape[0] or 2 * tile_x >= y.shape[1]:
        return
"""

_WHOLE_TILES = """    if 2 * tile_y + 1 >= y.shape[0] or 2 * tile_x + 1 >= y.shape[1]:
        return
"""

_LOAD = """            d[i, j] = 0
            if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:
                d[i, j] = x[row, col]
"""

_CLAMPED = """            d[i, j] = x[min(max(row, 0), x.shape[0] - 1), min(max(col, 0), x.shape[1] - 1)]
"""

_ENDS_ALONE = """            d[i, j] = 0
            if row < x.shape[0] and col < x.shape[1]:
                d[i, j] = x[row, col]
"""

_BEGINNINGS_ALONE = """            d[i, j] = 0
            if row >= 0 and col >= 0:
                d[i, j] = x[row, col]
"""

_STORE = """        if row < y.shape[0]:
            y[row, col] ="""

_TERNARY = """            there = 0 <= row < x.shape[0] and 0 <= col < x.shape[1]
            d[i, j] = x[row, col] if there else np.float32(0)
"""

_TAPS_FROM_U = """    g = cuda.local.array((3, 3), np.float32)
    for i in range(3):
        for j in range(3):
            g[i, j] = U[i, j]
    for i in range(2):
        row, col = 2 * tile_y + i, 2 * tile_x
        for j in range(3):
            out[i, j] = 0
            for k in range(3):
                out[i, j] += g[k, j] * d[i + k, j]
"""

VARIANTS = (
    Answer("no pixel asked for", "bounds", ((_LOAD, "            d[i, j] = x[row, col]\n"),)),
    Answer("the ends of the image alone", "result", ((_LOAD, _ENDS_ALONE),)),
    Answer("its beginnings alone", "bounds", ((_LOAD, _BEGINNINGS_ALONE),)),
    Answer("the last pixels again and again", "result", ((_LOAD, _CLAMPED),)),
    Answer("no zeros", "uninitialised", (("            d[i, j] = 0\n", ""),)),
    Answer("whole tiles alone", "unwritten", ((_GUARD, _WHOLE_TILES),)),
    Answer(
        "pad to the other side",
        "result",
        (("2 * tile_y + i - pad", "2 * tile_y + i + pad"),),
        mistake="rows were moved by pad to the other side",
    ),
    Answer("pad in columns alone", "result", (("2 * tile_y + i - pad", "2 * tile_y + i"),), mistake="rows had no pad"),
    Answer(
        "outputs moved as well",
        "result",
        (("row, col = 2 * tile_y + i, 2 * tile_x\n", "row, col = 2 * tile_y + 1 - i, 2 * tile_x\n"),),
    ),
    Answer("rows of outputs not asked for", "bounds", ((_STORE, "        if True:\n            y[row, col] ="),)),
    Answer("columns of outputs not asked for", "bounds", (("if col + 1 < y.shape[1]", "if True"),)),
    Answer("threads beyond the last tile", "bounds", ((_GUARD, ""),)),
    Answer("a condition in place of a branch", "solved", ((_LOAD, _TERNARY),)),
)

RIGHT = (
    right(
        "by unsigned comparisons",
        (
            "0 <= row < x.shape[0] and 0 <= col < x.shape[1]",
            "np.uint64(row) < np.uint64(x.shape[0]) and np.uint64(col) < np.uint64(x.shape[1])",
        ),
    ),
    right(
        "a branch around all",
        (
            "            d[i, j] = 0\n            if 0 <= row",
            "            d[i, j] = np.float32(0)\n            if 0 <= row",
        ),
    ),
    right(
        "both outputs asked for",
        (
            "        if row < y.shape[0]:\n            y[row, col] =",
            "        if row < y.shape[0] and col < y.shape[1]:\n            y[row, col] =",
        ),
    ),
    right(
        "columns first",
        ("0 <= row < x.shape[0] and 0 <= col < x.shape[1]", "0 <= col < x.shape[1] and 0 <= row < x.shape[0]"),
    ),
)

WRONG = (
    wrong("a single row of zeros", ("tile_y + i - pad", "tile_y + i - min(pad, 1)")),
    wrong("the zeros that are published, in columns", ("tile_x + j - pad", "tile_x + j - min(pad, 1)")),
    wrong("the columns that are published", ("2 * tile_x >= y.shape[1]", "2 * tile_x >= min(y.shape[1], 18)")),
    wrong("the rows that are published", ("2 * tile_y >= y.shape[0]", "2 * tile_y >= min(y.shape[0], 9)")),
    wrong("as many rows of pixels as of outputs", ("0 <= row < x.shape[0]", "0 <= row < min(x.shape[0], y.shape[0])")),
    wrong("the first rows alone at the end", ("0 <= row < x.shape[0]", "0 <= row < x.shape[0] + pad // 2")),
    wrong("an even number of columns at the end", ("if col + 1 < y.shape[1]", "if col + 2 < y.shape[1]")),
    wrong("no zeros on the left where there are two", ("0 <= col", "(0 <= col or pad == 2 and col == -2)")),
)

SHORTCUTS = (
    shortcut(
        "addresses clamped to the image",
        (
            "            d[i, j] = 0\n"
            "            if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:\n"
            "                d[i, j] = x[row, col]\n",
            "            value = x[min(max(row, 0), x.shape[0] - 1), min(max(col, 0), x.shape[1] - 1)]\n"
            "            d[i, j] = value if 0 <= row < x.shape[0] and 0 <= col < x.shape[1] else np.float32(0)\n",
        ),
    ),
    shortcut("another's kernel", cell="from labkit.conv.winograd.s01_f2x2 import f2x2 as up_to_the_edge\n"),
    shortcut(
        "pixels by atomics",
        ("d[i, j] = x[row, col]", "d[i, j] = cuda.atomic.add(x, (row, col), np.float32(0))"),
        (
            "            d[i, j] = 0\n            if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:\n    ",
            "            row, col = min(max(row, 0), x.shape[0] - 1), min(max(col, 0), x.shape[1] - 1)\n",
        ),
    ),
    shortcut(
        "the definition, by taps that U gives away",
        ("    for i in range(2):\n        row, col = 2 * tile_y + i, 2 * tile_x\n", _TAPS_FROM_U),
    ),
    shortcut(
        "one thread for all",
        cell="""@cuda.jit
def up_to_the_edge(x, U, y, pad):
    d = cuda.local.array((4, 4), np.float32)
    half = cuda.local.array((4, 4), np.float32)
    m = cuda.local.array((4, 4), np.float32)
    out = cuda.local.array((2, 4), np.float32)
    x0, y0 = cuda.grid(2)
    wide, high = (y.shape[1] + 1) // 2, (y.shape[0] + 1) // 2
    for n in range(wide * high * (x0 + y0 == 0)):
        tile_x, tile_y = n % wide, n // wide
        for i in range(4):
            for j in range(4):
                row, col = 2 * tile_y + i - pad, 2 * tile_x + j - pad
                d[i, j] = 0
                if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:
                    d[i, j] = x[row, col]
        for j in range(4):
            half[0, j] = d[2, j] - d[0, j]
            half[1, j] = d[1, j] + d[2, j]
            half[2, j] = d[2, j] - d[1, j]
            half[3, j] = d[3, j] - d[1, j]
        for i in range(4):
            m[i, 0] = U[i, 0] * (half[i, 2] - half[i, 0])
            m[i, 1] = U[i, 1] * (half[i, 1] + half[i, 2])
            m[i, 2] = U[i, 2] * (half[i, 2] - half[i, 1])
            m[i, 3] = U[i, 3] * (half[i, 3] - half[i, 1])
        for j in range(4):
            out[0, j] = m[0, j] + m[1, j] + m[2, j]
            out[1, j] = m[1, j] - m[2, j] + m[3, j]
        for i in range(2):
            row, col = 2 * tile_y + i, 2 * tile_x
            if row < y.shape[0]:
                y[row, col] = out[i, 0] + out[i, 1] + out[i, 2]
                if col + 1 < y.shape[1]:
                    y[row, col + 1] = out[i, 1] - out[i, 2] + out[i, 3]
""",
    ),
)

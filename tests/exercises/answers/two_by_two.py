"""Other answers to two-by-two."""

from . import Answer, right, shortcut, wrong

_FIRST = "            half[0, j] = d[0, j] - d[1, j]\n"
_GUARD = "                if top + i < x.shape[1] and left + j < x.shape[2]:\n                    d[i, j]"
_BY_TAPS = """
@cuda.jit
def two_by_two(x, U, y):
    tile_x, tile_y = cuda.grid(2)
    top, left = 2 * tile_y, 2 * tile_x
    for row in range(top, min(top + 2, y.shape[0])):
        for col in range(left, min(left + 2, y.shape[1])):
            total = np.float32(0)
            for c in range(x.shape[0]):
                total += x[c, row, col] * U[c, 0, 0] + x[c, row, col + 1] * U[c, 0, 2]
                total += x[c, row + 1, col] * U[c, 2, 0] + x[c, row + 1, col + 1] * U[c, 2, 2]
            y[row, col] = total
"""
_PER_OUTPUT = """
@cuda.jit
def two_by_two(x, U, y):
    tile_x, tile_y = cuda.grid(2)
    top, left = 2 * tile_y, 2 * tile_x
    zero = np.float32(0)
    for p in range(2):
        for q in range(2):
            if top + p < y.shape[0] and left + q < y.shape[1]:
                total = zero
                for c in range(x.shape[0]):
                    for i in range(p, p + 2):
                        for j in range(q, q + 2):
                            v = zero
                            for a in range(3):
                                for b in range(3):
                                    f = 1 if a == i else -1 if a == 1 and i != 1 else 0
                                    g = 1 if b == j else -1 if b == 1 and j != 1 else 0
                                    if f * g != 0 and top + a < x.shape[1] and left + b < x.shape[2]:
                                        v += np.float32(f * g) * x[c, top + a, left + b]
                            total += U[c, i, j] * v
                y[top + p, left + q] = total
"""
_LAST = "                y[top + i, left + 1] = half[i, 1] + half[i, 2]"
_ONE_THREAD = """


@cuda.jit
def two_by_two(x, U, y):
    col, row = cuda.grid(2)
    if row == 0 and col == 0:
        for tile_y in range((y.shape[0] + 1) // 2):
            for tile_x in range((y.shape[1] + 1) // 2):
                one_tile(x, U, y, tile_x, tile_y)
"""
_COLUMNS = """        for j in range(3):
            half[0, j] = d[0, j] - d[1, j]
            half[1, j] = d[1, j]
            half[2, j] = d[2, j] - d[1, j]
"""
_ROWS = """        for i in range(3):
            half[i, 0] = d[i, 0] - d[i, 1]
            half[i, 1] = d[i, 1]
            half[i, 2] = d[i, 2] - d[i, 1]
"""
_THEN_ROWS = """        for i in range(3):
            m[i, 0] += U[c, i, 0] * (half[i, 0] - half[i, 1])
            m[i, 1] += U[c, i, 1] * half[i, 1]
            m[i, 2] += U[c, i, 2] * (half[i, 2] - half[i, 1])
"""
_THEN_COLUMNS = """        for j in range(3):
            m[0, j] += U[c, 0, j] * (half[0, j] - half[1, j])
            m[1, j] += U[c, 1, j] * half[1, j]
            m[2, j] += U[c, 2, j] * (half[2, j] - half[1, j])
"""
_TWICE = "            m[i, 1] += U[c, i, 1] * half[i, 1]\n"
_INSIDE = """                inside = top + i < x.shape[1] and left + j < x.shape[2]
                if inside:
                    d[i, j]"""

_CORNERS = """
@cuda.jit
def two_by_two(x, U, y):
    d = cuda.local.array((3, 3), np.float32)
    half = cuda.local.array((3, 3), np.float32)
    m = cuda.local.array((3, 3), np.float32)  # U
    tile_x, tile_y = cuda.grid(2)
    top, left = 2 * tile_y, 2 * tile_x
    if top >= y.shape[0] or left >= y.shape[1]:
        return
    for i in range(2):
        for j in range(2):
            half[i, j] = 0
    for c in range(x.shape[0]):
        for i in range(3):
            for j in range(3):
                d[i, j] = 0
                if top + i < x.shape[1] and left + j < x.shape[2]:
                    d[i, j] = x[c, top + i, left + j]
                m[i, j] = U[c, i, j]
        for i in range(2):
            for j in range(2):
                half[i, j] += d[i, j] * m[0, 0] + d[i, j + 1] * m[0, 2]
                half[i, j] += d[i + 1, j] * m[2, 0] + d[i + 1, j + 1] * m[2, 2]
    for i in range(2):
        if top + i < y.shape[0]:
            y[top + i, left] = half[i, 0]
            if left + 1 < y.shape[1]:
                y[top + i, left + 1] = half[i, 1]
"""

VARIANTS = (
    Answer("taps from the corners of U", "result", cell=_CORNERS, mistake="16 products were made, of the corners of U"),
    Answer(
        "the first row with the sign of the last",
        "result",
        ((_FIRST, "            half[0, j] = d[1, j] - d[0, j]\n"),),
        mistake="a tile's first row had the opposite sign",
    ),
    Answer("a plus in place of a minus", "result", ((_FIRST, "            half[0, j] = d[0, j] + d[1, j]\n"),)),
    Answer(
        "columns alone",
        "result",
        (("(half[i, 0] - half[i, 1])", "half[i, 0]"), ("(half[i, 2] - half[i, 1])", "half[i, 2]")),
        mistake="only the columns of a tile were transformed",
    ),
    Answer(
        "U turned",
        "result",
        (("U[c, i, 0]", "U[c, 0, i]"), ("U[c, i, 1]", "U[c, 1, i]"), ("U[c, i, 2]", "U[c, 2, i]")),
        mistake="U were transposed",
    ),
    Answer(
        "the second output by the first's row",
        "result",
        (("        half[1, j] = m[1, j] + m[2, j]", "        half[1, j] = m[1, j] - m[2, j]"),),
    ),
    Answer("one channel", "result", (("range(x.shape[0])", "range(1)"),), mistake="only the first channel were added"),
    Answer("the last channel alone", "result", (("m[i, 1] += ", "m[i, 1] = "),)),
    Answer("sums that do not begin at zero", "uninitialised", (("            m[i, j] = 0\n", "            pass\n"),)),
    Answer("pixels below the image", "bounds", (("top + i < x.shape[1] and ", ""),)),
    Answer("pixels to the right of the image", "bounds", ((" and left + j < x.shape[2]", ""),)),
    Answer("no zeros past the edge", "uninitialised", (("                d[i, j] = 0\n", ""),)),
    Answer("outputs below", "bounds", (("        if top + i < y.shape[0]:\n", "        if top >= 0:\n"),)),
    Answer(
        "outputs to the right", "bounds", (("            if left + 1 < y.shape[1]:\n", "            if left >= 0:\n"),)
    ),
    Answer(
        "the second column left out",
        "unwritten",
        (("            if left + 1 < y.shape[1]:\n", "            if left + 2 < y.shape[1]:\n"),),
    ),
    Answer(
        "tiles that overlap by two", "race", (("top, left = 2 * tile_y, 2 * tile_x", "top, left = tile_y, tile_x"),)
    ),
    Answer("by taps that U does not have", "result", cell=_BY_TAPS),
    Answer("each output by itself", "budget", cell=_PER_OUTPUT),
    Answer(
        "numbers of U loaded twice",
        "budget",
        ((_TWICE, "            m[i, 1] += U[c, i, 1] * d[i, 1] + U[c, i, 1] * (half[i, 1] - d[i, 1])\n"),),
    ),
    Answer("rows first", "solved", ((_COLUMNS, _ROWS), (_THEN_ROWS, _THEN_COLUMNS))),
)

RIGHT = (
    right(
        "addresses clamped to the image",
        (
            "                d[i, j] = 0\n"
            "                if top + i < x.shape[1] and left + j < x.shape[2]:\n"
            "                    d[i, j] = x[c, top + i, left + j]\n",
            "                d[i, j] = x[c, min(top + i, x.shape[1] - 1), min(left + j, x.shape[2] - 1)]\n",
        ),
    ),
    right(
        "minus the other way, with both signs", ("half[2, j] = d[2, j] - d[1, j]", "half[2, j] = -(d[1, j] - d[2, j])")
    ),
    right(
        "zeros by choice",
        (
            _GUARD,
            _INSIDE,
        ),
    ),
    right(
        "outputs from the sums at once",
        (
            "            y[top + i, left] = half[i, 0] + half[i, 1]\n",
            "            y[top + i, left] = m[i, 0] + m[i, 1] + m[i + 1, 0] + m[i + 1, 1]\n",
        ),
    ),
    right(
        "a helper for a difference",
        ("@cuda.jit\ndef", "@cuda.jit(device=True)\ndef less(a, b):\n    return a - b\n\n\n@cuda.jit\ndef"),
        ("half[0, j] = d[0, j] - d[1, j]", "half[0, j] = less(d[0, j], d[1, j])"),
    ),
)

WRONG = (
    wrong("the channels that are published", ("range(x.shape[0])", "range(min(x.shape[0], 4))")),
    wrong("no more than 17 channels", ("range(x.shape[0])", "range(min(x.shape[0], 17))")),
    wrong("an even number of channels", ("range(x.shape[0])", "range(max(x.shape[0] // 2 * 2, 1))")),
    wrong(
        "the columns that are published",
        ("            y[top + i, left] =", "            if left < 18:\n                y[top + i, left] ="),
    ),
    wrong("taps in place of their sums", ("U[c, i, 1]", "(U[c, i, 0] + U[c, i, 2])")),
)

SHORTCUTS = (
    shortcut("each output by itself", cell=_PER_OUTPUT),
    shortcut(
        "one thread for all tiles",
        ("@cuda.jit\ndef two_by_two(x, U, y):", "@cuda.jit(device=True)\ndef one_tile(x, U, y, tile_x, tile_y):"),
        ("    tile_x, tile_y = cuda.grid(2)\n", ""),
        (_LAST, _LAST + _ONE_THREAD),
    ),
)

"""Other answers to a-window-in-the-ring."""

from . import Answer, right, shortcut, wrong

_STAGES = "AHEAD + 3, AHEAD - 1\n"
_WAIT = "        ptx.cp_async_wait(PENDING)\n"
_BARRIER = "        cuda.syncthreads()\n"
_COPY = """        if row + AHEAD < rows:
            ptx.cp_async(ring, ((row + AHEAD) % STAGES, t), x, (row + AHEAD, col), 4, valid_bytes)
"""
_COMMIT = "        ptx.cp_async_commit()\n        if row >= 2"
_READ = "ring[(row - i) % STAGES, t + j]"
_ROW_LEFT_OUT = "the last row of each window were left out"
_COLUMN_LEFT_OUT = "the last column of each window were left out"
_FROM_ZERO = "0 were in every window"

_IN_REGISTERS = """WIDTH = 128


@cuda.jit
def highest_around(x, y):
    rows_of = cuda.shared.array((5, WIDTH), np.float32)
    t = cuda.threadIdx.x
    col = cuda.blockIdx.x * (WIDTH - 2) + t
    a = b = np.float32(0)
    for row in range(x.shape[0]):
        rows_of[row % 2, t] = x[row, col] if col < x.shape[1] else np.float32(0)
        cuda.syncthreads()
        c = np.float32(0)
        if t < WIDTH - 2:
            c = max(rows_of[row % 2, t], rows_of[row % 2, t + 1], rows_of[row % 2, t + 2])
            if row >= 2 and col < x.shape[1] - 2:
                y[row - 2, col] = max(a, b, c)
        a, b = b, c
"""

_MAXIMA_OF_ROWS = """WIDTH, AHEAD = 128, 2
STAGES = AHEAD + 1

@cuda.jit
def highest_around(x, y):
    ring = cuda.shared.array((STAGES, WIDTH), np.float32)
    t = cuda.threadIdx.x
    col = cuda.blockIdx.x * (WIDTH - 2) + t
    rows, columns = x.shape
    valid = 4 if col < columns else 0
    a = b = np.float32(0)
    for row in range(AHEAD):
        ptx.cp_async(ring, (row, t), x, (row, col), 4, valid)
        ptx.cp_async_commit()
    for row in range(rows):
        ptx.cp_async_wait(1)
        cuda.syncthreads()
        if row + AHEAD < rows:
            ptx.cp_async(ring, ((row + AHEAD) % STAGES, t), x, (row + AHEAD, col), 4, valid)
        ptx.cp_async_commit()
        c = np.float32(0)
        if t < WIDTH - 2 and col < columns - 2:
            stage = row % STAGES
            c = max(ring[stage, t], max(ring[stage, t + 1], ring[stage, t + 2]))
            if row >= 2:
                y[row - 2, col] = max(a, max(b, c))
        a, b = b, c
"""

VARIANTS = (
    Answer("a stage per row in flight, and one", "in-flight", ((_STAGES, "AHEAD + 1, AHEAD - 1\n"),)),
    Answer("a stage too few", "in-flight", ((_STAGES, "AHEAD + 2, AHEAD - 1\n"),)),
    Answer("a stage too many", "budget", ((_STAGES, "AHEAD + 4, AHEAD - 1\n"),)),
    Answer("no wait", "in-flight", ((_WAIT, ""),)),
    Answer("a wait for one row too few", "in-flight", ((_WAIT, _WAIT.replace("PENDING", "AHEAD")),)),
    Answer(
        "a copy at a time",
        "budget",
        (
            (
                _WAIT + _BARRIER + _COPY + _COMMIT,
                _COPY
                + _COMMIT.replace(
                    "        if row", "        ptx.cp_async_wait(0)\n        cuda.syncthreads()\n        if row"
                ),
            ),
            ("WIDTH, AHEAD = 128, 2", "WIDTH, AHEAD = 128, 1"),
            (_STAGES, "5, 0\n"),
        ),
    ),
    Answer("the wait behind the barrier", "race", ((_WAIT + _BARRIER, _BARRIER + _WAIT),)),
    Answer("no barrier", "race", ((_WAIT + _BARRIER, _WAIT),)),
    Answer("two barriers per row", "budget", ((_WAIT + _BARRIER, _WAIT + _BARRIER * 2),)),
    Answer(
        "the copy before the barrier",
        "race",
        (
            (
                _WAIT + _BARRIER + _COPY + _COMMIT,
                _COPY
                + _COMMIT.replace("        if row", _WAIT.replace("PENDING", "AHEAD") + _BARRIER + "        if row"),
            ),
        ),
    ),
    Answer("groups as long as there are copies", "in-flight", ((_COMMIT, "    " + _COMMIT),)),
    Answer(
        "windows of two rows",
        "result",
        (("(row - i) % STAGES", "(row - 1 - i % 2) % STAGES"),),
        mistake=_ROW_LEFT_OUT,
    ),
    Answer("windows of two columns", "result", (("for j in range(3)", "for j in range(2)"),), mistake=_COLUMN_LEFT_OUT),
    Answer(
        "one maximum for all rows",
        "result",
        (
            ("            highest = np.float32(-np.inf)\n", ""),
            (
                "    for row in range(rows):\n",
                "    highest = np.float32(-np.inf)\n    for row in range(rows):\n",
            ),
        ),
        mistake="each window held those above it, too",
    ),
    Answer(
        "the row that is read is copied",
        "result",
        (("x, (row + AHEAD, col), 4", "x, (row, col), 4"),),
        mistake="each row from the third on were a copy of the row two above",
    ),
    Answer(
        "blocks as far apart as they have threads",
        "unwritten",
        (("cuda.blockIdx.x * (WIDTH - 2)", "cuda.blockIdx.x * WIDTH"),),
        mistake="blocks began WIDTH columns apart, and wrote two columns less",
    ),
    Answer(
        "a row too late begun",
        "unwritten",
        (("row >= 2 and", "row > 2 and"),),
        mistake="the first row of y were left out",
    ),
    Answer(
        "sums",
        "result",
        (
            ("highest = max(highest, ring[(row - i) % STAGES, t + j])", "highest += ring[(row - i) % STAGES, t + j]"),
            ("np.float32(-np.inf)", "np.float32(0)"),
        ),
        mistake="the elements of each window were added",
    ),
    Answer("from zero", "result", (("np.float32(-np.inf)", "np.float32(0)"),), mistake=_FROM_ZERO),
    Answer("rows of the stages", "in-flight", ((_READ, "ring[i, t + j]"),)),
    Answer("columns past the last", "bounds", ((" and col < columns - 2", ""),)),
    Answer("the last threads, too", "bounds", ((" and t < WIDTH - 2", ""),)),
    Answer("a row too late", "bounds", (("y[row - 2, col]", "y[row - 1, col]"),)),
    Answer("copies past the last row", "bounds", ((_COPY, _COPY.replace("        if row + AHEAD < rows:\n    ", "")),)),
    Answer("one row ahead", "solved", (("WIDTH, AHEAD = 128, 2", "WIDTH, AHEAD = 128, 1"),)),
)

RIGHT = (
    right("one row ahead, in five stages", ("WIDTH, AHEAD = 128, 2", "WIDTH, AHEAD = 128, 1"), (_STAGES, "5, 0\n")),
    right("the maxima of each row kept in registers", cell=_MAXIMA_OF_ROWS),
    right(
        "one loop, with the copy behind the barrier",
        (
            "    for row in range(AHEAD):\n"
            "        ptx.cp_async(ring, (row % STAGES, t), x, (row, col), 4, valid_bytes)\n"
            "        ptx.cp_async_commit()\n    for row in range(rows):\n" + _WAIT + _BARRIER,
            "    for row in range(-AHEAD, rows):\n        if row >= 0:\n            ptx.cp_async_wait(PENDING)\n"
            "            cuda.syncthreads()\n",
        ),
    ),
    right("a low number", ("np.float32(-np.inf)", "np.float32(-3e38)")),
    right(
        "window after window",
        (_READ, "ring[(row - 2 + i) % STAGES, t + j]"),
    ),
)

WRONG = (
    wrong(
        "zeros are not stored",
        ("y[row - 2, col] = highest", "if highest != 0:\n                y[row - 2, col] = highest"),
    ),
    wrong("the rows that are published", ("for row in range(rows):", "for row in range(min(rows, 30)):")),
    wrong("a wait in the first rows alone", (_WAIT, "        if row < 20:\n    " + _WAIT)),
    wrong("blocks after the first without a barrier", (_BARRIER, "        if cuda.blockIdx.x == 0:\n    " + _BARRIER)),
    wrong("above -4", ("np.float32(-np.inf)", "np.float32(-4)")),
    wrong("above -1e6", ("np.float32(-np.inf)", "np.float32(-1e6)")),
    wrong("above -1e30", ("np.float32(-np.inf)", "np.float32(-1e30)")),
)

SHORTCUTS = (
    shortcut("plain loads", cell=_IN_REGISTERS),
    shortcut("a wait for all copies", (_WAIT, _WAIT.replace("PENDING", "0")), (_COPY, ""), (_COMMIT, _COPY + _COMMIT)),
    shortcut("windows from global memory", (_READ, "x[row - i, col + j]")),
    shortcut(
        "plain loads, and copies that nobody uses",
        (_READ, "x[row - i, col + j] + np.float32(0) * ring[row % STAGES, t]"),
    ),
)

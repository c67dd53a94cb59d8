"""Other answers to pad-the-tile."""

from . import Answer, right, shortcut, wrong

VARIANTS = (
    Answer("the bug itself", "budget", (("WIDTH = TILE + 1", "WIDTH = TILE"),)),
    Answer("two columns of padding", "budget", (("WIDTH = TILE + 1", "WIDTH = TILE + 2"),)),
    Answer("a tile too narrow", "bounds", (("WIDTH = TILE + 1", "WIDTH = TILE - 1"),)),
    Answer("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Answer("no shared memory at all", "budget", (("T[row, col] = tile[x, y]", "T[row, col] = A[col, row]"),)),
    Answer(
        "no guard",
        "bounds",
        (("    if row < A.shape[0] and col < A.shape[1]:\n        tile", "    tile"),),
    ),
    Answer(
        "a copy instead of a transpose",
        "result",
        (("= tile[x, y]", "= tile[y, x]"),),
        mistake="no tile were transposed",
    ),
    Answer(
        "the book's shapes",
        "unwritten",
        (("row < T.shape[0] and col < T.shape[1]", "row < min(96, T.shape[0]) and col < T.shape[1]"),),
    ),
    Answer("three columns of padding", "solved", (("WIDTH = TILE + 1", "WIDTH = TILE + 3"),)),
    Answer("an odd width of its own", "solved", (("WIDTH = TILE + 1", "WIDTH = 65"),)),
)

RIGHT = (
    right(
        "one row of 32 * 33 words",
        ("(TILE, WIDTH)", "32 * 33"),
        ("tile[y, x] =", "tile[y * WIDTH + x] ="),
        ("= tile[x, y]", "= tile[x * WIDTH + y]"),
    ),
    right(
        "threadIdx by another name",
        ("x, y = cuda.threadIdx.x, cuda.threadIdx.y", "t = cuda.threadIdx\n    x, y = t.x, t.y"),
    ),
    right("a width from the ceiling", ("WIDTH = TILE + 1", "import math\nWIDTH = math.ceil(TILE * 33 / 32)")),
    right("a width in steps", ("WIDTH = TILE + 1", "WIDTH = TILE\nWIDTH += 1")),
    right("the width by a bit", ("WIDTH = TILE + 1", "WIDTH = TILE | 1")),
    right("the width by an exclusive or", ("WIDTH = TILE + 1", "WIDTH = TILE ^ 1")),
)

WRONG = (
    wrong("the rows that are published", ("row < T.shape[0]", "row < min(T.shape[0], 136)")),
    wrong("an even number of columns", ("col < T.shape[1]", "col < T.shape[1] // 2 * 2")),
    wrong("wide enough for the columns alone", ("WIDTH = TILE + 1", "WIDTH = 31")),
    wrong(
        "zeros left out",
        (
            "        T[row, col] = tile[x, y]",
            "        value = tile[x, y]\n        if value != 0:\n            T[row, col] = value",
        ),
    ),
)

SHORTCUTS = (
    shortcut(
        "reads by atomics",
        ("WIDTH = TILE + 1", "WIDTH = TILE"),
        ("= tile[x, y]", "= cuda.atomic.add(tile, (x, y), np.float32(0))"),
    ),
    shortcut("the tile filled and left aside", ("= tile[x, y]", "= A[col, row] + np.float32(0) * tile[0, 0]")),
    shortcut("straight from A, by atomics", ("= tile[x, y]", "= cuda.atomic.add(A, (col, row), np.float32(0))")),
    shortcut(
        "by shuffles, then through a place of the thread's own",
        cell="""TILE = 32
WIDTH = TILE + 1


@cuda.jit
def transpose(A, T):
    tile = cuda.shared.array((TILE, WIDTH), np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    if warp < 16:
        top, left = cuda.blockIdx.y * TILE + warp // 4 * 8, cuda.blockIdx.x * TILE + warp % 4 * 8
        r, c = lane // 8, lane % 8
        upper = A[top + r, left + c] if top + r < A.shape[0] and left + c < A.shape[1] else np.float32(0)
        lower = A[top + r + 4, left + c] if top + r + 4 < A.shape[0] and left + c < A.shape[1] else np.float32(0)
        for half in range(2):
            row = r + 4 * half
            a = cuda.shfl_sync(0xFFFFFFFF, upper, c % 4 * 8 + row)
            b = cuda.shfl_sync(0xFFFFFFFF, lower, c % 4 * 8 + row)
            tile[warp, lane] = a if c < 4 else b
            if left + row < T.shape[0] and top + c < T.shape[1]:
                T[left + row, top + c] = tile[warp, lane]
""",
    ),
)

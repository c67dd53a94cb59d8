"""Other answers to padding-without-a-branch."""

from . import Answer, right, shortcut, wrong

_INSIDE = "np.uint32(row) < np.uint32(H) and np.uint32(col) < np.uint32(W)"

_VALID = "4 if inside else 0"

_COPY = "ptx.cp_async(tile, (i, t), x, row * W + col, 4, 4 if inside else 0)"

MEASURED_PADDING = """WIDE, TAPS = 64, 8

@cuda.jit
def fill(x, matrix, H, W, R, S, P, Q, top, left):
    tile = cuda.shared.array((2, WIDE), np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.y * TAPS
    pq = cuda.blockIdx.x * WIDE + t
    p, q = pq // Q, pq % Q
    ptx.cp_async(tile, (0, t), x, 0, 4, 4)
    ptx.cp_async(tile, (1, t), x, 0, 4, 0)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    s = tile[1, t]
    f = np.float32(int((tile[0, t] - s) / x[0] + np.float32(0.5)))
    for i in range(TAPS):
        r, c = (first + i) // S, (first + i) % S
        row, col = p + r - top, q + c - left
        v = np.float32(0)
        if row >= 0 and row < H and col >= 0 and col < W:
            v = x[row * W + col]
        if first + i < R * S and pq < P * Q:
            matrix[first + i, pq] = v * f + s
"""

VARIANTS = (
    Answer(
        "by registers",
        "duty",
        ((_COPY, "tile[i, t] = x[row * W + col] if inside else np.float32(0)"),),
    ),
    Answer(
        "zeros by threads",
        "budget",
        ((_COPY, f"if inside:\n            {_COPY[:-19]}4)\n        else:\n            tile[i, t] = 0"),),
    ),
    Answer("pixels alone", "uninitialised", ((_COPY, f"if inside:\n            {_COPY[:-19]}4)"),)),
    Answer(
        "two copies",
        "budget",
        ((_COPY, f"if inside:\n            {_COPY[:-19]}4)\n        else:\n            {_COPY[:-19]}0)"),),
    ),
    Answer("all bytes everywhere", "bounds", ((_VALID, "4"),)),
    Answer("no wait", "in-flight", (("    ptx.cp_async_wait(0)\n", ""),)),
    Answer("no commit", "in-flight", (("    ptx.cp_async_commit()\n", ""),)),
    Answer("waiting for all but one", "in-flight", (("cp_async_wait(0)", "cp_async_wait(1)"),)),
    Answer("rows alone", "bounds", ((_INSIDE, "np.uint32(row) < np.uint32(H)"),)),
    Answer(
        "signed, one end alone",
        "result",
        ((_INSIDE, "row < H and col < W"),),
        mistake="only the lower and the right end of the image were looked at",
    ),
    Answer(
        "the place in a taller image",
        "result",
        (("row * W + col", "row * H + col"),),
        mistake="rows of x were H elements apart",
    ),
    Answer("both ends", "solved", ((_INSIDE, "0 <= row < H and 0 <= col < W"),)),
    Answer("by multiplication", "solved", ((_VALID, "4 * inside"),)),
    Answer(
        "a wait inside of the loop",
        "solved",
        (
            (
                "    ptx.cp_async_commit()\n    ptx.cp_async_wait(0)\n",
                "        ptx.cp_async_commit()\n        ptx.cp_async_wait(0)\n",
            ),
        ),
    ),
    Answer(
        "windows that begin at the first pixel",
        "result",
        (("p + r - top, q + s - left", "p + r, q + s"),),
        mistake="there were no padding above and on the left",
    ),
    Answer(
        "the sides exchanged",
        "result",
        (("p + r - top, q + s - left", "p + r - left, q + s - top"),),
        mistake="top and left were exchanged",
    ),
    Answer(
        "taps by columns",
        "result",
        (("(first + i) // S, (first + i) % S", "(first + i) % R, (first + i) // R"),),
        mistake="taps were counted down the windows first",
    ),
)

RIGHT = (
    right(
        "bytes counted apart",
        (
            "ptx.cp_async(tile, (i, t), x, row * W + col, 4, 4 if inside else 0)",
            "valid = np.uint32(4) if inside else np.uint32(0)\n"
            "        ptx.cp_async(tile, (i, t), x, row * W + col, 4, valid)",
        ),
    ),
    right("a place inside for what lies outside", ("row * W + col, 4", "(row * W + col if inside else 0), 4")),
    right("a group for each copy", ("    ptx.cp_async_commit()\n", "        ptx.cp_async_commit()\n")),
)

WRONG = (
    wrong("rows compared in 8 bits", ("np.uint32(row) < np.uint32(H)", "np.uint8(row) < H and row < H")),
    wrong("left of the image", ("np.uint32(col) < np.uint32(W)", "col < W and col > -2")),
    wrong("above the image", ("np.uint32(row) < np.uint32(H)", "row < H and row > -2")),
    wrong("the last row", ("np.uint32(row) < np.uint32(H)", "np.uint32(row) < np.uint32(max(H - 1, 1))")),
    wrong("square images", ("np.uint32(col) < np.uint32(W)", "np.uint32(col) < np.uint32(H)")),
    wrong("the images that are published", ("np.uint32(col) < np.uint32(W)", "np.uint32(col) < np.uint32(min(W, 40))")),
    wrong("half of a pixel", ("4 if inside else 0", "2 if inside else 0")),
    wrong("a wait of the first warp", ("    ptx.cp_async_wait(0)\n", "    if t < 32:\n        ptx.cp_async_wait(0)\n")),
    wrong("a border that is copied", ("4 if inside else 0", "4 if inside or row * W + col == 0 else 0")),
    wrong("at most 5 columns of taps", ("S, (first + i) % S", "min(S, 5), (first + i) % min(S, 5)")),
    wrong("at most 4 rows of taps", ("p + r - top", "p + min(r, 3) - top")),
    wrong("at most 2 rows of zeros", ("p + r - top", "p + r - min(top, 2)")),
    wrong("at most 3 columns of zeros", ("q + s - left", "q + s - min(left, 3)")),
)

SHORTCUTS = (
    shortcut(
        "copied, and stored over",
        (
            "    cuda.syncthreads()\n",
            "    for i in range(TAPS):\n"
            "        row, col = p + (first + i) // S - top, q + (first + i) % S - left\n"
            "        tile[i, t] = x[row * W + col] if 0 <= row < H and 0 <= col < W else np.float32(0)\n"
            "    cuda.syncthreads()\n",
        ),
    ),
    shortcut(
        "zeros where the tile is stored",
        ("= tile[i, t]", "= tile[i, t] if tile[i, t] != 0 else np.float32(0)"),
        ("4 if inside else 0)", "4)"),
        ("row * W + col, 4", "(row * W + col if inside else 0), 4"),
    ),
    shortcut(
        "straight to the matrix",
        (
            "= tile[i, t]",
            "= tile[i, t] * np.float32(0) + x[min(max(p + (first + i) // S - top, 0), H - 1) * W + "
            "min(max(q + (first + i) % S - left, 0), W - 1)] * np.float32(tile[i, t] != 0)",
        ),
    ),
    shortcut("loads, disturbed as two copies are", cell=MEASURED_PADDING),
    shortcut(
        "one warp copies",
        (
            """    pq = cuda.blockIdx.x * WIDE + t
    p, q = pq // Q, pq % Q
    for i in range(TAPS):
        r, s""",
            """    for j in range(2 * TAPS * (t < 32)):
        i, column = j // 2, t + 32 * (j % 2)
        pq = cuda.blockIdx.x * WIDE + column
        p, q = pq // Q, pq % Q
        r, s""",
        ),
        ("ptx.cp_async(tile, (i, t),", "ptx.cp_async(tile, (i, column),"),
        ("    cuda.syncthreads()\n", "    cuda.syncthreads()\n    pq = cuda.blockIdx.x * WIDE + t\n"),
    ),
)

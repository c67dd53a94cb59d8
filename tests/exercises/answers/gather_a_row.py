"""Other answers to gather-a-row."""

from . import Answer, right, shortcut, wrong

_OUTPUTS = "n, p, q = npq // (P * Q), npq // Q % P, npq % Q"

_INSIDE = "n < N and 0 <= h < H and 0 <= w < W"

_PLACE = "(vector ^ row % 8) * 4), x"

_COPY = "ptx.cp_async(tile, (row, (vector ^ row % 8) * 4), x, (source, 0), 16, 16 if inside else 0)"

_ZEROS = """if inside:
        ptx.cp_async(tile, (row, (vector ^ row % 8) * 4), x, (source, 0), 16, 16)
    else:
        for i in range(4):
            tile[row, (vector ^ row % 8) * 4 + i] = 0"""

_TWO_COPIES = """if inside:
        ptx.cp_async(tile, (row, (vector ^ row % 8) * 4), x, (source, 0), 16, 16)
    else:
        ptx.cp_async(tile, (row, (vector ^ row % 8) * 4), x, (0, 0), 16, 0)"""

_BY_REGISTERS = """for i in range(4):
        tile[row, (vector ^ row % 8) * 4 + i] = x[source, i] if inside else np.float32(0)"""

_STORED_OVER = """    cuda.syncthreads()
    for i in range(4):
        tile[row, (vector ^ row % 8) * 4 + i] = x[source, i] if inside else np.float32(0)
    cuda.syncthreads()
    row, vector = thread % ROWS"""

_READ = "a, b, c, d = ptx.load4(tile, (row, (vector ^ row % 8) * 4))"

VARIANTS = (
    Answer("no swizzle", "result", ((_PLACE, "vector * 4), x"),), mistake="only the reads from the tile were swizzled"),
    Answer(
        "no swizzle on either side", "budget", ((_PLACE, "vector * 4), x"), (_READ, _READ.replace(" ^ row % 8", "")))
    ),
    Answer("swizzled by the row alone", "race", ((_PLACE, "(row % 8) * 4), x"),)),
    Answer("swizzled by the whole row", "bounds", ((_PLACE, "(vector ^ row) * 4), x"),)),
    Answer(
        "swizzled by 4 rows",
        "result",
        ((_PLACE, "(vector ^ row % 4) * 4), x"),),
        mistake="the stores to the tile were swizzled over 4 rows",
    ),
    Answer("no test of the images", "bounds", ((_INSIDE, "0 <= h < H and 0 <= w < W"),)),
    Answer("all bytes everywhere", "bounds", (("16 if inside else 0", "16"),)),
    Answer("the right end of a row forgotten", "bounds", ((_INSIDE, "n < N and 0 <= h < H and 0 <= w"),)),
    Answer("the left end of a row forgotten", "result", ((_INSIDE, "n < N and 0 <= h < H and w < W"),)),
    Answer(
        "P and Q swapped",
        "result",
        ((_OUTPUTS, "n, p, q = npq // (P * Q), npq // P % Q, npq % P"),),
        mistake="P and Q were exchanged",
    ),
    Answer(
        "windows three pixels wide",
        "result",
        (("tap // S", "tap // 3"), ("tap % S", "tap % 3")),
        mistake="each row of a window had 3 taps",
    ),
    Answer(
        "columns first",
        "result",
        ((_OUTPUTS, "n, p, q = npq // (P * Q), npq % P, npq // P % Q"),),
        mistake="outputs were counted by columns",
    ),
    Answer(
        "no remainder in the middle",
        "result",
        ((_OUTPUTS, "n, p, q = npq // (P * Q), npq // Q, npq % Q"),),
        mistake="p went on from image to image",
    ),
    Answer(
        "the padding forgotten", "result", ((" - top,", ","), (" - left\n", "\n")), mistake="the padding were left out"
    ),
    Answer(
        "the padding added",
        "result",
        ((" - top,", " + top,"), (" - left\n", " + left\n")),
        mistake="the padding were added",
    ),
    Answer("no stride", "result", (("p * stride", "p"), ("q * stride", "q")), mistake="the stride were 1"),
    Answer(
        "the stride of taps as well",
        "result",
        (("p * stride + tap // S", "(p + tap // S) * stride"),),
        mistake="the rows of a window were a stride apart",
    ),
    Answer(
        "taps by columns",
        "result",
        (("tap // S - top, q * stride + tap % S", "tap % S - top, q * stride + tap // S"),),
        mistake="taps were counted by columns",
    ),
    Answer("pixels of the outputs", "result", (("((n * H + h) * W + w)", "((n * P + h) * Q + w)"),)),
    Answer("zeros by threads", "budget", ((_COPY, _ZEROS),)),
    Answer("two copies", "budget", ((_COPY, _TWO_COPIES),)),
    Answer("by registers", "budget", ((_COPY, _BY_REGISTERS),)),
    Answer("no wait", "in-flight", (("    ptx.cp_async_wait(0)\n", ""),)),
    Answer("nothing outside", "uninitialised", ((_COPY, "if inside:\n        " + _COPY),)),
    Answer(
        "as it is given",
        "bounds",
        ((_COPY, "ptx.cp_async(tile, (row, vector * 4), x, (npq * VECTORS + vector, 0), 16, 16)"),),
    ),
)

RIGHT = (
    right(
        "unsigned rows and columns",
        (_INSIDE, "n < N and np.uint32(h) < np.uint32(H) and np.uint32(w) < np.uint32(W)"),
    ),
    right("by multiplication", ("16 if inside else 0", "16 * inside")),
    right("a place inside for what lies outside", ("(source, 0), 16,", "(source if inside else 0, 0), 16,")),
    right(
        "what is left is subtracted",
        (_OUTPUTS, "n = npq // (P * Q)\n    p = (npq - n * P * Q) // Q\n    q = npq - (n * P + p) * Q"),
    ),
    right("outputs counted", (_INSIDE, "npq < N * P * Q and 0 <= h < H and 0 <= w < W")),
    right("the tap taken apart first", ("    npq = first + row\n", "    npq = row + first\n")),
)

WRONG = (
    wrong("at most three images", ("n < N and", "n < min(N, 3) and")),
    wrong("square images", ("0 <= w < W", "0 <= w < H")),
    wrong("images of up to 10 columns", ("0 <= w < W", "0 <= w < min(W, 10)")),
    wrong("images of up to 9 rows", ("0 <= h < H", "0 <= h < min(H, 9)")),
    wrong("strides of one and two", ("p * stride", "p * min(stride, 2)"), ("q * stride", "q * min(stride, 2)")),
    wrong("at most two zeros above", (" - top,", " - min(top, 1),")),
    wrong("one zero on the left", (" - left\n", " - min(left, 1)\n")),
    wrong("square windows", ("tap // S", "tap // 3")),
    wrong("half of a vector", ("16 if inside else 0", "8 if inside else 0")),
    wrong(
        "a wait of the first warp",
        ("    ptx.cp_async_wait(0)\n", "    if thread < 32:\n        ptx.cp_async_wait(0)\n"),
    ),
    wrong("no barrier", ("    cuda.syncthreads()\n", "")),
)

SHORTCUTS = (
    shortcut("copied, and stored over", ("    cuda.syncthreads()\n    row, vector = thread % ROWS", _STORED_OVER)),
    shortcut(
        "straight to memory",
        (
            "    ptx.store4(rows, (tap, first + row, 4 * vector), a, b, c, d)",
            "    npq = first + row\n"
            "    h = npq // Q % P * stride + tap // S - top\n"
            "    w = npq % Q * stride + tap % S - left\n"
            "    n = npq // (P * Q)\n"
            "    for i in range(4):\n"
            "        value = np.float32(0)\n"
            "        if n < N and 0 <= h < H and 0 <= w < W:\n"
            "            value = x[((n * H + h) * W + w) * VECTORS + vector, i]\n"
            "        rows[tap, npq, 4 * vector + i] = value",
        ),
    ),
    shortcut(
        "one warp copies",
        (
            """    row, vector = thread // VECTORS, thread % VECTORS
    npq = first + row
    n, p, q = npq // (P * Q), npq // Q % P, npq % Q
    h, w = p * stride + tap // S - top, q * stride + tap % S - left
    inside = n < N and 0 <= h < H and 0 <= w < W
    source = ((n * H + h) * W + w) * VECTORS + vector
    ptx.cp_async(""",
            """    for i in range(thread, 256 * (thread < 32), 32):
        row, vector = i // VECTORS, i % VECTORS
        npq = first + row
        n, p, q = npq // (P * Q), npq // Q % P, npq % Q
        h, w = p * stride + tap // S - top, q * stride + tap % S - left
        inside = n < N and 0 <= h < H and 0 <= w < W
        source = ((n * H + h) * W + w) * VECTORS + vector
        ptx.cp_async(""",
        ),
    ),
)

"""Other answers to swizzle-short-rows."""

from . import Answer, right, shortcut, wrong

_STORE, _LOAD = "tile[line, lane ^ 4 * line]", "tile[c, pixel ^ 4 * c]"

_DIRECT = """
CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    i = cuda.threadIdx.y * PIXELS + cuda.threadIdx.x
    pixel, c = cuda.blockIdx.x * PIXELS + i // CHANNELS, i % CHANNELS
    if pixel < y.shape[0]:
        y[pixel, c] = x[c, pixel]
"""

VARIANTS = (
    Answer("the kernel as it stands there", "budget", ((_STORE, "tile[line, lane]"), (_LOAD, "tile[c, pixel]"))),
    Answer("the recipe for squares", "budget", ((_STORE, "tile[line, lane ^ line]"), (_LOAD, "tile[c, pixel ^ c]"))),
    Answer("twice the channel", "budget", ((_STORE, "tile[line, lane ^ 2 * line]"), (_LOAD, "tile[c, pixel ^ 2 * c]"))),
    Answer(
        "the store alone",
        "result",
        ((_LOAD, "tile[c, pixel]"),),
        mistake="elements were stored at one place of the tile and loaded from another",
    ),
    Answer(
        "the load alone",
        "result",
        ((_STORE, "tile[line, lane]"),),
        mistake="elements were stored at one place of the tile and loaded from another",
    ),
    Answer(
        "a padded tile",
        "budget",
        (("CHANNELS, PIXELS), np", "CHANNELS, 36), np"), (_STORE, "tile[line, lane]"), (_LOAD, "tile[c, pixel]")),
    ),
    Answer("no tile", "budget", cell=_DIRECT),
    Answer("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Answer("no guard of x", "bounds", (("    if first + lane < x.shape[1]:\n", "    if True:\n"),)),
    Answer(
        "a place beyond the row", "bounds", ((_STORE, "tile[line, lane + 4 * line]"), (_LOAD, "tile[c, pixel + 4 * c]"))
    ),
    Answer(
        "by a sum",
        "solved",
        ((_STORE, "tile[line, (lane + 4 * line) % PIXELS]"), (_LOAD, "tile[c, (pixel + 4 * c) % PIXELS]")),
    ),
    Answer(
        "the groups backwards",
        "solved",
        ((_STORE, "tile[line, lane ^ 28 - 4 * line]"), (_LOAD, "tile[c, pixel ^ 28 - 4 * c]")),
    ),
)

RIGHT = (
    right("by a sum", ("lane ^ 4 * line", "(lane + 4 * line) % 32"), ("pixel ^ 4 * c", "(pixel + 4 * c) & 31")),
    right("by a shift", ("lane ^ 4 * line", "lane ^ (line << 2)"), ("pixel ^ 4 * c", "pixel ^ (c << 2)")),
    right(
        "a flat tile",
        ("cuda.shared.array((CHANNELS, PIXELS), np.float32)", "cuda.shared.array(256, np.float32)"),
        ("tile[line, lane ^ 4 * line]", "tile[PIXELS * line + (lane ^ 4 * line)]"),
        ("tile[c, pixel ^ 4 * c]", "tile[PIXELS * c + (pixel ^ 4 * c)]"),
    ),
    right(
        "channels the other way",
        ("lane ^ 4 * line", "lane ^ 4 * (7 - line)"),
        ("pixel ^ 4 * c", "pixel ^ 4 * (7 - c)"),
    ),
    right(
        "rotated backwards",
        ("tile[line, lane ^ 4 * line]", "tile[line, (lane - 4 * line) % PIXELS]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, (pixel - 4 * c) % PIXELS]"),
    ),
    right(
        "channels by another permutation",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * (line ^ 5)]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * (c ^ 5)]"),
    ),
    right(
        "the tile turned before it is stored",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((PIXELS, CHANNELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[lane, line ^ (lane // 4)] = x[line, first + lane]
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = tile[pixel, c ^ (pixel // 4)]
""",
    ),
    right(
        "another order of the lanes that load from the tile",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array(256, np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[32 * line + (lane + 4 * line) % 32] = x[line, first + lane]
    cuda.syncthreads()
    c, pixel = lane % 8, 4 * line + lane // 8
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = tile[32 * c + (pixel + 4 * c) % 32]
""",
    ),
    right(
        "a zero in the places that are not there",
        (
            "    if first + lane < x.shape[1]:\n",
            """    tile[line, lane ^ 4 * line] = np.float32(0)
    if first + lane < x.shape[1]:
""",
        ),
    ),
    right(
        "copied past the registers",
        cell="""
CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        ptx.cp_async(tile, (line, lane ^ 4 * line), x, (line, first + lane), 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = tile[c, pixel ^ 4 * c]
""",
    ),
)

WRONG = (
    wrong(
        "zeros left out",
        (
            "        y[first + pixel, c] = tile[c, pixel ^ 4 * c]",
            """        number = tile[c, pixel ^ 4 * c]
        if number != 0:
            y[first + pixel, c] = number""",
        ),
    ),
    wrong("the pixels that are published", ("first + pixel < y.shape[0]", "first + pixel < min(y.shape[0], 160)")),
    wrong("an even number of pixels", ("first + pixel < y.shape[0]", "first + pixel < y.shape[0] // 2 * 2")),
    wrong("a barrier for warps alone", ("    cuda.syncthreads()\n", "    cuda.syncwarp()\n")),
    wrong(
        "four channels moved",
        ("lane ^ 4 * line", "lane ^ 4 * (line % 4)"),
        ("pixel ^ 4 * c", "pixel ^ 4 * (c % 4)"),
    ),
    wrong(
        "the first block not moved",
        ("lane ^ 4 * line", "lane ^ 4 * line * (first > 0)"),
        ("pixel ^ 4 * c", "pixel ^ 4 * c * (first > 0)"),
    ),
    wrong("moved by eight", ("lane ^ 4 * line", "lane ^ 8 * line % 32"), ("pixel ^ 4 * c", "pixel ^ 8 * c % 32")),
    wrong(
        "zeros in the last tile",
        (
            "        y[first + pixel, c] = tile",
            "        y[first + pixel, c] = np.float32(first + 32 < 5 * 32 or pixel < 31) * tile",
        ),
    ),
    wrong(
        "only whole tiles moved",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * line * (first + 32 <= x.shape[1])]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * c * (first + 32 <= y.shape[0])]"),
    ),
    wrong(
        "swizzle of the pixel, not the channel",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ (lane // 4) % 4]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ (pixel // 4) % 4]"),
    ),
    wrong(
        "the identity in other words",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 32 * line % 32]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 32 * c % 32]"),
    ),
    wrong(
        "channels moved in pairs",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * (line // 2 * 2)]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * (c // 2 * 2)]"),
    ),
    wrong(
        "not in tiles past the fourth",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * line * (first < 128)]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * c * (first < 128)]"),
    ),
    wrong(
        "store and load by different ways in channel 7",
        ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * line ^ (line == 7)]"),
    ),
    wrong("three hundred pixels", ("if first + pixel < y.shape[0]", "if first + pixel < min(y.shape[0], 300)")),
    wrong(
        "the last pixel of a ragged tile",
        ("if first + lane < x.shape[1]:", "if first + lane < x.shape[1] - (x.shape[1] % 32 == 1):"),
    ),
    wrong(
        "a barrier inside the guard",
        ("    cuda.syncthreads()\n", ""),
        (
            "        tile[line, lane ^ 4 * line] = x[line, first + lane]\n",
            """        tile[line, lane ^ 4 * line] = x[line, first + lane]
        cuda.syncthreads()
""",
        ),
    ),
    wrong(
        "a barrier not in whole tiles",
        ("    cuda.syncthreads()\n", "    if first + 32 > x.shape[1]:\n        cuda.syncthreads()\n"),
    ),
    wrong("the strides swapped", ("tile[c, pixel ^ 4 * c]", "tile[pixel % 8, c * 4 + pixel // 8]")),
)

SHORTCUTS = (
    shortcut(
        "straight from x, the tile times zero",
        ("= tile[c, pixel ^ 4 * c]", "= x[c, first + pixel] + np.float32(0) * tile[c, pixel ^ 4 * c]"),
    ),
    shortcut(
        "straight from x, by atomics",
        ("= tile[c, pixel ^ 4 * c]", "= cuda.atomic.add(x, (c, first + pixel), np.float32(0))"),
    ),
    shortcut(
        "one lane after the other",
        (
            "        y[first + pixel, c] = tile[c, pixel ^ 4 * c]",
            "        y[first + pixel, c] = cuda.shfl_sync(0xFFFFFFFF, tile[line, lane ^ 4 * line], pixel)",
        ),
    ),
    shortcut(
        "columns stored by rows of the result",
        cell="""
@cuda.jit
def short_rows(x, y):
    pixel, c = cuda.blockIdx.x * 32 + cuda.threadIdx.x, cuda.threadIdx.y
    if pixel < y.shape[0]:
        y[pixel, c] = x[c, pixel]
""",
    ),
    shortcut(
        "padded within the bytes",
        ("cuda.shared.array((CHANNELS, PIXELS), np.float32)", "cuda.shared.array((CHANNELS, 33), np.float32)"),
        ("tile[line, lane ^ 4 * line]", "tile[line, lane]"),
        ("tile[c, pixel ^ 4 * c]", "tile[c, pixel]"),
    ),
    shortcut(
        "in half precision, with padding",
        ("cuda.shared.array((CHANNELS, PIXELS), np.float32)", "cuda.shared.array((CHANNELS, 40), np.float16)"),
        ("tile[line, lane ^ 4 * line]", "tile[line, lane]"),
        ("tile[c, pixel ^ 4 * c]", "np.float32(tile[c, pixel])"),
    ),
    shortcut(
        "stored by pixels of all lanes",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    if first + lane < y.shape[0]:
        y[first + lane, line] = tile[line, lane]
""",
    ),
    shortcut(
        "broadcasts in turn",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    value = np.float32(0)
    for turn in range(CHANNELS):
        if turn == c and first + pixel < y.shape[0]:
            value = tile[c, pixel]
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = value
""",
    ),
    shortcut(
        "by atomics of shared memory",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = cuda.atomic.add(tile, (c, pixel), np.float32(0))
""",
    ),
    shortcut(
        "by shuffles, one warp",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    if line == 0:
        for k in range(CHANNELS):
            own = tile[k, lane] if first + lane < x.shape[1] else np.float32(0)
            for turn in range(8):
                i = turn * 32 + lane
                value = cuda.shfl_sync(0xFFFFFFFF, own, i // 8)
                if i % 8 == k and first + i // 8 < y.shape[0]:
                    y[first + i // 8, k] = value
""",
    ),
    shortcut(
        "by shuffles after conflict-free loads",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    tile[line, lane] = x[line, first + lane] if first + lane < x.shape[1] else np.float32(0)
    cuda.syncthreads()
    value = np.float32(0)
    for k in range(CHANNELS):
        own = tile[k, lane]
        got = cuda.shfl_sync(0xFFFFFFFF, own, line * 4 + lane // 8)
        if lane % 8 == k:
            value = got
    i = line * PIXELS + lane
    if first + i // 8 < y.shape[0]:
        y[first + i // 8, i % 8] = value
""",
    ),
    shortcut(
        "by shuffles, then through a place of the thread's own",
        cell="""CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS + warp * 8
    if warp < 4:
        r, c = lane // 8, lane % 8
        upper = x[r, first + c] if first + c < x.shape[1] else np.float32(0)
        lower = x[r + 4, first + c] if first + c < x.shape[1] else np.float32(0)
        for half in range(2):
            row = r + 4 * half
            a = cuda.shfl_sync(0xFFFFFFFF, upper, c % 4 * 8 + row)
            b = cuda.shfl_sync(0xFFFFFFFF, lower, c % 4 * 8 + row)
            tile[warp, lane] = a if c < 4 else b
            if first + row < y.shape[0]:
                y[first + row, c] = tile[warp, lane]
""",
    ),
)

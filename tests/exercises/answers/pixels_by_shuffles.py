"""Other answers to pixels-by-shuffles."""

from . import Answer, right, shortcut, wrong

_PICK = "        value = red_of_it if c == 0 else green_of_it if c == 1 else blue_of_it\n"
_GUARD = "        if first + source < pixels:\n            y[first + source, c] = value"
_SOURCE = "source, c = (k * 32 + lane) // 3, (k * 32 + lane) % 3"
_SHUFFLES = """        red_of_it = cuda.shfl_sync(ALL, red, source)
        green_of_it = cuda.shfl_sync(ALL, green, source)
        blue_of_it = cuda.shfl_sync(ALL, blue, source)
"""
_FROM_LANE = "element i of a warp came from lane i % 32"
_REVERSED = "channels were stored in the order blue, green, red"
_WHOLE_WARPS = "the last pixels, which fill no warp, were left out"

_BY_SHARED_MEMORY = """
@cuda.jit
def to_pixels(x, y):
    run = cuda.shared.array(384, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 128
    pixels = x.shape[1]
    if first + t < pixels:
        for c in range(3):
            run[3 * t + c] = x[c, first + t]
    cuda.syncthreads()
    for i in range(t, 384, 128):
        if first + i // 3 < pixels:
            y[first + i // 3, i % 3] = run[i]
"""

_IN_ORDER_OF_Y = """
@cuda.jit
def to_pixels(x, y):
    first = cuda.blockIdx.x * 128
    for i in range(cuda.threadIdx.x, 384, 128):
        if first + i // 3 < y.shape[0]:
            y[first + i // 3, i % 3] = x[i % 3, first + i // 3]
"""

_IN_ORDER_OF_X = """
@cuda.jit
def to_pixels(x, y):
    pixel = cuda.grid(1)
    if pixel < y.shape[0]:
        for c in range(3):
            y[pixel, c] = x[c, pixel]
"""

_THREE_SHUFFLES = """
ALL = 0xFFFFFFFF


@cuda.jit
def to_pixels(x, y):
    lane, pixel = cuda.threadIdx.x % 32, cuda.grid(1)
    first, pixels = pixel - lane, y.shape[0]
    got = cuda.local.array(3, np.float32)
    for c in range(3):
        own = x[c, pixel] if pixel < pixels else np.float32(0)
        got[c] = cuda.shfl_sync(ALL, own, (lane - c) * 11 % 32)  # 3 x 11 is 1 modulo 32
    for k in range(3):
        i = k * 32 + lane
        if first + i // 3 < pixels:
            y[first + i // 3, i % 3] = got[i % 3]
"""

VARIANTS = (
    Answer("a pixel per lane is stored", "budget", cell=_IN_ORDER_OF_X),
    Answer("an element per lane is loaded", "budget", cell=_IN_ORDER_OF_Y),
    Answer("through shared memory", "budget", cell=_BY_SHARED_MEMORY),
    Answer("lanes in place of pixels", "budget", ((_SOURCE, "source, c = lane, k"),)),
    Answer(
        "the lane of the element",
        "result",
        ((_SHUFFLES, _SHUFFLES.replace("source", "k * 32 + lane")),),
        mistake=_FROM_LANE,
    ),
    Answer(
        "blue first",
        "result",
        (("if c == 0 else green_of_it if c == 1", "if c == 2 else green_of_it if c == 1"),),
        mistake=_REVERSED,
    ),
    Answer(
        "whole warps alone",
        "unwritten",
        ((_GUARD, _GUARD.replace("first + source <", "first + 31 <")),),
        mistake=_WHOLE_WARPS,
    ),
    Answer(
        "the first warp's pixels", "race", (("first, pixels = pixel - lane", "first, pixels = cuda.blockIdx.x * 128"),)
    ),
    Answer("no guard of the stores", "bounds", ((_GUARD, "        y[first + source, c] = value"),)),
    Answer(
        "no guard of the loads", "bounds", (("    if pixel < pixels:\n        red", "    if pixel >= 0:\n        red"),)
    ),
)

RIGHT = (
    right("three shuffles", cell=_THREE_SHUFFLES),
    right(
        "an array of the lane's own",
        (
            "    red = green = blue = np.float32(0)\n",
            "    own = cuda.local.array(3, np.float32)\n    red = green = blue = np.float32(0)\n",
        ),
        (_PICK, "        own[0], own[1], own[2] = red_of_it, green_of_it, blue_of_it\n        value = own[c]\n"),
    ),
    right(
        "ifs in place of a choice",
        (
            _PICK,
            "        value = red_of_it\n        if c == 1:\n            value = green_of_it\n"
            "        if c == 2:\n            value = blue_of_it\n",
        ),
    ),
    right(
        "y as one row", ("y[first + source, c] = value", "y[first + (k * 32 + lane) // 3, (k * 32 + lane) % 3] = value")
    ),
    right(
        "a choice of loads",
        (
            "    red = green = blue = np.float32(0)\n    if pixel < pixels:\n"
            "        red, green, blue = x[0, pixel], x[1, pixel], x[2, pixel]\n",
            "    zero = np.float32(0)\n    red = x[0, pixel] if pixel < pixels else zero\n"
            "    green = x[1, pixel] if pixel < pixels else zero\n"
            "    blue = x[2, pixel] if pixel < pixels else zero\n",
        ),
    ),
)

WRONG = (
    wrong(
        "zeros left out", ("        if first + source < pixels:", "        if first + source < pixels and value != 0:")
    ),
    wrong("the pixels that are published", ("y.shape[0]", "min(y.shape[0], 399)")),
    wrong("an even number of pixels", ("first + source < pixels", "first + source < max(pixels // 2 * 2, 1)")),
    wrong(
        "lanes without a pixel leave",
        (
            "    red = green = blue = np.float32(0)\n",
            "    if pixel >= pixels:\n        return\n    red = green = blue = np.float32(0)\n",
        ),
    ),
)

SHORTCUTS = (
    shortcut("through shared memory", cell=_BY_SHARED_MEMORY),
    shortcut("loads in the order of y", cell=_IN_ORDER_OF_Y),
    shortcut("stores in the order of x", cell=_IN_ORDER_OF_X),
    shortcut(
        "half of the lanes",
        cell="""
@cuda.jit
def to_pixels(x, y):
    lane, first = cuda.threadIdx.x % 32, cuda.blockIdx.x * 128 + cuda.threadIdx.x // 32 * 32
    if lane < 3:
        for i in range(32):
            if first + i < y.shape[0]:
                y[first + i, lane] = x[lane, first + i]
""",
    ),
)

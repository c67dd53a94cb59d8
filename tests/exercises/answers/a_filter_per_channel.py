"""Other answers to a-filter-per-channel."""

from . import Answer, right, shortcut, wrong

_PIXEL = "x[row, col, c] if 0 <= row < H and 0 <= col < W else np.float32(0)"

_TAPS = "left, middle, right = w[r, 0, c], w[r, 1, c], w[r, 2, c]"

_ONE_BY_ONE = """RUN = 4

@cuda.jit
def depthwise(x, w, y):
    H, W, C = x.shape
    c = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    first = (cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y) * RUN
    p = cuda.blockIdx.z
    if c < C:
        for i in range(RUN):
            total = np.float32(0)
            for r in range(3):
                for s in range(3):
                    row, col = p + r - 1, first + i + s - 1
                    if 0 <= row < H and 0 <= col < W:
                        total += x[row, col, c] * w[r, s, c]
            if first + i < W:
                y[p, first + i, c] = total
"""

_WINDOW = """RUN = 4

@cuda.jit
def depthwise(x, w, y):
    H, W, C = x.shape
    c = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    first = (cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y) * RUN
    p = cuda.blockIdx.z
    if c >= C or first >= W:
        return
    pixels = cuda.local.array((3, RUN + 2), np.float32)
    taps = cuda.local.array((3, 3), np.float32)
    for r in range(3):
        for s in range(3):
            taps[r, s] = w[r, s, c]
        for i in range(6):
            row, col = p + r - 1, first + i - 1
            pixels[r, i] = 0
            if 0 <= row < H and 0 <= col < W:
                pixels[r, i] = x[row, col, c]
    for i in range(min(RUN, W - first)):
        total = np.float32(0)
        for r in range(3):
            for s in range(3):
                total += pixels[r, i + s] * taps[r, s]
        y[p, first + i, c] = total
""".replace("(3, RUN + 2)", "(3, 6)")

VARIANTS = (
    Answer("each output for itself", "budget", cell=_ONE_BY_ONE),
    Answer(
        "taps loaded for each pixel",
        "budget",
        (("pixel * left", "pixel * w[r, 0, c]"), ("pixel * middle", "pixel * w[r, 1, c]")),
    ),
    Answer("no border", "bounds", ((_PIXEL, "x[row, col, c]"),)),
    Answer("no border on the left", "result", ((_PIXEL, _PIXEL.replace("0 <= col < W", "col < W")),)),
    Answer(
        "no padding",
        "result",
        (("row = p + r - 1", "row = p + r"), ("col = first + i - 1", "col = first + i")),
        mistake="there were no padding above and on the left",
    ),
    Answer(
        "a rotated filter",
        "result",
        ((_TAPS, "left, middle, right = w[2 - r, 2, c], w[2 - r, 1, c], w[2 - r, 0, c]"),),
        mistake="the filter were turned",
    ),
    Answer(
        "left and right swapped",
        "result",
        ((_TAPS, "right, middle, left = w[r, 0, c], w[r, 1, c], w[r, 2, c]"),),
        mistake="the left and the right tap were exchanged",
    ),
    Answer(
        "sums that begin with anything", "uninitialised", (("    for i in range(RUN):\n        sums[i] = 0\n", ""),)
    ),
    Answer("no channel test", "bounds", (("if c < C:", "if c >= 0:"),)),
    Answer("no end of a row", "bounds", (("if first + i < W:", "if first >= 0:"),)),
    Answer(
        "the last pixel of a run forgotten",
        "result",
        (("range(RUN + 2)", "range(RUN + 1)"),),
        mistake="the pixel after a run were left out",
    ),
    Answer(
        "the middle tap of the first output forgotten",
        "result",
        (("if 0 < i <= RUN:", "if 1 < i <= RUN:"),),
        mistake="the first output of a run had no middle tap",
    ),
    Answer("outputs of the next row", "result", (("y[p, first + i, c] =", "y[p, W - 1 - first - i, c] ="),)),
    Answer("a float64 sum", "budget", (("sums[i] += pixel * left", "sums[i] += np.float64(pixel) * left"),)),
    Answer("pixels into a local window", "solved", cell=_WINDOW),
)

RIGHT = (
    right("the tests in another order", (_PIXEL, "x[row, col, c] if 0 <= col < W and 0 <= row < H else np.float32(0)")),
    right(
        "unsigned",
        (
            _PIXEL,
            "x[row, col, c] if np.uint32(row) < np.uint32(H) and np.uint32(col) < np.uint32(W) else np.float32(0)",
        ),
    ),
    right("runs that are outside leave early", ("if c < C:", "if c < C and first < W:")),
)

WRONG = (
    wrong("at most 61 channels", ("if c < C:", "if c < min(C, 61):")),
    wrong("one block of channels", ("if c < C:", "if c < min(C, 32):")),
    wrong("at most 7 rows", ("0 <= row < H", "0 <= row < min(H, 7)")),
    wrong("at most 26 columns", ("0 <= col < W", "0 <= col < min(W, 26)")),
    wrong("square images", ("0 <= col < W", "0 <= col < H")),
    wrong("the first channel's taps", (_TAPS, "left, middle, right = w[r, 0, 0], w[r, 1, 0], w[r, 2, 0]")),
    wrong("the last row is zeros", ("0 <= row < H", "0 <= row < max(H - 1, 1)")),
    wrong("the middle row's taps", (_TAPS, "left, middle, right = w[1, 0, c], w[1, 1, c], w[1, 2, c]")),
)

SHORTCUTS = (
    shortcut(
        "one thread for 32 channels",
        cell="""RUN = 4  # outputs of a thread, along a row


@cuda.jit
def depthwise(x, w, y):
    H, W, C = x.shape
    first = (cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y) * RUN  # column of the first output
    p = cuda.blockIdx.z
    sums = cuda.local.array(RUN, np.float32)
    for c in range(cuda.blockIdx.x * 32, min(C, cuda.blockIdx.x * 32 + 32) * (cuda.threadIdx.x == 0)):
        for i in range(RUN):
            sums[i] = 0
        if c < C:
            for r in range(3):
                row = p + r - 1
                left, middle, right = w[r, 0, c], w[r, 1, c], w[r, 2, c]
                for i in range(RUN + 2):
                    col = first + i - 1
                    pixel = x[row, col, c] if 0 <= row < H and 0 <= col < W else np.float32(0)
                    if i < RUN:
                        sums[i] += pixel * left
                    if 0 < i <= RUN:
                        sums[i - 1] += pixel * middle
                    if i > 1:
                        sums[i - 2] += pixel * right
            for i in range(RUN):
                if first + i < W:
                    y[p, first + i, c] = sums[i]
""",
    ),
)

"""Other answers to pad-the-pixels."""

from . import Answer, right, shortcut, wrong

_OWN = "y[pixel, c] = x[c, pixel] if c < C else np.float32(0)"

_SLOW = """
@cuda.jit
def padded_pixels(x, y):
    pixel = cuda.grid(1)
    C, V = x.shape[0], y.shape[1]
    if pixel < y.shape[0]:
        for c in range(V):
            y[pixel, c] = x[c, pixel] if c < C else np.float32(0)
"""

_ONE_BLOCK = """
@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    if cuda.blockIdx.x == 0:
        for i in range(cuda.threadIdx.x, y.size, 128):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
"""

VARIANTS = (
    Answer("the kernel as it stands there", "budget", cell=_SLOW),
    Answer("the first block alone", "duty", cell=_ONE_BLOCK),
    Answer("no guard", "bounds", (("if pixel < y.shape[0]:", "if True:"),)),
    Answer(
        "zeros left out",
        "unwritten",
        ((_OWN, "if c < C:\n            y[pixel, c] = x[c, pixel]"),),
        mistake="the zeros were not stored",
    ),
    Answer("channels that are not there", "bounds", ((_OWN, "y[pixel, c] = x[c, pixel]"),)),
    Answer(
        "the last channel again",
        "result",
        ((_OWN, "y[pixel, c] = x[min(c, C - 1), pixel]"),),
        mistake="the last channel came in place of the zeros",
    ),
    Answer("an element loaded and dropped", "budget", ((_OWN, "y[pixel, c] = x[c % C, pixel] * (c < C)"),)),
    Answer(
        "in the order of x",
        "budget",
        (("i // V, i % V", "i % y.shape[0], i // y.shape[0]"), ("if pixel < y.shape[0]:", "if c < V:")),
    ),
    Answer("by C in place of V", "unwritten", (("i // V, i % V", "i // C, i % C"),)),
    Answer(
        "a zero by the branch",
        "solved",
        (
            (
                _OWN,
                "value = np.float32(0)\n        if c < C:\n            value = x[c, pixel]\n"
                "        y[pixel, c] = value",
            ),
        ),
    ),
    Answer(
        "a store for the zeros, and one for the rest",
        "budget",
        (
            (
                "        " + _OWN,
                "        if c < C:\n            y[pixel, c] = x[c, pixel]\n        else:\n            y[pixel, c] = 0",
            ),
        ),
    ),
)

RIGHT = (
    right("a remainder by the product", ("i // V, i % V", "i // V, i - i // V * V")),
    right(
        "the guard by elements",
        ("if pixel < y.shape[0]:", "if i < y.size:"),
    ),
    right(
        "by a loop over the grid",
        cell="""
@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
    ),
    right("divmod", ("pixel, c = i // V, i % V", "pixel, c = divmod(i, V)")),
    right(
        "a product with a comparison inside",
        (
            "        y[pixel, c] = x[c, pixel] if c < C else np.float32(0)",
            """        if c >= C:
            value = np.float32(0)
        else:
            value = x[c, pixel]
        y[pixel, c] = value""",
        ),
    ),
    right(
        "by a flat view of indices",
        cell="""@cuda.jit
def padded_pixels(x, y):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    pixels, V = y.shape
    if i >= pixels * V:
        return
    c = i % V
    pixel = (i - c) // V
    value = np.float32(0)
    if c < x.shape[0]:
        value = x[c, pixel]
    y[pixel, c] = value
""",
    ),
    right(
        "through a tile in shared memory",
        cell="""@cuda.jit
def padded_pixels(x, y):
    kept = cuda.shared.array(128, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 128
    C, V = x.shape[0], y.shape[1]
    i = first + t
    kept[t] = np.float32(0)
    if i // V < y.shape[0] and i % V < C:
        kept[t] = x[i % V, i // V]
    cuda.syncthreads()
    if i < y.size:
        y[i // V, i % V] = kept[t]
""",
    ),
)

WRONG = (
    wrong("three channels", ("if c < C else", "if c < min(C, 3) else")),
    wrong("at most 64 channels", ("if c < C else", "if c < min(C, 64) else")),
    wrong("the last channel left out of many", ("if c < C else", "if c < C - (C > 5) else")),
    wrong("the pixels that are published", ("if pixel < y.shape[0]", "if pixel < min(y.shape[0], 400)")),
    wrong("vectors of at most 8", ("i // V, i % V", "i // min(V, 8), i % min(V, 8)")),
    wrong("the lane taken by a mask", ("i % V", "i & 7")),
    wrong("a shift for the division", ("i // V,", "i >> 3,")),
    wrong("no padding where there are few pixels", ("if c < C else", "if c < C or x.shape[1] < 20 else")),
    wrong("the lane by V less one", ("i // V, i % V", "i // V, i & (V - 1)")),
    wrong(
        "V of a power of two by shifts",
        ("i // V, i % V", "i >> (2 + (V > 4) + (V > 8) + (V > 16) + (V > 32)), i & (V - 1)"),
    ),
    wrong("V up to 64", ("i // V, i % V", "i // min(V, 64), i % min(V, 64)")),
    wrong("the pixel before in the last one", ("x[c, pixel]", "x[c, pixel if pixel < 700 else pixel - 1]")),
    wrong("no padding above 16", ("if c < C else np.float32(0)", "if c < C else np.float32(c > 40)")),
    wrong("padding of the least number", ("else np.float32(0)", "else np.float32(1e-45)")),
    wrong("no more than four", ("x[c, pixel] if", "min(x[c, pixel], np.float32(4)) if")),
    wrong("in half precision", ("x[c, pixel] if", "np.float32(np.float16(x[c, pixel])) if")),
    wrong("the channels modulo 16", ("x[c, pixel] if", "x[c % 16, pixel] if")),
    wrong("the channels up to 31", ("if c < C else", "if c < C and c < 31 else")),
    wrong("the first twenty blocks", ("if pixel < y.shape[0]", "if pixel < y.shape[0] and i < 128 * 20")),
    wrong(
        "one channel too many if it exists",
        ("if c < C else np.float32(0)", "if c < C else x[C - 1, pixel] * np.float32(C > 12)"),
    ),
    wrong("an odd V", ("i // V, i % V", "i // V, i % (V - V % 2)")),
)

SHORTCUTS = (
    shortcut(
        "atomics for stores",
        (
            "        y[pixel, c] = x[c, pixel] if c < C else np.float32(0)",
            "        cuda.atomic.exch(y, (pixel, c), x[c, pixel] if c < C else np.float32(0))",
        ),
    ),
    shortcut("the book's kernel", cell="from labkit.layouts.transpose.s01_naive import naive as padded_pixels\n"),
    shortcut(
        "one thread a pixel, whose stores are counted as one",
        cell="""
@cuda.jit
def padded_pixels(x, y):
    pixel = cuda.grid(1)
    if pixel < y.shape[0]:
        for c in range(y.shape[1]):
            cuda.atomic.add(y, (pixel, c), x[c, pixel] if c < x.shape[0] else np.float32(0))
""",
    ),
    shortcut(
        "thread 0 for all",
        cell="""@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    if cuda.grid(1) == 0:
        for i in range(y.size):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
    ),
    shortcut(
        "the first warp for all",
        cell="""@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    t = cuda.grid(1)
    if t < 32:
        for i in range(t, y.size, 32):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
    ),
    shortcut(
        "the first block for all",
        cell="""@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    if cuda.blockIdx.x == 0:
        for i in range(cuda.threadIdx.x, y.size, 128):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
    ),
    shortcut(
        "atomics add to what was zeroed",
        (
            "        y[pixel, c] = x[c, pixel] if c < C else np.float32(0)",
            """        y[pixel, c] = np.float32(0)
        if c < C:
            y[pixel, c] += x[c, pixel]""",
        ),
    ),
    shortcut(
        "stored twice by another",
        ("        y[pixel, c] =", "        y[pixel, c] = np.float32(0)\n        y[pixel, c] ="),
    ),
    shortcut(
        "x padded by loads of zero",
        ("x[c, pixel] if c < C else np.float32(0)", "x[min(c, C - 1), pixel] * np.float32(c < C)"),
    ),
    shortcut(
        "a thread a pixel, by vectors",
        cell="""@cuda.jit
def padded_pixels(x, y):
    pixel = cuda.grid(1)
    C, V = x.shape[0], y.shape[1]
    if pixel < y.shape[0]:
        for c in range(0, V, 4):
            a = x[c, pixel] if c < C else np.float32(0)
            b = x[c + 1, pixel] if c + 1 < C else np.float32(0)
            d = x[c + 2, pixel] if c + 2 < C else np.float32(0)
            e = x[c + 3, pixel] if c + 3 < C else np.float32(0)
            ptx.store4(y, (pixel, c), a, b, d, e)
""",
    ),
    shortcut(
        "one warp of each block",
        cell="""
@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    for j in range(4 * (cuda.threadIdx.x < 32)):
        i = cuda.blockIdx.x * 128 + 32 * j + cuda.threadIdx.x
        if i < y.size:
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
    ),
)

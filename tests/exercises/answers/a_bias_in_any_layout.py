"""Other answers to a-bias-in-any-layout."""

from . import Answer, right, shortcut, wrong

_C = "i // (pixels * V) % groups * V + i % V"

_PADDED = "x[i] + bias[c] if c < C else np.float32(0)"

_BY_PIXEL = """
@cuda.jit
def add_bias(x, bias, y, V, pixels):
    first = cuda.grid(1)
    C = bias.size
    groups = (C + V - 1) // V
    size = groups * pixels * V
    pixel, n = first % pixels, first // pixels
    if n < x.size // size:
        for group in range(groups):
            for lane in range(V):
                i = n * size + (group * pixels + pixel) * V + lane
                c = group * V + lane
                y[i] = x[i] + bias[c] if c < C else np.float32(0)
"""

VARIANTS = (
    Answer(
        "the kernel as it stands there",
        "result",
        ((_C, "i // pixels % C"), (" if c < C else np.float32(0)", "")),
        mistake="channels came first",
    ),
    Answer("channels last alone", "result", ((_C, "i % C"),), mistake="channels came last, without groups"),
    Answer("one image", "result", (("% groups * V", "* V"),), mistake="there were one image"),
    Answer("images of C groups", "result", (("% groups * V", "% C * V"),), mistake="an image had C groups"),
    Answer("the group alone", "result", ((" + i % V", ""),), mistake="all channels of a group had one bias"),
    Answer("the lane alone", "result", ((_C, "i % V"),), mistake="all groups had the bias of the first"),
    Answer("no padding", "bounds", ((_PADDED, "x[i] + bias[c]"),)),
    Answer(
        "the last bias on padding",
        "result",
        ((_PADDED, "x[i] + bias[min(c, C - 1)]"),),
        mistake="the last bias were added to the padding",
    ),
    Answer("a thread for each pixel", "budget", cell=_BY_PIXEL),
    Answer("no guard", "bounds", (("if i < x.size:", "if True:"),)),
    Answer("in float64", "budget", (("x[i] + bias[c]", "x[i] + bias[c] * 1.0"),)),
    Answer("padding stays what it was", "solved", (("else np.float32(0)", "else x[i]"),)),
    Answer("the group by a remainder", "solved", ((_C, "i % (pixels * V * groups) // (pixels * V) * V + i % V"),)),
)

RIGHT = (
    right(
        "image by image",
        ("i // (pixels * V) % groups * V + i % V", "i % (groups * pixels * V) // (pixels * V) * V + i % V"),
    ),
    right(
        "axis by axis",
        (
            "        c = i // (pixels * V) % groups * V + i % V\n",
            "        lane, rest = i % V, i // V\n        c = rest // pixels % groups * V + lane\n",
        ),
    ),
    right("padding as it is", ("else np.float32(0)", "else x[i]")),
    right(
        "unsigned indices",
        ("i // (pixels * V) % groups", "np.uint32(i) // np.uint32(pixels * V) % np.uint32(groups)"),
    ),
    right(
        "by a loop over the grid",
        cell="""
@cuda.jit
def add_bias(x, bias, y, V, pixels):
    groups = (bias.size + V - 1) // V
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        c = i // V // pixels % groups * V + i % V
        total = x[i]
        if c < bias.size:
            total += bias[c]
        y[i] = total
""",
    ),
    right("C rounded for the images", ("% groups * V", "% (C // V + (C % V > 0)) * V")),
    right(
        "the place by subtraction",
        (
            "i // (pixels * V) % groups * V + i % V",
            "(i // (pixels * V) - i // (pixels * V * groups) * groups) * V + i - i // V * V",
        ),
    ),
    right(
        "NCHW apart",
        (
            """        c = i // (pixels * V) % groups * V + i % V
        y[i] = x[i] + bias[c] if c < C else np.float32(0)""",
            """        c = i // pixels % C if V == 1 else i // (pixels * V) % groups * V + i % V
        y[i] = x[i] + (bias[c] if c < C else np.float32(0))""",
        ),
    ),
    right(
        "three cases",
        (
            "        c = i // (pixels * V) % groups * V + i % V\n",
            """        if V == 1:
            c = i // pixels % C
        elif V == C:
            c = i % C
        else:
            c = i // (pixels * V) % groups * V + i % V
""",
        ),
    ),
)

WRONG = (
    wrong(
        "an index of 16 bits",
        (
            "c = i // (pixels * V) % groups * V + i % V",
            "j = int(np.uint16(i))\n        c = j // (pixels * V) % groups * V + j % V",
        ),
    ),
    wrong(
        "a rounded reciprocal",
        ("i // (pixels * V) %", "int(np.float32(i) * (np.float32(1) / np.float32(pixels * V))) %"),
    ),
    wrong("vectors of at most 4", ("i % V", "i % min(V, 4)")),
    wrong("one image of NCHW", ("% groups * V", "% (groups if V > 1 else C + i) * V")),
    wrong(
        "two images",
        ("i // (pixels * V) % groups * V", "(i // (pixels * V) - groups * (i >= groups * pixels * V)) * V"),
    ),
    wrong("the published number of channels", ("if c < C else", "if c < min(C, 60) else")),
    wrong("whole vectors alone", ("if c < C else", "if c < C // V * V else")),
    wrong("one element in padding", ("if c < C else", "if c < C + 1 - V % 2 and c < C + 1 else")),
    wrong("the pixels that are published", ("i // (pixels * V)", "i // (min(pixels, 49) * V)")),
    wrong("a bias that is positive", ("x[i] + bias[c]", "x[i] + abs(bias[c])")),
    wrong(
        "padding known by its zero",
        (
            "        y[i] = x[i] + bias[c] if c < C else np.float32(0)",
            "        value = x[i]\n"
            "        y[i] = value + bias[min(c, C - 1)] if value != np.float32(0) else np.float32(0)",
        ),
    ),
    wrong("the lane by a mask", ("i % V", "(i & (V - 1))")),
    wrong(
        "images up to four",
        ("i // (pixels * V) % groups * V", "i // (pixels * V) % groups * V * (i // (pixels * V) // groups < 4)"),
    ),
    wrong("pixels of a square", ("i // (pixels * V)", "i // (int(float(pixels) ** 0.5) ** 2 * V)")),
    wrong(
        "padding by the last lane",
        ("if c < C else np.float32(0)", "if c < C else x[i] + bias[C - 1] * np.float32(c > 60)"),
    ),
    wrong("channels up to 100", ("bias[c] if", "bias[c if c < 100 else 99] if")),
    wrong("channel groups up to eight", ("% groups * V", "% groups % 8 * V")),
    wrong("NHWC of up to 64", ("i % V", "i % (V if V <= 64 else 64)")),
    wrong(
        "no bias on the first pixel of the second image",
        ("bias[c] if", "bias[c] * np.float32(i != groups * pixels * V) if"),
    ),
    wrong("bias in half precision", ("bias[c] if", "np.float32(np.float16(bias[c])) if")),
    wrong("the group from V alone", ("i // (pixels * V) % groups", "i // pixels // V % C")),
    wrong("zeros stay zeros", ("x[i] + bias[c] if c < C", "x[i] + bias[c] if c < C and (c < 60 or V < 32)")),
)

SHORTCUTS = (
    shortcut(
        "a thread for each channel's pixel",
        cell="""
@cuda.jit
def add_bias(x, bias, y, V, pixels):
    t = cuda.grid(1)
    groups = (bias.size + V - 1) // V
    size = groups * V * pixels
    n, c, pixel = t // size, t // pixels % (groups * V), t % pixels
    if t < x.size:
        i = n * size + (c // V * pixels + pixel) * V + c % V
        y[i] = x[i] + bias[c] if c < bias.size else np.float32(0)
""",
    ),
    shortcut(
        "the bias by atomics",
        (
            "x[i] + bias[c] if c < C else np.float32(0)",
            "x[i]\n        cuda.atomic.add(y, i, bias[c] if c < C else np.float32(0))",
        ),
    ),
    shortcut(
        "stores twice, the second right",
        (
            "        y[i] = x[i] + bias[c]",
            "        y[(7 * i) % x.size] = np.float32(0)\n        y[i] = x[i] + bias[c]",
        ),
    ),
    shortcut(
        "thread 0 for all",
        cell="""@cuda.jit
def add_bias(x, bias, y, V, pixels):
    C = bias.size
    groups = (C + V - 1) // V
    if cuda.grid(1) == 0:
        for i in range(x.size):
            c = i // (pixels * V) % groups * V + i % V
            y[i] = x[i] + bias[c] if c < C else np.float32(0)
""",
    ),
    shortcut(
        "the first warp for all",
        cell="""@cuda.jit
def add_bias(x, bias, y, V, pixels):
    C = bias.size
    groups = (C + V - 1) // V
    if cuda.grid(1) < 32:
        for i in range(cuda.grid(1), x.size, 32):
            c = i // (pixels * V) % groups * V + i % V
            y[i] = x[i] + bias[c] if c < C else np.float32(0)
""",
    ),
    shortcut(
        "a thread a pixel, by V",
        cell="""@cuda.jit
def add_bias(x, bias, y, V, pixels):
    t = cuda.grid(1)
    groups = (bias.size + V - 1) // V
    if t * V < x.size:
        for lane in range(V):
            i = t * V + lane
            c = t // pixels % groups * V + lane
            y[i] = x[i] + bias[c] if c < bias.size else np.float32(0)
""",
    ),
    shortcut(
        "a search for the channel",
        cell="""@cuda.jit
def add_bias(x, bias, y, V, pixels):
    i = cuda.grid(1)
    C = bias.size
    groups = (C + V - 1) // V
    if i < x.size:
        y[i] = np.float32(0)
        for c in range(C):
            if i // (pixels * V) % groups * V + i % V == c:
                y[i] = x[i] + bias[c]
""",
    ),
    shortcut(
        "padding recognised by its zero",
        ("if c < C else np.float32(0)", "if x[i] != np.float32(0) else np.float32(0)"),
        ("bias[c]", "bias[min(c, C - 1)]"),
    ),
    shortcut(
        "y read back",
        (
            "        y[i] = x[i] + bias[c] if c < C else np.float32(0)",
            "        y[i] = x[i]\n        if c < C:\n            y[i] += bias[c]",
        ),
    ),
    shortcut(
        "the first bias loaded, too",
        ("        y[i] = x[i] + bias[c]", "        bias[0]\n        y[i] = x[i] + bias[c]"),
    ),
    shortcut(
        "one warp of each block",
        cell="""
@cuda.jit
def add_bias(x, bias, y, V, pixels):
    C = bias.size
    groups = (C + V - 1) // V
    for j in range(4 * (cuda.threadIdx.x < 32)):
        i = cuda.blockIdx.x * 128 + 32 * j + cuda.threadIdx.x
        if i < x.size:
            c = i // (pixels * V) % groups * V + i % V
            y[i] = x[i] + bias[c] if c < C else np.float32(0)
""",
    ),
)

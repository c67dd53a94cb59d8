"""Other answers to same-size."""

from . import Answer, right, shortcut, wrong

_SIZES = "P, Q = (H + stride - 1) // stride, (W + stride - 1) // stride"

_TOP = "max(0, (P - 1) * stride + R - H) // 2"

_LEFT = "max(0, (Q - 1) * stride + S - W) // 2"

_FROM_THE_END = """
@cuda.jit
def same_size(x, w, y, stride):
    q, p, k = cuda.grid(3)
    C, H, W = x.shape
    R, S = w.shape[2], w.shape[3]
    P = H // stride + (H % stride != 0)
    Q = W // stride + (W % stride != 0)
    if p >= P or q >= Q:
        return
    rows, columns = P * stride - stride + R - H, Q * stride - stride + S - W
    top = rows // 2 if rows > 0 else 0
    left = columns // 2 if columns > 0 else 0
    total = np.float32(0)
    for r in range(max(0, top - p * stride), min(R, H + top - p * stride)):
        for s in range(max(0, left - q * stride), min(S, W + left - q * stride)):
            for c in range(C):
                total += w[k, c, r, s] * x[c, p * stride - top + r, q * stride - left + s]
    y[k * P * Q + p * Q + q] = total
"""


def _same_by_stride(rows, columns):
    """Edits that take this many zeros in all."""
    return (
        ("max(0, (P - 1) * stride + R - H) // 2", f"max(0, {rows}) // 2"),
        ("max(0, (Q - 1) * stride + S - W) // 2", f"max(0, {columns}) // 2"),
    )


VARIANTS = (
    Answer(
        "the bug itself",
        "unwritten",
        ((_SIZES, "P, Q = H // stride, W // stride"),),
        mistake="P and Q were rounded down",
    ),
    Answer(
        "no zeros in the size of y",
        "unwritten",
        ((_SIZES, "P, Q = (H - R) // stride + 1, (W - S) // stride + 1"),),
        mistake="P and Q were those without padding",
    ),
    Answer(
        "both odd zeros in front",
        "result",
        ((_TOP, f"(1 + {_TOP[:-5]}) // 2"), (_LEFT, f"(1 + {_LEFT[:-5]}) // 2")),
        mistake="the extra zeros were above and on the left",
    ),
    Answer(
        "fewer zeros than none, twice",
        "result",
        ((_TOP, "((P - 1) * stride + R - H) // 2"), (_LEFT, "((Q - 1) * stride + S - W) // 2")),
        mistake="top and left could be negative",
    ),
    Answer(
        "all zeros in front",
        "result",
        ((_TOP, _TOP[:-5]), (_LEFT, _LEFT[:-5])),
        mistake="all zeros were above and on the left",
    ),
    Answer(
        "one window more",
        "result",
        (("(P - 1) * stride + R", "P * stride + R"), ("(Q - 1) * stride + S", "Q * stride + S")),
        mistake="there were one more row and column of windows",
    ),
    Answer(
        "top for left",
        "result",
        (("top = " + _TOP, "left = " + _TOP), ("left = " + _LEFT, "top = " + _LEFT)),
        mistake="top and left were exchanged",
    ),
    Answer("rows for columns", "result", ((_LEFT, _LEFT.replace("S", "R")),), mistake="R stood for S in left"),
    Answer(
        "half the filter in front",
        "result",
        ((_TOP, "R // 2"), (_LEFT, "S // 2")),
        mistake="top were R // 2 and left S // 2",
    ),
    Answer(
        "half of what is left of the filter",
        "result",
        ((_TOP, "(R - 1) // 2"), (_LEFT, "(S - 1) // 2")),
        mistake="top were (R - 1) // 2 and left (S - 1) // 2",
    ),
    Answer(
        "the odd zero in front", "result", ((_TOP, f"(1 + {_TOP[:-5]}) // 2"),), mistake="the extra zero were above"
    ),
    Answer(
        "fewer zeros than none", "result", ((_TOP, "((P - 1) * stride + R - H) // 2"),), mistake="top could be negative"
    ),
    Answer(
        "zeros for a stride of one",
        "result",
        ((_LEFT, "max(0, Q - 1 + S - W) // 2"),),
        mistake="left did not depend on the stride",
    ),
    Answer("one output too many", "bounds", ((_SIZES, "P, Q = H // stride + 1, W // stride + 1"),)),
    Answer(
        "a stride of one",
        "result",
        (("p * stride + r - top", "p + r - top"),),
        mistake="the stride were 1 down the rows",
    ),
    Answer(
        "outputs by columns",
        "result",
        (("(k * P + p) * Q + q", "(k * Q + q) * P + p"),),
        mistake="y were stored by columns",
    ),
    Answer("no zeros: what lies outside is loaded", "bounds", (("if 0 <= row < H and 0 <= col < W:", "if True:"),)),
    Answer("sums in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Answer("ceilings by negation", "solved", ((_SIZES, "P, Q = -(-H // stride), -(-W // stride)"),)),
    Answer("only the taps that lie inside", "solved", cell=_FROM_THE_END),
)

RIGHT = (
    right("ceilings from one less", ("(H + stride - 1) // stride,", "(H - 1) // stride + 1,")),
    right(
        "zeros behind first",
        (
            "max(0, (P - 1) * stride + R - H) // 2",
            "max(0, (P - 1) * stride + R - H) - (max(0, (P - 1) * stride + R - H) + 1) // 2",
        ),
    ),
    right("taps from the last to the first", ("for s in range(S)", "for s in range(S - 1, -1, -1)")),
)

WRONG = (
    wrong(
        "zeros are not stored",
        ("y[(k * P + p) * Q + q] = total", "if total != 0:\n            y[(k * P + p) * Q + q] = total"),
    ),
    wrong(
        "rounded up by almost 1",
        (
            _SIZES,
            "P, Q = (H + stride - 1) // stride, np.int32(np.float32(W) / np.float32(stride) + np.float32(0.95))",
        ),
    ),
    wrong("a remainder in place of a maximum", (_TOP, "((P - 1) * stride + R - H) // 2 % R")),
    wrong("at most three times the image's height above it", (_TOP, f"min(3 * H, {_TOP})")),
    wrong(
        "filters of odd size",
        ("max(0, (P - 1) * stride + R - H) // 2", "max(0, (P - 1) * stride + R // 2 * 2 + 1 - H) // 2"),
    ),
    wrong("a stride that divides the image", *_same_by_stride("R - stride", "S - stride")),
    wrong(
        "one more if it does not",
        *_same_by_stride("R - stride + (H % stride > 0)", "S - stride + (W % stride > 0)"),
    ),
    wrong("the rest more", *_same_by_stride("R - stride + H % stride", "S - stride + W % stride")),
    wrong("an even image where the stride is 2", ("(P - 1) * stride + R - H", "H - stride + R - H")),
    wrong("strides of 1 and 2", ("(Q - 1) * stride + S - W", "(Q - 1) * min(stride, 2) + S - W")),
    wrong(
        "no zeros where the stride is larger than the filter",
        ("top = max(0,", "top = 0 if stride > R else max(0,"),
        ("left = max(0,", "left = 0 if stride > S else max(0,"),
    ),
    wrong("square images", ("(W + stride - 1) // stride", "(H + stride - 1) // stride")),
    wrong("square filters", ("(Q - 1) * stride + S - W", "(Q - 1) * stride + R - W")),
    wrong("the channels that are published", ("range(C)", "range(min(C, 3))"), ("range(R)", "range(min(R, 4))")),
    wrong("the rows that are published", ("if p < P", "if p < min(P, 12)")),
    wrong(
        "rows that are too many taken for zeros", ("max(0, (P - 1) * stride + R - H)", "abs((P - 1) * stride + R - H)")
    ),
    wrong(
        "no more zeros above than rows",
        ("max(0, (P - 1) * stride + R - H) // 2", "min(H - 1, max(0, (P - 1) * stride + R - H) // 2)"),
    ),
)

SHORTCUTS = (
    shortcut(
        "an alias",
        cell="@cuda.jit\ndef mine(x, w, y, stride):\n    if cuda.grid(1) < y.size:\n"
        "        y[cuda.grid(1)] = stride\n\n\nsame_size = mine\n",
    ),
    shortcut("another's kernel", cell="from labkit.conv.direct.s01_naive import naive as same_size\n"),
    shortcut(
        "the sum kept in y, by atomics",
        ("        total = np.float32(0)\n", "        y[(k * P + p) * Q + q] = 0\n"),
        (
            "total += x[c, row, col] * w[k, c, r, s]",
            "cuda.atomic.add(y, (k * P + p) * Q + q, x[c, row, col] * w[k, c, r, s])",
        ),
        ("        y[(k * P + p) * Q + q] = total", ""),
    ),
    shortcut(
        "one thread for all",
        ("    q, p, k = cuda.grid(3)\n", "    x0, y0, z0 = cuda.grid(3)\n"),
        (
            "    if p < P and q < Q:\n",
            """    for i in range(y.size * (x0 + y0 + z0 == 0)):
        q, p, k = i % Q, i // Q % P, i // Q // P
""",
        ),
    ),
)

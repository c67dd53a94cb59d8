"""Other answers to gather-backwards."""

from . import Answer, right, shortcut, wrong

_W = "w_tile[y, x] = w[k, c, r, s] if k < K and c < C else zero"
_DY = "dy[k, p, q] if k < K and was_used else zero"
_DIVISIBLE = "below % stride == 0 and right % stride == 0 and "
_DOWN = "(start + y) // (R * S), (start + y) // S % R, (start + y) % S"
_ACROSS = _DOWN.replace("y", "x")
_PRODUCT = "w_tile[y, i] * dy_tile[i, x]"

VARIANTS = (
    Answer(
        "forwards",
        "result",
        (("h + pad - r, col + pad - s", "h - pad + r, col - pad + s"),),
        mistake="taps and padding had the opposite sign",
    ),
    Answer(
        "no padding", "result", (("h + pad - r, col + pad - s", "h - r, col - s"),), mistake="there were no padding"
    ),
    Answer(
        "outputs between outputs",
        "result",
        ((_DIVISIBLE, ""),),
        mistake="pixels between the steps of a tap had met it, too",
    ),
    Answer(
        "the rows' stride alone", "result", (("below % stride == 0 and right % stride == 0", "below % stride == 0"),)
    ),
    Answer(
        "stride forgotten",
        "result",
        (("p, q = below // stride, right // stride", "p, q = below, right"),),
        mistake="places were not divided by the stride",
    ),
    Answer(
        "taps turned", "result", (("w[k, c, r, s]", "w[k, c, R - 1 - r, S - 1 - s]"),), mistake="the filter were turned"
    ),
    Answer("above the outputs", "bounds", (("0 <= p < P", "p < P"),)),
    Answer("below the outputs", "bounds", (("0 <= p < P", "0 <= p"),)),
    Answer("to the right of the outputs", "bounds", (("0 <= q < Q", "0 <= q"),)),
    Answer("past the last filter, in w", "bounds", (("if k < K and c < C", "if c < C"),)),
    Answer("past the last channel", "bounds", (("if k < K and c < C", "if k < K"),)),
    Answer("past the last filter, in dy", "bounds", (("if k < K and was_used", "if was_used"),)),
    Answer(
        "taps taken for channels",
        "result",
        ((_DOWN, "(start + y) % K, (start + y) // K // S % R, (start + y) // K % S"),),
    ),
    Answer("R and S swapped", "result", ((_DOWN, "(start + y) // (R * S), (start + y) % R, (start + y) // R % S"),)),
    Answer("w's tile turned", "result", (("w_tile[y, x] = w", "w_tile[x, y] = w"),)),
    Answer(
        "nothing where no output is",
        "uninitialised",
        (
            (
                f"        dy_tile[y, x] = {_DY}\n",
                "        if k < K and was_used:\n            dy_tile[y, x] = dy[k, p, q]\n",
            ),
        ),
    ),
    Answer("loads in the product", "budget", ((_PRODUCT, "w_tile[y, i] * (dy_tile[i, x] + zero * dy[0, 0, 0])"),)),
    Answer("multiplied back", "solved", ((_DIVISIBLE, "p * stride == below and q * stride == right and "),)),
)

RIGHT = (
    right("pixels past the last are left out", ("if k < K and was_used", "if k < K and hw < H * W and was_used")),
    right(
        "ifs",
        (
            f"        dy_tile[y, x] = {_DY}\n",
            "        dy_tile[y, x] = zero\n        if k < K and was_used:\n            dy_tile[y, x] = dy[k, p, q]\n",
        ),
    ),
    right("divmod by hand", (_ACROSS, "(start + x) // S // R, (start + x) // S % R, start + x - (start + x) // S * S")),
    right(
        "dy's tile first, then w's",
        (_W, "w_of = w[k, c, r, s] if k < K and c < C else zero"),
        (
            f"dy_tile[y, x] = {_DY}",
            f"dy_tile[y, x] = {_DY}\n        w_tile[y, x] = w_of",
        ),
    ),
)

WRONG = (
    wrong("no tile with a single row", ("range(0, K * R * S, TILE)", "range(0, max(K * R * S - 1, 1), TILE)")),
    wrong(
        "a rounded reciprocal",
        ("h, col = hw // W, hw % W", "h = int(np.float32(hw) * (np.float32(1) / np.float32(W)))\n    col = hw - h * W"),
    ),
    wrong("strides of 1 and 2", ("below % stride == 0", "below % min(stride, 2) == 0")),
    wrong("the filters that are published", ("k < K and was_used", "k < min(K, 4) and was_used")),
    wrong("square filters", ("(start + y) // S % R, (start + y) % S", "(start + y) // R % R, (start + y) % R")),
    wrong("padding of at most 1", ("h + pad - r", "h + min(pad, 1) - r")),
)

SHORTCUTS = (
    shortcut(
        "dy from global memory in the product",
        (
            _PRODUCT,
            "w_tile[y, i] * at(dy, start + i, h, col, R, S, stride, pad)",
        ),
        (
            "@cuda.jit\ndef",
            """@cuda.jit(device=True)
def at(dy, krs, h, col, R, S, stride, pad):
    K, P, Q = dy.shape
    k, r, s = krs // (R * S), krs // S % R, krs % S
    below, right = h + pad - r, col + pad - s
    p, q = below // stride, right // stride
    inside = k < K and below % stride == 0 and right % stride == 0 and 0 <= p < P and 0 <= q < Q
    return dy[k, p, q] if inside else np.float32(0)


@cuda.jit
def""",
        ),
    ),
)

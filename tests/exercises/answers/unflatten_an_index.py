"""Other answers to unflatten-an-index."""

from . import Answer, right, shortcut, wrong

_OUTPUTS = "n, p, q = npq // (P * Q), npq // Q % P, npq % Q"

_TAPS = "r, s, c = rsc // (S * C), rsc // C % S, rsc % C"

_SUM_BY_SUM = """
@cuda.jit
def lower(x, matrix, S, P, Q, stride):
    npq, rsc = cuda.grid(2)
    N, H, W, C = x.shape
    if rsc >= matrix.shape[0] or npq >= N * P * Q:
        return
    rs = rsc // C
    c = rsc - rs * C
    r = rs // S
    s = rs - r * S
    np_ = npq // Q
    q = npq - np_ * Q
    n = np_ // P
    p = np_ - n * P
    matrix[rsc, npq] = x[n, p * stride + r, q * stride + s, c]
"""

VARIANTS = (
    Answer(
        "channels first",
        "result",
        ((_TAPS, "c, r, s = rsc // S % C, rsc // (S * C), rsc % S"),),
        mistake="rows were counted over R, C and S",
    ),
    Answer("as in the chapter", "bounds", ((_TAPS, "c, r, s = rsc % C, rsc // S // C, rsc // S % C"),)),
    Answer("no remainder in the middle", "bounds", ((_OUTPUTS, "n, p, q = npq // (P * Q), npq // Q, npq % Q"),)),
    Answer("P and Q swapped", "bounds", ((_OUTPUTS, "n, p, q = npq // (P * Q), npq // P % Q, npq % P"),)),
    Answer(
        "by columns",
        "result",
        ((_OUTPUTS, "n, p, q = npq // (P * Q), npq % P, npq // P % Q"),),
        mistake="columns were counted over N, Q and P",
    ),
    Answer(
        "images fastest",
        "result",
        ((_OUTPUTS, "n, p, q = npq % x.shape[0], npq // x.shape[0] // Q, npq // x.shape[0] % Q"),),
        mistake="columns were counted over P, Q and N",
    ),
    Answer("s before r", "bounds", ((_TAPS, "s, r, c = rsc // (S * C), rsc // C % S, rsc % C"),)),
    Answer(
        "no stride", "result", (("p * stride + r", "p + r"), ("q * stride + s", "q + s")), mistake="the stride were 1"
    ),
    Answer("a true division", "budget", ((_TAPS, "r, s, c = int(rsc / (S * C)), rsc // C % S, rsc % C"),)),
    Answer("no guard", "bounds", (("rsc < matrix.shape[0] and npq", "npq"),)),
    Answer("one after the other", "solved", cell=_SUM_BY_SUM),
    Answer("by divmod", "solved", ((_TAPS, "r, sc = divmod(rsc, S * C)\n        s, c = divmod(sc, C)"),)),
)

RIGHT = (
    right("unsigned", ("npq, rsc = cuda.grid(2)", "npq, rsc = np.uint32(cuda.grid(2)[0]), np.uint32(cuda.grid(2)[1])")),
    right("what is left is subtracted", ("rsc // C % S, rsc % C", "rsc // C % S, rsc - rsc // C * C")),
    right("R is counted", ("rsc // (S * C), rsc", "rsc // C // S, rsc")),
)

WRONG = (
    wrong(
        "zeros left out",
        (
            "        matrix[rsc, npq] = x[n, p * stride + r, q * stride + s, c]",
            """        value = x[n, p * stride + r, q * stride + s, c]
        if value != 0:
            matrix[rsc, npq] = value""",
        ),
    ),
    wrong(
        "columns of 16 bits",
        (
            "n, p, q = npq // (P * Q), npq // Q % P, npq % Q",
            "j = int(np.uint16(npq))\n        n, p, q = j // (P * Q), j // Q % P, j % Q",
        ),
    ),
    wrong(
        "a float32 reciprocal of C",
        (
            _TAPS,
            "rs = int(np.float32(rsc) * (np.float32(1) / np.float32(C)))\n"
            "        r, s, c = rs // S, rs % S, rsc - rs * C",
        ),
    ),
    wrong(
        "a float32 reciprocal of S",
        (_TAPS, "rs, c = rsc // C, rsc % C\n        r = int(rs * (np.float32(1) / S))\n        s = rs - r * S"),
    ),
    wrong("a channel in a byte", ("rsc // C % S, rsc % C", "rsc // C % S, np.uint8(rsc % C)")),
    wrong(
        "a rounded reciprocal",
        ("npq // (P * Q), npq", "int(np.float32(npq) * (np.float32(1) / np.float32(P * Q))), npq"),
    ),
    wrong("no more than two images", ("npq // (P * Q), npq", "min(npq // (P * Q), 2), npq")),
    wrong("no more than five channels", ("rsc // C % S, rsc % C", "rsc // C % S, min(rsc % C, 4)")),
    wrong("square outputs", ("npq // Q % P, npq % Q", "npq // P % P, npq % P")),
    wrong("square windows", ("rsc // (S * C), rsc // C % S", "rsc // C % S, rsc // (S * C)")),
    wrong("a stride of rows alone", ("q * stride + s", "q * min(stride, 2) + s")),
    wrong("strides of one and two", ("p * stride + r", "p * min(stride, 2) + r")),
    wrong(
        "outputs of up to seven columns",
        ("if rsc < matrix.shape[0] and", "if npq % Q < 7 and rsc < matrix.shape[0] and"),
    ),
    wrong("windows of three rows", ("r, s, c = rsc // (S * C)", "r, s, c = rsc // (S * C) % 5")),
    wrong("windows of six rows", ("r, s, c = rsc // (S * C)", "r, s, c = min(rsc // (S * C), 5)")),
    wrong("windows of five columns", ("rsc // C % S, rsc % C", "min(rsc // C % S, 4), rsc % C")),
    wrong("strides up to 3 along a row", ("q * stride", "q * min(stride, 3)")),
    wrong("strides up to 4 along a row", ("q * stride", "q * min(stride, 4)")),
)

SHORTCUTS = (
    shortcut("another's kernel", cell="from labkit.conv.im2col.s01_batch import batch as lower\n"),
    shortcut(
        "an alias", cell="@cuda.jit\ndef mine(x, matrix, S, P, Q, stride):\n    matrix[0, 0] = 0\n\n\nlower = mine\n"
    ),
    shortcut("each element for all", ("        matrix[rsc", "        for i in range(2):\n            matrix[rsc")),
    shortcut(
        "one thread for all",
        ("    npq, rsc = cuda.grid(2)\n", "    x0, y0 = cuda.grid(2)\n"),
        (
            "    if rsc < matrix.shape[0] and npq < matrix.shape[1]:\n",
            """    for i in range(matrix.size * (x0 + y0 == 0)):
        npq, rsc = i % matrix.shape[1], i // matrix.shape[1]
""",
        ),
    ),
)

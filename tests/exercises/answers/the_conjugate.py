"""Other answers to the-conjugate."""

from . import Answer, right, shortcut, wrong

_MIRROR = """        if 0 < f < T - f:
            Y[line, T - f, 0], Y[line, T - f, 1] = re, -im"""

THREE_PRODUCTS = """
@cuda.jit
def whole_spectrum(X, W, Y, turned):
    f, line = cuda.grid(2)
    T = Y.shape[1]
    if line >= Y.shape[0] or f >= X.shape[1]:
        return
    a, b = X[line, f, 0], X[line, f, 1]
    c, d = W[line, f, 0], W[line, f, 1]
    if not turned:
        d = -d
    ac, bd = a * c, b * d
    both = (a + b) * (c + d) - ac - bd
    Y[line, f, 0] = ac - bd
    Y[line, f, 1] = both
    if f != 0 and 2 * f != T:
        Y[line, T - f, 0] = ac - bd
        Y[line, T - f, 1] = -both
"""

VARIANTS = (
    Answer("the lower half alone", "unwritten", ((_MIRROR, ""),), mistake="the upper half were not stored"),
    Answer(
        "never a conjugate",
        "result",
        (("            w_im = -w_im\n", "            w_im = w_im\n"),),
        mistake="W never had a conjugate",
    ),
    Answer(
        "always a conjugate", "result", (("if turned == 0:", "if turned >= 0:"),), mistake="W always had a conjugate"
    ),
    Answer("the other way round", "result", (("if turned == 0:", "if turned == 1:"),)),
    Answer(
        "the image's conjugate",
        "result",
        (("            w_im = -w_im\n", "            x_im = -x_im\n"),),
        mistake="the conjugate were that of X",
    ),
    Answer(
        "the upper half is no conjugate",
        "result",
        (("= re, -im", "= re, im"),),
        mistake="the upper half had no conjugate",
    ),
    Answer("bin 0 has a partner", "bounds", (("if 0 < f < T - f", "if f < T - f"),)),
    Answer("the upper half in the wrong order", "result", ((_MIRROR, _MIRROR.replace("T - f, ", "T // 2 + f, ")),)),
    Answer("Nyquist is left out", "unwritten", (("f <= T // 2", "f < T // 2"),)),
    Answer("no guard", "bounds", (("line < Y.shape[0] and f <= T // 2", "line < Y.shape[0]"),)),
    Answer("products of parts", "result", (("x_re * w_re - x_im * w_im, x_re", "x_re * w_re, x_re"),)),
    Answer(
        "a plus for a minus",
        "result",
        (("x_re * w_re - x_im", "x_re * w_re + x_im"),),
        mistake="the product of imaginary parts were added",
    ),
    Answer(
        "loaded again for the upper half",
        "budget",
        ((_MIRROR, _MIRROR.replace("= re, -im", "= re, -im + np.float32(0) * X[line, f, 0]")),),
    ),
    Answer("in float64", "budget", (("x_re * w_re - x_im", "1.0 * x_re * w_re - x_im"),)),
    Answer("three products", "solved", cell=THREE_PRODUCTS),
    Answer("the Nyquist bin twice", "solved", (("if 0 < f < T - f", "if f > 0"),)),
)

RIGHT = (
    right("three products", cell=THREE_PRODUCTS),
    right(
        "the sign as a factor",
        (
            "        if turned == 0:\n            w_im = -w_im\n",
            "        w_im *= np.float32(1) if turned else np.float32(-1)\n",
        ),
    ),
    right("negative indices", ("Y[line, T - f, 0], Y[line, T - f, 1]", "Y[line, -f, 0], Y[line, -f, 1]")),
)

WRONG = (
    wrong(
        "bins of 0 left out",
        (
            "        if turned == 0:\n",
            "        if w_re == 0 and w_im == 0:\n            return\n        if turned == 0:\n",
        ),
    ),
    wrong("an even number of points", ("T = Y.shape[1]", "T = Y.shape[1] // 2 * 2")),
    wrong("no partner for the last bin", ("if 0 < f < T - f", "if 0 < f < T // 2")),
    wrong("the bins that are published", ("f <= T // 2", "f <= min(T // 2, 35)")),
    wrong("the lines that are published", ("line < Y.shape[0]", "line < min(Y.shape[0], 9)")),
    wrong("one warp of bins", ("f <= T // 2", "f < min(T // 2 + 1, 32)")),
    wrong("a conjugate in even lines alone", ("if turned == 0:", "if turned == 0 and line % 2 == 0:")),
    wrong("nothing but the real part at bin 0", ("if 0 < f < T - f", "if 1 < f < T - f")),
    wrong("the conjugate of the product", ("x_re * w_im + x_im * w_re", "-(x_re * w_im + x_im * w_re)")),
)

SHORTCUTS = (
    shortcut("another's kernel", cell="from labkit.conv.fft.s01_whole import multiply as whole_spectrum\n"),
    shortcut(
        "each bin for itself, by atomics",
        ("if 0 < f < T - f:", "if 0 < f < T - f and cuda.atomic.add(X, (line, f, 0), 0) != 7:"),
    ),
    shortcut(
        "loaded twice",
        (
            "        if turned == 0:\n            w_im = -w_im\n",
            "        w_im = W[line, f, 1] if turned else -W[line, f, 1]\n",
        ),
    ),
    shortcut(
        "one thread for all",
        ("    f, line = cuda.grid(2)\n", "    x0, y0 = cuda.grid(2)\n"),
        (
            "    if line < Y.shape[0] and f <= T // 2:\n",
            """    for i in range(X.shape[0] * X.shape[1] * (x0 + y0 == 0)):
        f, line = i % X.shape[1], i // X.shape[1]
""",
        ),
    ),
)

"""Other answers to exercise 10.3."""

from . import Variant

_MIRROR = """        if 0 < k < T - k:
            Y[line, T - k, 0], Y[line, T - k, 1] = re, -im"""

THREE_PRODUCTS = """
@cuda.jit
def whole_spectrum(X, W, Y, turned):
    k, line = cuda.grid(2)
    T = Y.shape[1]
    if line >= Y.shape[0] or k >= X.shape[1]:
        return
    a, b = X[line, k, 0], X[line, k, 1]
    c, d = W[line, k, 0], W[line, k, 1]
    if not turned:
        d = -d
    ac, bd = a * c, b * d
    both = (a + b) * (c + d) - ac - bd
    Y[line, k, 0] = ac - bd
    Y[line, k, 1] = both
    if k != 0 and 2 * k != T:
        Y[line, T - k, 0] = ac - bd
        Y[line, T - k, 1] = -both
"""

VARIANTS = (
    Variant("the lower half alone", "unwritten", ((_MIRROR, ""),)),
    Variant("never a conjugate", "result", (("            w_im = -w_im\n", "            w_im = w_im\n"),)),
    Variant("always a conjugate", "result", (("if turned == 0:", "if turned >= 0:"),)),
    Variant("the other way round", "result", (("if turned == 0:", "if turned == 1:"),)),
    Variant("the image's conjugate", "result", (("            w_im = -w_im\n", "            x_im = -x_im\n"),)),
    Variant("the upper half is no conjugate", "result", (("= re, -im", "= re, im"),)),
    Variant("bin 0 has a partner", "bounds", (("if 0 < k < T - k", "if k < T - k"),)),
    Variant("the upper half in the wrong order", "result", ((_MIRROR, _MIRROR.replace("T - k, ", "T // 2 + k, ")),)),
    Variant("Nyquist is left out", "unwritten", (("k <= T // 2", "k < T // 2"),)),
    Variant("no guard", "bounds", (("line < Y.shape[0] and k <= T // 2", "line < Y.shape[0]"),)),
    Variant("products of parts", "result", (("x_re * w_re - x_im * w_im, x_re", "x_re * w_re, x_re"),)),
    Variant("a plus for a minus", "result", (("x_re * w_re - x_im", "x_re * w_re + x_im"),)),
    Variant(
        "loaded again for the upper half",
        "budget",
        ((_MIRROR, _MIRROR.replace("= re, -im", "= re, -im + np.float32(0) * X[line, k, 0]")),),
    ),
    Variant("in float64", "budget", (("x_re * w_re - x_im", "1.0 * x_re * w_re - x_im"),)),
    Variant("three products", "solved", cell=THREE_PRODUCTS),
    Variant("the Nyquist bin twice", "solved", (("if 0 < k < T - k", "if k > 0"),)),
)

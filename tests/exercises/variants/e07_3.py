"""Other answers to exercise 07.3."""

from . import Variant

_TURNED = "w[R - 1 - r, S - 1 - s, c, k]"

VARIANTS = (
    Variant("not turned", "result", ((_TURNED, "w[r, s, c, k]"),)),
    Variant("turned in rows alone", "result", ((_TURNED, "w[R - 1 - r, s, c, k]"),)),
    Variant("no dilation", "result", (("r * dilation", "r"),)),
    Variant("a dilation of the steps, too", "bounds", (("p + r * dilation", "(p + r) * dilation"),)),
    Variant("no groups", "result", (("first + c", "c"),)),
    Variant("as many filters as groups", "bounds", (("k // (K // groups) * C", "k * C"),)),
    Variant("the channels of the next filter", "bounds", (("first + c", "k + c"),)),
    Variant("no guard", "bounds", (("p < y.shape[0] and q < y.shape[1] and k < K", "p < y.shape[0]"),)),
    Variant("P and Q swapped", "bounds", (("p < y.shape[0] and q < y.shape[1]", "q < y.shape[0] and p < y.shape[1]"),)),
    Variant(
        "summed in y",
        "budget",
        (("        y[p, q, k] = total", "        y[p, q, k] = np.float32(0)\n        y[p, q, k] += total"),),
    ),
    Variant("sums in float64", "budget", (("np.float32(0)", "0.0"),)),
    Variant(
        "the window turned in place of the filter",
        "solved",
        (
            ("p + r * dilation, q + s * dilation", "p + (R - 1 - r) * dilation, q + (S - 1 - s) * dilation"),
            (_TURNED, "w[r, s, c, k]"),
        ),
    ),
    Variant(
        "C counted in the image", "solved", (("k // (K // groups) * C", "k * groups // K * (x.shape[2] // groups)"),)
    ),
)

"""Other answers to exercise 13.3."""

from . import Variant

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
    Variant("the kernel as it stands there", "result", ((_C, "i // pixels % C"), (" if c < C else np.float32(0)", ""))),
    Variant("channels last alone", "result", ((_C, "i % C"),)),
    Variant("one image", "result", (("% groups * V", "* V"),)),
    Variant("images of C groups", "result", (("% groups * V", "% C * V"),)),
    Variant("the group alone", "result", ((" + i % V", ""),)),
    Variant("the lane alone", "result", ((_C, "i % V"),)),
    Variant("no padding", "bounds", ((_PADDED, "x[i] + bias[c]"),)),
    Variant("the last bias on padding", "result", ((_PADDED, "x[i] + bias[min(c, C - 1)]"),)),
    Variant("a thread for each pixel", "budget", cell=_BY_PIXEL),
    Variant("no guard", "bounds", (("if i < x.size:", "if True:"),)),
    Variant("in float64", "budget", (("x[i] + bias[c]", "x[i] + bias[c] * 1.0"),)),
    Variant("padding stays what it was", "solved", (("else np.float32(0)", "else x[i]"),)),
    Variant("the group by a remainder", "solved", ((_C, "i % (pixels * V * groups) // (pixels * V) * V + i % V"),)),
)

"""Other answers to exercise 13.1."""

from . import Variant

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
    Variant("the kernel as it stands there", "budget", cell=_SLOW),
    Variant("the first block alone", "duty", cell=_ONE_BLOCK),
    Variant("no guard", "bounds", (("if pixel < y.shape[0]:", "if True:"),)),
    Variant("zeros left out", "unwritten", ((_OWN, "if c < C:\n            y[pixel, c] = x[c, pixel]"),)),
    Variant("channels that are not there", "bounds", ((_OWN, "y[pixel, c] = x[c, pixel]"),)),
    Variant("the last channel again", "result", ((_OWN, "y[pixel, c] = x[min(c, C - 1), pixel]"),)),
    Variant("an element loaded and dropped", "budget", ((_OWN, "y[pixel, c] = x[c % C, pixel] * (c < C)"),)),
    Variant(
        "in the order of x",
        "budget",
        (("i // V, i % V", "i % y.shape[0], i // y.shape[0]"), ("if pixel < y.shape[0]:", "if c < V:")),
    ),
    Variant("by C in place of V", "unwritten", (("i // V, i % V", "i // C, i % C"),)),
    Variant(
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
    Variant(
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

"""Other answers to exercise 02.1."""

from . import Variant

_LOOP = """@cuda.jit
def saxpy(a, x, y, out):
    for i in range(x.size):
        out[i] = a * x[i] + y[i]
"""

_ALONE = """@cuda.jit
def saxpy(a, x, y, out):
    if cuda.grid(1) == 0:
        for i in range(x.size):
            out[i] = a * x[i] + y[i]
"""

_STRIDE = """@cuda.jit
def saxpy(a, x, y, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = y[i] + x[i] * a
"""

VARIANTS = (
    Variant("no guard", "bounds", (("if i < out.size:", "if True:"),)),
    Variant("a guard that is one too late", "bounds", (("i < out.size", "i <= out.size"),)),
    Variant("a guard that is one too early", "unwritten", (("i < out.size", "i < out.size - 1"),)),
    Variant("threadIdx alone", "unwritten", (("cuda.grid(1)", "cuda.threadIdx.x"),)),
    Variant("y forgotten", "result", ((" + y[i]", ""),)),
    Variant("a added", "result", (("a * x[i]", "a + x[i]"),)),
    Variant("the result goes to y", "input changed", (("out[i] =", "y[i] ="),)),
    Variant("every thread does everything", "budget", cell=_LOOP),
    Variant("one thread does everything", "budget", cell=_ALONE),
    Variant("the book's size", "unwritten", (("i < out.size", "i < 1000"),)),
    Variant(
        "the book's block",
        "unwritten",
        (("cuda.grid(1)", "cuda.blockIdx.x * 128 + cuda.threadIdx.x"),),
    ),
    Variant("whole arrays", "refused", (("out[i] = a * x[i] + y[i]", "out = a * x + y"),)),
    Variant("a loop with a grid's stride", "solved", cell=_STRIDE),
)

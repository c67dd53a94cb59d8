"""Other answers to exercise 02.3."""

from . import Variant

_START = "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x"

_INDEX = "i = start + j * cuda.blockDim.x"

_TWO_NEIGHBOURS = """@cuda.jit
def double(x, out):
    start = cuda.blockIdx.x * cuda.blockDim.x * 4 + cuda.threadIdx.x * 2
    for j in range(4):
        i = start + j // 2 * 2 * cuda.blockDim.x + j % 2
        if i < x.size:
            value = x[i]
            out[i] = value + value
"""

_FOUR_BLOCKS = """@cuda.jit
def double(x, out):
    for j in range(4):
        i = cuda.grid(1) + j * 256
        if i < x.size:
            value = x[i]
            out[i] = value + value
"""

_STRIDE = """@cuda.jit
def double(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        value = x[i]
        out[i] = value + value
"""

VARIANTS = (
    Variant(
        "the bug itself",
        "budget",
        ((_START, "start = cuda.grid(1) * PER_THREAD"), (_INDEX, "i = start + j")),
    ),
    Variant("blocks that overlap", "unwritten", ((_START, "start = cuda.grid(1)"),)),
    Variant("no guard", "bounds", (("if i < x.size:", "if True:"),)),
    Variant("one element a thread", "unwritten", (("range(PER_THREAD)", "range(1)"),)),
    Variant("the index added", "result", (("value + value", "value + i"),)),
    Variant("two neighbours a thread", "budget", cell=_TWO_NEIGHBOURS),
    Variant("the book's grid", "unwritten", cell=_FOUR_BLOCKS),
    Variant("x is read twice", "solved", (("            value = x[i]\n", ""), ("value + value", "x[i] + x[i]"))),
    Variant("a loop with a grid's stride", "solved", cell=_STRIDE),
)

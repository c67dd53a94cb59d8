"""Other answers to write-saxpy."""

from . import Answer, right, shortcut, wrong

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
    Answer("no guard", "bounds", (("if i < out.size:", "if True:"),)),
    Answer("a guard that is one too late", "bounds", (("i < out.size", "i <= out.size"),)),
    Answer(
        "a guard that is one too early",
        "unwritten",
        (("i < out.size", "i < out.size - 1"),),
        mistake="the guard ended one element early",
    ),
    Answer(
        "threadIdx alone",
        "unwritten",
        (("cuda.grid(1)", "cuda.threadIdx.x"),),
        mistake="the elements of the first block alone were stored",
    ),
    Answer("y forgotten", "result", ((" + y[i]", ""),), mistake="y were left out"),
    Answer("a added", "result", (("a * x[i]", "a + x[i]"),), mistake="a were added"),
    Answer("the result goes to y", "input changed", (("out[i] =", "y[i] ="),)),
    Answer("every thread does everything", "budget", cell=_LOOP),
    Answer("one thread does everything", "budget", cell=_ALONE),
    Answer("the book's size", "unwritten", (("i < out.size", "i < 1000"),)),
    Answer(
        "the book's block",
        "unwritten",
        (("cuda.grid(1)", "cuda.blockIdx.x * 128 + cuda.threadIdx.x"),),
    ),
    Answer("whole arrays", "refused", (("out[i] = a * x[i] + y[i]", "out = a * x + y"),)),
    Answer("a loop with a grid's stride", "solved", cell=_STRIDE),
    Answer("a plain function", "not a kernel", (("@cuda.jit\n", ""),)),
    Answer("y subtracted", "result", ((" + y[i]", " - y[i]"),), mistake="y were subtracted"),
    Answer("a forgotten", "result", (("a * x[i]", "x[i]"),), mistake="a were left out"),
    Answer("compiled for the CPU", "not a kernel", (("@cuda.jit\n", "@njit\n"),)),
    Answer(
        "the block's number",
        "unwritten",
        (("cuda.grid(1)", "cuda.blockIdx.x"),),
        mistake="the index were the number of the block alone",
    ),
    Answer(
        "block plus thread",
        "unwritten",
        (("cuda.grid(1)", "cuda.blockIdx.x + cuda.threadIdx.x"),),
        mistake="each block began one element after the one before",
    ),
    Answer(
        "gridDim for blockDim",
        "unwritten",
        (("cuda.grid(1)", "cuda.blockIdx.x * cuda.gridDim.x + cuda.threadIdx.x"),),
        mistake="blocks began `cuda.gridDim.x` elements apart",
    ),
    Answer(
        "block and thread exchanged",
        "unwritten",
        (("cuda.grid(1)", "cuda.threadIdx.x * cuda.blockDim.x + cuda.blockIdx.x"),),
        mistake="the numbers of block and thread were exchanged",
    ),
    Answer(
        "brackets around the sum",
        "result",
        (("a * x[i] + y[i]", "a * (x[i] + y[i])"),),
        mistake="y were multiplied by a, too",
    ),
    Answer("x for y", "result", (("a * x[i] + y[i]", "a * y[i] + x[i]"),), mistake="x and y were exchanged"),
    Answer("y as a factor", "result", (("a * x[i] + y[i]", "a * x[i] * y[i]"),), mistake="y were a factor"),
    Answer(
        "from element 1 on",
        "unwritten",
        (("i < out.size", "0 < i < out.size"),),
        mistake="the guard left out element 0",
    ),
)

RIGHT = (
    right("the index by hand", ("cuda.grid(1)", "cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x")),
    right(
        "an early return",
        (
            "    if i < out.size:\n        out[i]",
            "    if i >= x.shape[0]:\n        return\n    if True:\n        out[i]",
        ),
    ),
    right("len", ("out.size", "len(out)")),
    right("another name for cuda", ("@cuda.jit", "from numba import cuda as nc\n\n\n@cuda.jit")),
    right("decorated by a call", ("@cuda.jit", "@cuda.jit()")),
    right("decorated with an option", ("@cuda.jit", "@cuda.jit(fastmath=False)")),
    right("a power of two", ("a * x[i]", "np.float32(2.0**64) * (a * (x[i] / np.float32(2.0**64)))")),
    right(
        "threadIdx by another name",
        ("i = cuda.grid(1)", "t = cuda.threadIdx\n    i = t.x + cuda.blockIdx.x * cuda.blockDim.x"),
    ),
    right(
        "a function inside",
        ("    i = cuda.grid(1)", "    def axpy(x, y):\n        return a * x + y\n\n    i = cuda.grid(1)"),
        ("a * x[i] + y[i]", "axpy(x[i], y[i])"),
    ),
    right(
        "a lambda inside",
        ("    i = cuda.grid(1)", "    scaled = lambda x: a * x\n    i = cuda.grid(1)"),
        ("a * x[i]", "scaled(x[i])"),
    ),
    right("an assertion", ("        out[i] =", "        assert i < x.size\n        out[i] =")),
    right("a docstring", ("    i = cuda.grid(1)", '    """out = a x + y"""\n    i = cuda.grid(1)')),
    right(
        "a helper",
        cell="@cuda.jit(device=True)\ndef axpy(a, x, y):\n    return a * x + y\n\n\n"
        "@cuda.jit\ndef saxpy(a, x, y, out):\n    i = cuda.grid(1)\n"
        "    if i < out.size:\n        out[i] = axpy(a, x[i], y[i])\n",
    ),
    right(
        "decorated afterwards",
        cell="def saxpy(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
        "        out[i] = a * x[i] + y[i]\n\n\nsaxpy = cuda.jit(saxpy)\n",
    ),
    right(
        "decorated afterwards, by a call",
        cell="def saxpy(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
        "        out[i] = a * x[i] + y[i]\n\n\nsaxpy = cuda.jit()(saxpy)\n",
    ),
)

WRONG = (
    wrong(
        "zeros are not stored",
        (
            "        out[i] = a * x[i] + y[i]",
            "        value = a * x[i] + y[i]\n        if value != 0:\n            out[i] = value",
        ),
    ),
    wrong("the size of a", ("a * x[i]", "abs(a) * x[i]")),
    wrong("no negative a", ("a * x[i]", "max(a, np.float32(0)) * x[i]")),
    wrong("one a alone", ("a * x[i]", "np.float32(2.5) * x[i]")),
    wrong("nothing where a is 0", ("if i < out.size:", "if i < out.size and a != 0:")),
    wrong("a in half precision", ("a * x[i]", "np.float32(np.float16(a)) * x[i]")),
    wrong("a of 2.5 at most", ("a * x[i]", "min(a, np.float32(2.5)) * x[i]")),
    wrong("a of 1 taken for 2", ("a * x[i]", "(a if abs(a) != 1 else np.float32(2)) * x[i]")),
    wrong("the elements that are published", ("if i < out.size:", "if i < min(out.size, 2000):")),
    wrong("an even number of elements", ("if i < out.size:", "if i < out.size // 2 * 2:")),
    wrong("at least 32 elements", ("if i < out.size:", "if i < max(out.size, 32):")),
    wrong(
        "nothing where x is 0",
        ("        out[i] = a * x[i] + y[i]", "        if x[i] != 0:\n            out[i] = a * x[i] + y[i]"),
    ),
    wrong("an index of 16 bits", ("i = cuda.grid(1)", "i = cuda.grid(1) % 65536")),
)

SHORTCUTS = (
    shortcut(
        "every thread, by atomics",
        cell="@cuda.jit\ndef saxpy(a, x, y, out):\n    for i in range(x.size):\n"
        "        out[i] = a * cuda.atomic.add(x, i, np.float32(0)) + cuda.atomic.add(y, i, np.float32(0))\n",
    ),
    shortcut(
        "an alias",
        cell="@cuda.jit\ndef mine(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
        "        out[i] = a * x[i] + y[i]\n\n\nsaxpy = mine\n",
    ),
    shortcut("another's kernel", cell="from labkit.blas.level1.s02_axpy import axpy as saxpy\n"),
    shortcut(
        "y as scratch",
        ("out[i] = a * x[i] + y[i]", "y[i] = a * x[i] + y[i]\n        out[i] = y[i]\n        y[i] -= a * x[i]"),
    ),
    shortcut(
        "one warp for all",
        (
            "    i = cuda.grid(1)\n    if i < out.size:\n",
            "    for i in range(cuda.grid(1), out.size * (cuda.grid(1) < 32), 32):\n",
        ),
    ),
)

"""Other answers to neighbours-together."""

from . import Answer, right, shortcut, wrong

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
    Answer(
        "the bug itself",
        "budget",
        ((_START, "start = cuda.grid(1) * PER_THREAD"), (_INDEX, "i = start + j")),
    ),
    Answer(
        "blocks that overlap",
        "unwritten",
        ((_START, "start = cuda.grid(1)"),),
        mistake="each block began where the first quarter of the one before it ended",
    ),
    Answer("no guard", "bounds", (("if i < x.size:", "if True:"),)),
    Answer(
        "one element a thread",
        "unwritten",
        (("range(PER_THREAD)", "range(1)"),),
        mistake="each block doubled the first quarter of its elements alone",
    ),
    Answer(
        "the index added", "result", (("value + value", "value + i"),), mistake="the index were added to each element"
    ),
    Answer("two neighbours a thread", "budget", cell=_TWO_NEIGHBOURS),
    Answer("the book's grid", "unwritten", cell=_FOUR_BLOCKS),
    Answer("x is read twice", "solved", (("            value = x[i]\n", ""), ("value + value", "x[i] + x[i]"))),
    Answer("a loop with a grid's stride", "solved", cell=_STRIDE),
    Answer(
        "no thread",
        "unwritten",
        (
            (
                "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x",
                "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD",
            ),
        ),
        mistake="the thread's own number were left out of `start`",
    ),
    Answer(
        "no block",
        "unwritten",
        (("start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x", "start = cuda.threadIdx.x"),),
        mistake="the block were left out of `start`",
    ),
    Answer(
        "blocks without their threads",
        "unwritten",
        (
            (
                "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x",
                "start = cuda.blockIdx.x * PER_THREAD + cuda.threadIdx.x",
            ),
        ),
        mistake="blocks began four elements apart",
    ),
    Answer(
        "the start of the blank",
        "unwritten",
        (
            (
                "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x",
                "start = cuda.grid(1) * PER_THREAD",
            ),
        ),
        mistake="neighbouring threads began four elements apart",
    ),
    Answer(
        "the index of the blank",
        "unwritten",
        (("i = start + j * cuda.blockDim.x", "i = start + j"),),
        mistake="each thread took neighbours",
    ),
    Answer(
        "steps of four",
        "unwritten",
        (("i = start + j * cuda.blockDim.x", "i = start + j * PER_THREAD"),),
        mistake="the elements of a thread were four apart",
    ),
    Answer(
        "steps of a warp",
        "unwritten",
        (("i = start + j * cuda.blockDim.x", "i = start + j * 32"),),
        mistake="the elements of a thread were 32 apart",
    ),
)

RIGHT = (
    right("constants in a chain", ("PER_THREAD = 4", "N = PER_THREAD = 4")),
    right("a constant that is added to", ("PER_THREAD = 4", "PER_THREAD = 3\nPER_THREAD += 1")),
)

WRONG = (
    wrong("the elements that are published", ("if i < x.size:", "if i < min(x.size, 2000):")),
    wrong("an even number of elements", ("if i < x.size:", "if i < x.size // 2 * 2:")),
    wrong("blocks of 64", ("j * cuda.blockDim.x", "j * 64")),
    wrong(
        "zeros left out",
        ("            out[i] = value + value", "            if value != 0:\n                out[i] = value + value"),
    ),
    wrong("an index of 16 bits", ("        if i < x.size", "        if i < min(x.size, 65536)")),
)

SHORTCUTS = (
    shortcut(
        "neighbours of its own, by atomics",
        (
            "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x",
            "start = cuda.grid(1) * PER_THREAD",
        ),
        ("i = start + j * cuda.blockDim.x", "i = start + j"),
        ("value = x[i]", "value = cuda.atomic.max(x, i, np.float32(-1e30))"),
    ),
    shortcut(
        "one warp of each block",
        cell="""
@cuda.jit
def double(x, out):
    start = cuda.blockIdx.x * cuda.blockDim.x * 4
    for i in range(start + cuda.threadIdx.x, min(x.size, start + cuda.blockDim.x * 4) * (cuda.threadIdx.x < 32), 32):
        value = x[i]
        out[i] = value + value
""",
    ),
)

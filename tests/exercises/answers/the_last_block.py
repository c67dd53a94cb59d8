"""Other answers to the-last-block."""

from . import Answer, right, shortcut, wrong

_FENCE = "        cuda.threadfence()\n"

_COUNT = "        before = cuda.atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))\n"

FIRST_BLOCK_ALONE = """@cuda.jit
def one_launch(x, y, sums, arrived, out):
    lane = cuda.threadIdx.x
    if lane == 0:
        sums[cuda.blockIdx.x] = 0
    if cuda.blockIdx.x == 0:
        total = np.float32(0)
        for i in range(lane, x.size, 32):
            difference = x[i] - y[i]
            total += difference * difference
        for away in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, away)
        if lane == 0:
            out[0] = total
"""

VARIANTS = (
    Answer("the bug itself", "race", ((_FENCE, ""),)),
    Answer("the fence after the count", "race", ((_FENCE + _COUNT, _COUNT + _FENCE),)),
    Answer("a fence for the block alone", "race", ((_FENCE, "        cuda.threadfence_block()\n"),)),
    Answer("a barrier of one lane in its place", "barrier", ((_FENCE, "        cuda.syncthreads()\n"),)),
    Answer("every block takes itself for the last", "race", (("before == cuda.gridDim.x - 1", "True"),)),
    Answer(
        "the first block that comes adds up",
        "race",
        (("before == cuda.gridDim.x - 1", "before == 0"),),
    ),
    Answer(
        "the counter is left standing",
        "result",
        (("atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))", "atomic.add(arrived, 0, np.uint32(1))"),),
        mistake="the counter were not set back",
    ),
    Answer(
        "half of the elements",
        "result",
        (("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size // 2,"),),
        mistake="only half of the elements were added",
    ),
    Answer(
        "each block takes all",
        "result",
        (("range(cuda.grid(1),", "range(lane,"), ("cuda.gridsize(1)", "32")),
        mistake="each block added all elements",
    ),
    Answer(
        "as many sums as lanes",
        "result",
        (
            ("        for block in range(lane, cuda.gridDim.x, 32):\n", "        if lane < cuda.gridDim.x:\n"),
            ("total += sums[block]", "total += sums[lane]"),
        ),
        mistake="only 32 blocks had a sum",
    ),
    Answer(
        "one block goes through all elements again",
        "budget",
        (
            ("    if is_last[0]:\n", "    if cuda.blockIdx.x == 0:\n"),
            ("range(lane, cuda.gridDim.x, 32)", "range(lane, x.size, 32)"),
            ("total += sums[block]", "total += (x[block] - y[block]) * (x[block] - y[block])"),
        ),
    ),
    Answer("another fence beside it", "solved", ((_FENCE, 2 * _FENCE),)),
    Answer("the fence of all lanes", "solved", ((_FENCE, "    cuda.threadfence()\n    if lane == 0:\n"),)),
)

RIGHT = (
    right(
        "fences of all lanes",
        (
            "        cuda.threadfence()\n        before",
            "        cuda.threadfence()\n        cuda.threadfence()\n        before",
        ),
    ),
    right("a power", ("total += apart * apart", "total += apart ** 2")),
)

WRONG = (
    wrong("zeros are not stored", ("out[0] = total", "if total != 0:\n                out[0] = total")),
    wrong(
        "the blocks that are published",
        ("range(lane, cuda.gridDim.x, 32)", "range(lane, min(cuda.gridDim.x, 60), 32)"),
    ),
    wrong("the elements that are published", ("range(cuda.grid(1), x.size,", "range(cuda.grid(1), min(x.size, 3000),")),
    wrong("an even number of elements", ("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size // 2 * 2,")),
    wrong("squares in half precision", ("total += apart * apart", "total += np.float32(np.float16(apart * apart))")),
    wrong("the last of many elements", ("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size - x.size // 2500,")),
    wrong(
        "a fence in the first blocks alone",
        (
            "        cuda.threadfence()\n        before",
            "        if cuda.blockIdx.x < 40:\n            cuda.threadfence()\n        before",
        ),
    ),
)

SHORTCUTS = (
    shortcut("the first block does everything", cell=FIRST_BLOCK_ALONE),
    shortcut(
        "each block adds to the output",
        (
            "        cuda.threadfence()\n        before",
            "        cuda.atomic.add(out, 0, total)\n        cuda.threadfence()\n        before",
        ),
    ),
    shortcut(
        "all blocks but the last wait for nobody",
        ("before == cuda.gridDim.x - 1", "cuda.blockIdx.x == cuda.gridDim.x - 1"),
    ),
    shortcut(
        "one thread adds all",
        cell="""@cuda.jit
def one_launch(x, y, sums, arrived, out):
    is_last = cuda.shared.array(1, np.int32)
    lane = cuda.threadIdx.x
    total = np.float32(0)
    if cuda.grid(1) == 0:
        for i in range(x.size):
            apart = x[i] - y[i]
            total += apart * apart
    if lane == 0:
        sums[cuda.blockIdx.x] = total
        cuda.threadfence()
        before = cuda.atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))
        is_last[0] = before == cuda.gridDim.x - 1
        cuda.threadfence()
        if is_last[0]:
            total = np.float32(0)
            for block in range(cuda.gridDim.x):
                total += sums[block]
            out[0] = total
""",
    ),
    shortcut(
        "one block adds all",
        ("range(cuda.grid(1), x.size, cuda.gridsize(1))", "range(cuda.grid(1), x.size * (cuda.blockIdx.x == 0), 32)"),
    ),
)

"""Other answers to exercise 04.1."""

from . import Variant

_FENCE = "        cuda.threadfence()\n"

_COUNT = "        before = cuda.atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))\n"

VARIANTS = (
    Variant("the bug itself", "race", ((_FENCE, ""),)),
    Variant("the fence after the count", "race", ((_FENCE + _COUNT, _COUNT + _FENCE),)),
    Variant("a fence for the block alone", "race", ((_FENCE, "        cuda.threadfence_block()\n"),)),
    Variant("a barrier of one lane in its place", "barrier", ((_FENCE, "        cuda.syncthreads()\n"),)),
    Variant("every block takes itself for the last", "race", (("before == cuda.gridDim.x - 1", "True"),)),
    Variant(
        "the first block that comes adds up",
        "race",
        (("before == cuda.gridDim.x - 1", "before == 0"),),
    ),
    Variant(
        "the counter is left standing",
        "result",
        (("atomic.inc(arrived, 0, np.uint32(cuda.gridDim.x - 1))", "atomic.add(arrived, 0, np.uint32(1))"),),
    ),
    Variant("half of the elements", "result", (("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size // 2,"),)),
    Variant("each block takes all", "result", (("range(cuda.grid(1),", "range(lane,"), ("cuda.gridsize(1)", "32"))),
    Variant(
        "as many sums as lanes",
        "result",
        (
            ("        for block in range(lane, cuda.gridDim.x, 32):\n", "        if lane < cuda.gridDim.x:\n"),
            ("total += sums[block]", "total += sums[lane]"),
        ),
    ),
    Variant(
        "one block goes through all elements again",
        "budget",
        (
            ("    if is_last[0]:\n", "    if cuda.blockIdx.x == 0:\n"),
            ("range(lane, cuda.gridDim.x, 32)", "range(lane, x.size, 32)"),
            ("total += sums[block]", "total += (x[block] - y[block]) * (x[block] - y[block])"),
        ),
    ),
    Variant("another fence beside it", "solved", ((_FENCE, 2 * _FENCE),)),
    Variant("the fence of all lanes", "solved", ((_FENCE, "    cuda.threadfence()\n    if lane == 0:\n"),)),
)

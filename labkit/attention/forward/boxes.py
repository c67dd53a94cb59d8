"""TMA boxes of rows: loads by kernels, and the arguments of the steps that use them.

A row of a box is 128 bytes, 64 elements of head_dim. Elements past the end of an operand are zeros.
"""

from functools import cache

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words
from labkit.attention.operands import check_rows, exp2_scale, pad_head_dim, size_arguments
from labkit.attention.problem import AttentionForward, Layout
from labkit.formats import Format

EXAMPLES = (  # tested sizes: batch, heads, queries, head_dim, keys, kv_heads, causal, window, scale, layout, hard
    (1, 2, 70, 64, 70, 1, True),
    (1, 6, 33, 40, 130, 2, False, None, None, "BSHD"),
    (2, 2, 80, 64, 300, 1, True, 40, 0.2),
    (1, 1, 40, 128, 300, 1, False, None, -0.1, "BHSD", "rising"),
    (1, 1, 270, 64, 140, 1, True, None, None, "BHSD", "huge"),
)
BOX = 32  # words of a row of a box
ROW_BYTES = 128
HEADS_FIRST = True  # whether the layout is BHSD, not BSHD


@cuda.jit(device=True)
def box_index(batch, head, position, word):
    """Index of the first element of a box."""
    if HEADS_FIRST:
        return batch, head, position, word
    return batch, position, head, word


@cuda.jit(device=True)
def load_boxes(tiles, stage, tensor_map, batch, head, position, full):
    """Issue TMA loads of some rows, from a position on, to a stage whose barrier expects their bytes."""
    ptx.mbarrier_expect(full, stage, tiles.shape[1] * tiles.shape[2] * ROW_BYTES)
    for box in range(tiles.shape[1]):
        ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, box_index(batch, head, position, box * BOX), full, stage)


def check_operands(problem: AttentionForward, Q, K, V, O, lse, format: Format, max_head_dim: int) -> int:
    """Check operands, and return head_dim padded to whole boxes.

    Raise TypeError or ValueError if an array is not as the problem has it, or TMA cannot load it. Raise TooLarge if
    head_dim is above the maximum of the step.
    """
    problem.check(Q, K, V, O, lse, dtype=format.dtype)
    check_rows(problem.head_dim, format.itemsize)
    return pad_head_dim(problem, max_head_dim)


def specialise_kernel(kernel, problem: AttentionForward, format: Format, **sizes: int):
    """The kernel for a format, the sign of the scale, a layout, and sizes of its tiles."""
    sign = -1 if problem.factor < 0 else 1
    return _specialised(kernel, FORMAT=format.number, SIGN=sign, HEADS_FIRST=problem.layout == "BHSD", **sizes)


_specialised = cache(specialise)


def box_map(X, rows: int, layout: Layout) -> ptx.TensorMap:
    """Tensor map of an array in boxes: so many rows of one head."""
    return ptx.TensorMap(as_words(X), (1, 1, rows, BOX) if layout == "BHSD" else (1, rows, 1, BOX))


def make_arguments(problem: AttentionForward, Q, K, V, O, lse, q_rows: int, k_rows: int, o_rows: int) -> tuple:
    """Arguments of a kernel: maps of Q, K, V and O with so many rows per box, lse, sizes, and the scale for exp2."""
    rows = q_rows, k_rows, k_rows, o_rows
    boxes = [box_map(X, count, problem.layout) for X, count in zip((Q, K, V, O), rows, strict=True)]
    return *boxes, lse, *size_arguments(problem), exp2_scale(problem)

"""What the steps that take whole tiles ask of their operands, and how their kernels get these: as boxes of rows.

A row of a box is 128 bytes, 64 numbers of head_dim; numbers that the operands do not have are zeros.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words
from labkit.attention.operands import check_rows, exp2_scale
from labkit.attention.problem import AttentionForward
from labkit.formats import Format
from labkit.ladder import TooLarge

EXAMPLES = (
    (1, 2, 70, 64, 70, 1, True),
    (1, 6, 33, 40, 130, 2, False, None, None, "BSHD"),
    (2, 2, 80, 64, 300, 1, True, 40, 0.2),
    (1, 1, 40, 128, 300, 1, False, None, -0.1, "BHSD", "rising"),
    (1, 1, 270, 64, 140, 1, True, None, None, "BHSD", "huge"),
)
BOX = 32  # words of a row of a box
ROW_BYTES, HALF = 128, 64  # and numbers of it
HEADS_FIRST = True  # of the axes of Q, K, V and O: BHSD, not BSHD


@cuda.jit(device=True)
def box_index(batch, head, position, word):
    """Where a box begins."""
    if HEADS_FIRST:
        return batch, head, position, word
    return batch, position, head, word


@cuda.jit(device=True)
def load_boxes(tiles, stage, tensor_map, batch, head, position, full):
    """Begins to fetch the boxes of some rows, from a position on, to a stage, whose barrier is told how much comes."""
    ptx.mbarrier_expect(full, stage, tiles.shape[1] * tiles.shape[2] * ROW_BYTES)
    for box in range(tiles.shape[1]):
        ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, box_index(batch, head, position, box * BOX), full, stage)


def check_operands(problem: AttentionForward, Q, K, V, O, lse, format: Format, max_head_dim: int) -> int:
    """How many numbers of head_dim whole boxes have, of a step that takes so many at most.

    Raises
    ------
    TypeError, ValueError
        An array is not as the problem has it, or the copy engine does not move it.
    TooLarge
        Its rows are too wide.
    """
    problem.check(Q, K, V, O, lse, dtype=format.dtype)
    check_rows(problem.head_dim, format.itemsize)
    if problem.head_dim > max_head_dim:
        raise TooLarge(f"head_dim is {problem.head_dim}, and this step takes up to {max_head_dim}")
    return -(-problem.head_dim // HALF) * HALF


def adapt_kernel(kernel, problem: AttentionForward, format: Format, **sizes: int):
    """The kernel for a format, the sign of the scale, a layout, and sizes of its tiles."""
    is_negative, _ = exp2_scale(problem)
    return _specialised(
        kernel, FORMAT=format.number, SIGN=-1 if is_negative else 1, HEADS_FIRST=problem.layout == "BHSD", **sizes
    )


_specialised = cache(specialise)


def make_arguments(problem: AttentionForward, Q, K, V, O, lse, q_rows: int, k_rows: int, o_rows: int) -> tuple:
    """What kernels take: maps of Q, K, V and O with so many rows a box; lse; keys, group, band and scale.

    The scale is that of powers of two, and has no sign.
    """
    rows = q_rows, k_rows, k_rows, o_rows
    boxes = [
        ptx.TensorMap(as_words(X), (1, 1, count, BOX) if problem.layout == "BHSD" else (1, count, 1, BOX))
        for X, count in zip((Q, K, V, O), rows, strict=True)
    ]
    _, scale = exp2_scale(problem)
    window = tuple(map(np.int32, problem.window_bounds))
    return *boxes, lse, np.int32(problem.keys), np.int32(problem.heads_per_kv), window, scale

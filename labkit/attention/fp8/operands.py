"""What the steps of the fp8 ladder ask of their operands, and how their kernels get these: as boxes of rows.

A row of a box is 128 bytes: 128 numbers of Q or K, or 128 keys of V. Numbers that the operands do not have are zeros.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshaped
from labkit.attention.fp8.problem import BLOCK, AttentionFP8
from labkit.attention.operands import check_rows, exp2_scale
from labkit.formats import Format

MAX_HEAD_DIM = 128  # numbers of head_dim
BOX, HALF = 32, 64  # words of a row of a box, and numbers of bfloat16 in it
BOX_BYTES = 128
STORED_ROWS = 64  # rows of O that a warpgroup stores


@cuda.jit(device=True)
def load_boxes(tiles, stage, tensor_map, coordinates, full):
    """Begins to fetch a box to a stage, whose barrier is told how much comes."""
    ptx.mbarrier_expect(full, stage, tiles.shape[1] * BOX_BYTES)
    ptx.tma_load(tiles, (stage, 0, 0), tensor_map, coordinates, full, stage)


def check_operands(problem: AttentionFP8, Q, K, V, q_scale, k_scale, v_scale, O, lse, format: Format) -> int:
    """How many rows tiles of V have: head_dim, and zeros.

    Raises
    ------
    TypeError, ValueError
        An array is not as the problem has it, or the copy engine does not move it, or its rows are too wide.
    """
    takes = {"layout": ("BHSD",)}
    problem.check(Q, K, V, q_scale, k_scale, v_scale, O, lse, takes=takes, dtype=format.dtype)
    check_rows(problem.head_dim, format.itemsize)
    if problem.head_dim > MAX_HEAD_DIM:
        raise ValueError(f"head_dim is {problem.head_dim}, and this step takes up to {MAX_HEAD_DIM}: use more heads")
    return -(-problem.head_dim // HALF) * HALF


def adapt_kernel(kernel, problem: AttentionFP8, **sizes: int):
    """The kernel for the sign of the scale, and sizes of its tiles."""
    is_negative, _ = exp2_scale(problem)
    return _specialised(kernel, SIGN=-1 if is_negative else 1, **sizes)


_specialised = cache(specialise)


def _merge_heads(X):
    """An array whose heads of all of the batch are one axis."""
    return reshaped(X, X.shape[0] * X.shape[1], *X.shape[2:])


def make_arguments(problem: AttentionFP8, Q, K, V, q_scale, k_scale, v_scale, O, lse, width: int) -> tuple:
    """What kernels take: maps of Q, K and V, their scales, O's map; lse; keys, group, band and scale.

    To a kernel the heads of all of the batch are one axis. The scale is that of powers of two, and has no sign.
    """
    boxes = [
        ptx.TensorMap(as_words(_merge_heads(X)), (1, rows, BOX))
        for X, rows in zip((Q, K, V, O), (BLOCK, BLOCK, width, STORED_ROWS), strict=True)
    ]
    _, scale = exp2_scale(problem)
    window = tuple(map(np.int32, problem.window_bounds))
    *of_codes, of_o = boxes
    *scales, lse = map(_merge_heads, (q_scale, k_scale, v_scale, lse))
    return *of_codes, *scales, of_o, lse, np.int32(problem.keys), np.int32(problem.heads_per_kv), window, scale

"""What the steps of the fp8 ladder ask of their operands, and how their kernels get these: as boxes of rows.

A row of a box is 128 bytes: 128 numbers of Q or K, or 128 keys of V. Numbers that the operands do not have are zeros.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshape
from labkit.attention.fp8.problem import BLOCK, AttentionFP8
from labkit.attention.operands import check_rows, scale_of
from labkit.formats import Format

MOST = 128  # numbers of head_dim
BOX, HALF = 32, 64  # words of a row of a box, and numbers of bfloat16 in it
BOX_BYTES = 128
STORED = 64  # rows of O that a warpgroup stores


@cuda.jit(device=True)
def fetch(tiles, stage, tensor_map, place, full):
    """Begins to fetch a box to a stage, whose barrier is told how much comes."""
    ptx.mbarrier_expect(full, stage, tiles.shape[1] * BOX_BYTES)
    ptx.tma_load(tiles, (stage, 0, 0), tensor_map, place, full, stage)


def check(problem: AttentionFP8, Q, K, V, q_scale, k_scale, v_scale, O, lse, format: Format) -> int:
    """How many rows tiles of V have: head_dim, and zeros.

    Raises
    ------
    TypeError, ValueError
        An array is not as the problem has it, or the copy engine does not move it, or its rows are too wide.
    """
    takes = {"layout": ("BHSD",)}
    problem.check(Q, K, V, q_scale, k_scale, v_scale, O, lse, takes=takes, dtype=format.dtype)
    check_rows(problem.head_dim, format.itemsize)
    if problem.head_dim > MOST:
        raise ValueError(f"head_dim is {problem.head_dim}, and this step takes up to {MOST}: use more heads")
    return -(-problem.head_dim // HALF) * HALF


def in_sizes(kernel, problem: AttentionFP8, **sizes: int):
    """The kernel for the sign of the scale, and sizes of its tiles."""
    turns, _ = scale_of(problem)
    return _specialised(kernel, SIGN=-1 if turns else 1, **sizes)


_specialised = cache(specialise)


def _by_plane(X):
    """An array whose heads of all of the batch are one axis."""
    return reshape(X, X.shape[0] * X.shape[1], *X.shape[2:])


def arguments(problem: AttentionFP8, Q, K, V, q_scale, k_scale, v_scale, O, lse, width: int) -> tuple:
    """What kernels take: maps of Q, K and V, their scales, O's map; lse; keys, group, band and scale.

    To a kernel the heads of all of the batch are one axis. The scale is that of powers of two, and has no sign.
    """
    boxes = [
        ptx.TensorMap(as_words(_by_plane(X)), (1, rows, BOX))
        for X, rows in zip((Q, K, V, O), (BLOCK, BLOCK, width, STORED), strict=True)
    ]
    _, scale = scale_of(problem)
    band = tuple(map(np.int32, problem.band))
    *of_codes, of_o = boxes
    *scales, lse = map(_by_plane, (q_scale, k_scale, v_scale, lse))
    return *of_codes, *scales, of_o, lse, np.int32(problem.keys), np.int32(problem.group), band, scale

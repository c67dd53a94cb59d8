"""TMA boxes of e4m3 rows: loads by kernels, and the arguments of the steps of the fp8 ladder.

A row of a box is 128 bytes: 128 elements of Q or K, or 128 keys of V. Elements past the end of an operand are zeros.
"""

from functools import cache

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshape
from labkit.attention.fp8.problem import BLOCK, AttentionFP8
from labkit.attention.operands import check_rows, exp2_scale, size_arguments
from labkit.formats import Format

MAX_HEAD_DIM = 128
BOX, ROW_ELEMENTS = 32, 64  # words of a row of a box, and elements of bfloat16
BOX_BYTES = 128
STORED_ROWS = 64  # rows of O that a warpgroup stores


@cuda.jit(device=True)
def load_boxes(tiles, stage, tensor_map, coordinates, full):
    """Issue a TMA load of a box to a stage, whose barrier expects its bytes."""
    ptx.mbarrier_expect(full, stage, tiles.shape[1] * BOX_BYTES)
    ptx.tma_load(tiles, (stage, 0, 0), tensor_map, coordinates, full, stage)


def check_operands(problem: AttentionFP8, Q, K, V, q_scale, k_scale, v_scale, O, lse, format: Format) -> int:
    """Check operands, and return the rows of tiles of V: head_dim, padded with zeros.

    Raise TypeError or ValueError if an array is not as the problem has it, TMA cannot load it, or its rows are too
    wide.
    """
    layouts = {"layout": ("BHSD",)}
    problem.check(Q, K, V, q_scale, k_scale, v_scale, O, lse, supported=layouts, dtype=format.dtype)
    check_rows(problem.head_dim, format.itemsize)
    if problem.head_dim > MAX_HEAD_DIM:
        raise ValueError(f"head_dim is {problem.head_dim}, and this step takes up to {MAX_HEAD_DIM}: use more heads")
    return -(-problem.head_dim // ROW_ELEMENTS) * ROW_ELEMENTS


def specialise_kernel(kernel, problem: AttentionFP8, **sizes: int):
    """The kernel for the sign of the scale, and sizes of its tiles."""
    return _specialised(kernel, SIGN=-1 if problem.factor < 0 else 1, **sizes)


_specialised = cache(specialise)


def _merge_heads(X):
    """View an array with its batch and heads as one axis."""
    return reshape(X, X.shape[0] * X.shape[1], *X.shape[2:])


def make_arguments(problem: AttentionFP8, Q, K, V, q_scale, k_scale, v_scale, O, lse, width: int) -> tuple:
    """Arguments of a kernel, with batch and heads as one axis: maps, scales, lse, sizes and scale."""
    *maps, o_map = (
        ptx.TensorMap(as_words(_merge_heads(X)), (1, rows, BOX))
        for X, rows in zip((Q, K, V, O), (BLOCK, BLOCK, width, STORED_ROWS), strict=True)
    )
    *scales, lse = map(_merge_heads, (q_scale, k_scale, v_scale, lse))
    return *maps, *scales, o_map, lse, *size_arguments(problem), exp2_scale(problem)

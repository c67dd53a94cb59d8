"""Operands as kernels of attention take them: matrices of rows of head_dim, with strides in rows."""

import numpy as np

from labkit.arrays.addresses import VECTOR_BYTES, address_of
from labkit.arrays.views import as_strided, as_words
from labkit.attention.problem import Attention, Layout, as_bhsd
from labkit.ladder import TooLarge

MAX_ROWS = 2**31  # of an array, for 32-bit row indices
TINY = 1e-30  # least size of the scale that kernels get
LOG2_E = 1.4426950408889634
SIGNS = 0x80008000  # sign bits of two 16-bit elements in a word
RowStrides = tuple[np.int32, np.int32, np.int32]  # of batch, head and position, in rows


def as_rows(name: str, X, layout: Layout) -> tuple:
    """View an array as a matrix of rows of head_dim; return it, and the strides of batch, head and position in rows.

    Raise ValueError if rows have gaps, or a stride is no multiple of a row. Raise TooLarge if kernels would count the
    rows in more than 32 bits.
    """
    *sides, width = as_bhsd(X, layout).shape
    *strides, step = as_bhsd(X, layout).strides
    size = X.dtype.itemsize
    if width > 1 and step != size:
        raise ValueError(f"elements of a row of {name} lie apart in memory: copy it to an array without gaps")
    strides = [0 if length == 1 else stride for length, stride in zip(sides, strides)]
    if any(stride < 0 or stride % (width * size) for stride in strides):
        raise ValueError(
            f"rows of {name} are {', '.join(map(str, strides))} bytes apart, and steps find them at multiples of a row "
            f"of {width * size} bytes: copy it to an array without gaps"
        )
    strides = [stride // (width * size) for stride in strides]
    rows = 1 + sum((length - 1) * stride for length, stride in zip(sides, strides))
    if rows >= MAX_ROWS:
        raise TooLarge(f"{name} spans {rows} rows, and this step counts them below {MAX_ROWS}")
    return as_strided(X, (rows, width), (width * size, size)), tuple(map(np.int32, strides))


def as_matrices(problem: Attention, *arrays, words: bool = False) -> tuple[tuple, tuple[RowStrides, ...]]:
    """View all arrays in the problem's format as matrices of rows, or of 32-bit words; return them and their strides.

    Raise what `as_rows` does, and ValueError if rows of words do not begin at multiples of 16 bytes.
    """
    names = [name for name in problem.ARRAYS if name not in (*problem.float32_arrays, *problem.int32_arrays)]
    matrices, strides = zip(*(as_rows(name, X, problem.layout) for name, X in zip(names, arrays, strict=True)))
    if words:
        for name, X in zip(names, matrices):
            check_rows(X.shape[1], X.dtype.itemsize)
            check_alignment(name, X)
    return tuple(map(as_words, matrices)) if words else matrices, strides


def exp2_scale(problem: Attention) -> np.float32:
    """The positive factor that makes exponents of 2 of the scores.

    A larger score must be a larger exponent, so kernels change the sign of Q if the scale is negative. A scale of zero
    would make NaN of masked scores, which are minus infinity; with a tiny one all weights are 1 as well.
    """
    return np.float32(max(abs(problem.factor), TINY) * LOG2_E)


def size_arguments(problem: Attention) -> tuple:
    """Number of keys, heads of Q per head of K, and window bounds, as kernels take them."""
    return np.int32(problem.keys), np.int32(problem.heads_per_kv), tuple(map(np.int32, problem.window_bounds))


def pad_head_dim(problem: Attention, limit: int) -> int:
    """Return head_dim rounded up to a multiple of 64; raises TooLarge above a limit."""
    if problem.head_dim > limit:
        raise TooLarge(f"head_dim is {problem.head_dim}, and this step takes up to {limit}")
    return -(-problem.head_dim // 64) * 64


def are_aligned(*matrices) -> bool:
    """Whether rows of these matrices are whole 16-byte vectors, and aligned."""
    return not any(address_of(X) % VECTOR_BYTES or X.strides[0] % VECTOR_BYTES for X in matrices)


def check_rows(head_dim: int, itemsize: int) -> None:
    """Raise ValueError if rows are not whole vectors of 16 bytes."""
    per_vector = VECTOR_BYTES // itemsize
    if head_dim % per_vector:
        raise ValueError(
            f"head_dim is {head_dim}, but copies take {VECTOR_BYTES} bytes at a time: "
            f"make it a multiple of {per_vector}, with zeros at the end, and give the scale that you want"
        )


def check_alignment(name: str, X) -> None:
    """Raise ValueError if an array of the device does not begin at a multiple of 16 bytes."""
    if address_of(X) % VECTOR_BYTES:
        raise ValueError(
            f"{name} begins {address_of(X) % VECTOR_BYTES} bytes after a multiple of {VECTOR_BYTES}: copy it"
        )

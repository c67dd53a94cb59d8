"""How kernels of attention see Q, K, V and O: as matrices of rows of head_dim, and how many rows things are apart."""

import numpy as np

from labkit.arrays.addresses import VECTOR_BYTES, address_of
from labkit.arrays.views import as_strided, as_words
from labkit.attention.problem import Attention, Layout, as_heads
from labkit.ladder import TooLarge

MOST_ROWS = 2**31
TINY = 1e-30
LOG2_E = 1.4426950408889634
Apart = tuple[np.int32, np.int32, np.int32]


def as_rows(name: str, X, layout: Layout) -> tuple:
    """An array's memory as a matrix of rows of head_dim, and how many rows batches, heads and positions are apart.

    Raises
    ------
    ValueError
        Rows have gaps, or do not lie at multiples of a row.
    TooLarge
        Kernels would count the rows in more than 32 bits.
    """
    *sides, width = as_heads(X, layout).shape
    *strides, step = as_heads(X, layout).strides
    size = X.dtype.itemsize
    if width > 1 and step != size:
        raise ValueError(f"elements of a row of {name} lie apart in memory: copy it to an array without gaps")
    strides = [0 if length == 1 else stride for length, stride in zip(sides, strides)]
    if any(stride < 0 or stride % (width * size) for stride in strides):
        raise ValueError(
            f"rows of {name} are {', '.join(map(str, strides))} bytes apart, and steps find them at multiples of a row "
            f"of {width * size} bytes: copy it to an array without gaps"
        )
    apart = [stride // (width * size) for stride in strides]
    rows = 1 + sum((length - 1) * each for length, each in zip(sides, apart))
    if rows >= MOST_ROWS:
        raise TooLarge(f"{name} spans {rows} rows, and this step counts them below {MOST_ROWS}")
    return as_strided(X, (rows, width), (width * size, size)), tuple(map(np.int32, apart))


def matrices(problem: Attention, *arrays, words: bool = False) -> tuple[tuple, tuple[Apart, ...]]:
    """All arrays in the problem's format as matrices of rows, or of 32-bit words of these, and how far apart they are.

    Raises
    ------
    ValueError
        As `as_rows`; or rows of words do not begin at multiples of 16 bytes.
    """
    names = [name for name in problem.ARRAYS if name not in (*problem.float32_arrays, *problem.int32_arrays)]
    found = [as_rows(name, X, problem.layout) for name, X in zip(names, arrays, strict=True)]
    if words:
        for name, (X, _) in zip(names, found):
            check_rows(X.shape[1], X.dtype.itemsize)
            check_begin(name, X)
    return tuple(as_words(X) if words else X for X, _ in found), tuple(apart for _, apart in found)


def scale_of(problem: Attention) -> tuple[bool, np.float32]:
    """Whether the signs of Q change before, and what then scales scores to exponents of 2, above zero.

    A larger score must be a larger exponent, so that a scale below zero turns the signs of Q. A scale of zero would
    make NaN of masked scores, which are minus infinity; with a tiny one all weights are 1 as well.
    """
    return problem.factor < 0, np.float32(max(abs(problem.factor), TINY) * LOG2_E)


def in_pieces(*rows) -> bool:
    """Whether rows of these matrices are whole pieces of 16 bytes, and begin at such."""
    return not any(address_of(X) % VECTOR_BYTES or X.strides[0] % VECTOR_BYTES for X in rows)


def check_rows(head_dim: int, itemsize: int) -> None:
    """Refuses rows that are no whole pieces of 16 bytes.

    Raises
    ------
    ValueError
        So it is.
    """
    each = VECTOR_BYTES // itemsize
    if head_dim % each:
        raise ValueError(
            f"head_dim is {head_dim}, but copies take {VECTOR_BYTES} bytes at a time: "
            f"make it a multiple of {each}, with zeros at the end, and give the scale that you want"
        )


def check_begin(name: str, X) -> None:
    """Refuses an array of the device that does not begin at a multiple of 16 bytes.

    Raises
    ------
    ValueError
        So it is.
    """
    if address_of(X) % VECTOR_BYTES:
        raise ValueError(
            f"{name} begins {address_of(X) % VECTOR_BYTES} bytes after a multiple of {VECTOR_BYTES}: copy it"
        )

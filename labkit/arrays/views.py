"""Views of an array's memory under other shapes and strides, like NumPy's, also for device arrays."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import address_of, extent, has_c_order
from labkit.layout import c_strides
from labkit.simulator.host import DeviceArray, strided

WORD_BYTES = 4


@dataclass(frozen=True)
class OperandSlot:
    """Placeholder for the memory of an operand, by its number, in all views of it."""

    number: int


@dataclass(frozen=True, eq=False)
class View:
    """Memory of a GPU under another shape and strides, with all that tensor maps and numba's launches need.

    Making a numba array takes time, and most views of a call never become one.
    """

    owner: object  # keeps the memory alive, or represents an operand that does
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    dtype: np.dtype
    address: int

    @cached_property
    def __cuda_array_interface__(self):
        return {
            "data": (self.address, False),
            "shape": self.shape,
            "strides": None if has_c_order(self) else self.strides,
            "typestr": self.dtype.str,
            "version": 3,
        }

    @property
    def size(self) -> int:
        return prod(self.shape)

    def copy_to_host(self, ary=None, stream=0):
        return cuda.as_cuda_array(self).copy_to_host(ary, stream)


def byte_strides(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """Return the strides in bytes of an array in C order."""
    return tuple(stride * dtype.itemsize for stride in c_strides(shape))


def as_strided(X, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, dtype=None, begin_byte: int = 0):
    """View the memory of an array under another shape, strides in bytes (None for C order), and type."""
    dtype = X.dtype if dtype is None else np.dtype(dtype)
    strides = byte_strides(shape, dtype) if strides is None else strides
    if isinstance(X, np.ndarray):
        return strided(X, shape, strides, dtype, begin_byte)
    if isinstance(X, DeviceArray):
        return X.strided(shape, strides, dtype, begin_byte)
    owner = X.owner if isinstance(X, View) else X
    return View(owner, tuple(shape), tuple(strides), dtype, address_of(X) + begin_byte)


def reshape(X, *shape: int):
    """View an array in C order under another shape.

    Raise ValueError if the array is not in C order.
    """
    if not has_c_order(X):
        raise ValueError(
            f"an array of shape {tuple(X.shape)} is not in C order, and is read as rows of memory here: "
            "pass np.ascontiguousarray of it, which is a copy"
        )
    if isinstance(X, np.ndarray):
        return X.reshape(shape)
    return as_strided(X, shape)


def flatten_memory(X, dtype=None) -> tuple:
    """View all memory from the first to the last byte of X as a vector; return it, and the place of X's first element.

    `dtype` is the vector's type, X's by default; X is then made of whole elements of it.
    """
    dtype = X.dtype if dtype is None else np.dtype(dtype)
    begin, end = extent(X.shape, X.strides, X.dtype.itemsize)
    return as_strided(X, ((end - begin) // dtype.itemsize,), dtype=dtype, begin_byte=begin), -begin // dtype.itemsize


def as_matrix(name: str, X):
    """View all rows of an array, which have one distance in memory, as one matrix.

    Raise ValueError if the distances of rows differ, or elements of a row are not contiguous.
    """
    *outer, columns = X.shape
    *outer_strides, step = X.strides
    size, rows, row_stride, is_even = X.dtype.itemsize, 1, None, True
    for length, stride in zip(reversed(outer), reversed(outer_strides)):
        if length != 1:
            row_stride = stride if row_stride is None else row_stride
            is_even &= stride == row_stride * rows
            rows *= length
    row_stride = columns * size if row_stride is None else row_stride
    if rows * columns and not (is_even and row_stride >= columns * size and (columns == 1 or step == size)):
        raise ValueError(f"rows of {name} have unequal distances in memory, or elements of a row have gaps: copy it")
    return as_strided(X, (rows, columns), (row_stride, size))


def flatten(X):
    """View an array in C order as a vector."""
    return reshape(X, prod(X.shape))


def select_matrix(X, z: int):
    """View one matrix of a batch; a matrix is returned as it is."""
    if len(X.shape) == 2:
        return X
    return as_strided(X, X.shape[1:], X.strides[1:], begin_byte=z * X.strides[0])


def slice_rows(X, first: int, max_rows: int):
    """View up to `max_rows` rows of a matrix, or matrices of a batch, from the first on."""
    if X.shape[0] <= max_rows:
        return X
    rows = min(max_rows, X.shape[0] - first)
    if isinstance(X, np.ndarray):
        return X[first : first + rows]
    return as_strided(X, (rows, *X.shape[1:]), X.strides, begin_byte=first * X.strides[0])


def row(X, number: int):
    """View a row of a matrix as a vector."""
    return as_strided(X, X.shape[1:], X.strides[1:], begin_byte=number * X.strides[0])


def split_columns(X, parts: int):
    """View a matrix, its rows divided into equal parts, as a batch of one matrix per part."""
    rows, cols = X.shape
    row_stride, col_stride = X.strides
    return as_strided(X, (parts, rows, cols // parts), (cols // parts * col_stride, row_stride, col_stride))


def split_rows(X, parts: int):
    """View a matrix, its columns divided into equal parts, as a batch of one matrix per part."""
    return transpose(split_columns(transpose(X), parts))


def transpose(X):
    """View the transpose of each matrix."""
    if isinstance(X, np.ndarray):
        return X.swapaxes(-1, -2)
    *batch, rows, cols = X.shape
    *outer, row_stride, col_stride = X.strides
    return as_strided(X, (*batch, cols, rows), (*outer, col_stride, row_stride))


def with_plain_strides(X):
    """View the array with contiguous strides along axes of length 1, and a batch of one matrix as a matrix.

    A batch that repeats one matrix, with a stride of 0, becomes that matrix.
    """
    *_, rows, cols = X.shape
    *_, row_stride, col_stride = X.strides
    size = X.dtype.itemsize
    if cols == 1:
        col_stride = rows * size if row_stride == size else size
    if rows == 1:
        row_stride = cols * size if col_stride == size else size
    is_one_matrix = len(X.shape) == 3 and (X.shape[0] == 1 or X.strides[0] == 0)
    if (row_stride, col_stride) == tuple(X.strides[-2:]) and not is_one_matrix:
        return X
    batch = slice(1, 1) if is_one_matrix else slice(0, -2)
    return as_strided(X, (*X.shape[batch], rows, cols), (*X.strides[batch], row_stride, col_stride))


def merge_batches(left, C):
    """View two batches as one matrix each, of all rows, if rows have one distance in both; else return them."""
    arrays = left, C
    if any(len(X.shape) != 3 for X in arrays):
        return arrays
    steps = [X.strides[0] if X.shape[1] == 1 else X.strides[1] for X in arrays]  # of rows in the one matrix
    if any(X.strides[0] != X.shape[1] * step for X, step in zip(arrays, steps)):
        return arrays
    return tuple(
        as_strided(X, (X.shape[0] * X.shape[1], X.shape[2]), (step, X.strides[2])) for X, step in zip(arrays, steps)
    )


def as_batch(X):
    """View a matrix as a batch of one; a batch is returned as it is."""
    if len(X.shape) >= 3:
        return X
    return as_strided(X, (1, *X.shape), (X.shape[0] * X.strides[0], *X.strides))


def as_bits(X):
    """View the elements as unsigned integers of the same size."""
    bits = np.dtype(f"u{X.dtype.itemsize}")
    if X.dtype == bits:
        return X
    return as_strided(X, X.shape, X.strides, bits)


def as_words(X):
    """View an array as 32-bit words, each with the bytes of neighbours in a row; rows may have gaps between them."""
    if isinstance(X, np.ndarray):
        return X.view(np.uint32)
    *outer, length = X.shape
    return as_strided(X, (*outer, length * X.dtype.itemsize // WORD_BYTES), (*X.strides[:-1], WORD_BYTES), np.uint32)

"""Checks of the operands of tensor-core steps, and kernels specialised for a format."""

from functools import cache

from labkit import specialise
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.formats import FP32, Format
from labkit.gemm.problem import check_matrices


def check_operands(A, B, C, format: Format, by_library: bool = False) -> None:
    """Check the arrays of C = A @ B.T.

    Rows of C may be padded to the next multiple of 16 bytes. With `by_library` a 16-bit A or B may be MN-major, one of
    them may be padded with zeros along k, to the next 16 bytes, and C may be of float32.

    Raises
    ------
    TypeError
        An array cannot hold the format.
    ValueError
        The shapes do not fit, or rows do not begin at multiples of 16 bytes.
    """
    check_matrices(A, B, C)
    if not A.dtype == B.dtype == format.dtype:
        raise TypeError(
            f"A holds {A.dtype} and B {B.dtype}, but arrays of {format} hold {format.dtype}: "
            f"use labkit.formats, or another format"
        )
    if C.dtype != format.result.dtype and not (by_library and C.dtype == FP32.dtype):
        raise TypeError(f"C holds {C.dtype}, but products of {format} are stored as {format.result.dtype}")
    (M, K), N = A.shape, B.shape[0]
    per_vector = VECTOR_BYTES // A.dtype.itemsize
    if B.shape[1] != K and not (by_library and -(-K // per_vector) == -(-B.shape[1] // per_vector)):
        raise ValueError(f"A has {K} columns and B has {B.shape[1]}: for A @ B.T both run along k")
    if C.shape[0] != M or not N <= C.shape[1] < N + VECTOR_BYTES // C.dtype.itemsize:
        raise ValueError(f"C is {C.shape[0]} x {C.shape[1]}, but A @ B.T is {M} x {N}: make C of that shape")
    for name, X in (("A", A), ("B", B), ("C", C)):
        _check_lines(name, X, by_library and X is not C and X.dtype.itemsize == 2)


def _check_lines(name, X, may_be_columns):
    """Raise ValueError where copies of 16 bytes cannot follow the rows of X, or the columns of an MN-major X."""
    size = X.dtype.itemsize
    line, length, stride = "rows", X.shape[1], X.strides[0]
    if may_be_columns and X.strides[0] == size != X.strides[1]:
        line, length, stride = "columns", X.shape[0], X.strides[1]
    elif X.strides[1] != size:
        raise ValueError(
            f"{name} has rows whose elements lie apart in memory, but copies take {VECTOR_BYTES} bytes at a "
            f"time: pass np.ascontiguousarray({name}), which is a copy"
        )
    per_vector = VECTOR_BYTES // size
    if length % per_vector:
        raise ValueError(
            f"{name} has {line} of {length} elements, but copies take {VECTOR_BYTES} bytes at a time: "
            f"make {line} a multiple of {per_vector} elements long, with zeros at the end"
        )
    if stride < 0 or stride % VECTOR_BYTES:
        raise ValueError(
            f"{name} has {line} {stride} bytes apart, but copies take {VECTOR_BYTES} bytes at a time: "
            f"let {line} begin at multiples of that"
        )


@cache
def specialise_format(kernel, format: Format):
    """Return the kernel with the constants FORMAT and RESULT of a format."""
    return specialise(kernel, FORMAT=format.number, RESULT=format.result.number)

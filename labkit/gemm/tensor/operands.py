"""What the tensor-core steps ask of their operands."""

from functools import cache

from labkit import specialise
from labkit.arrays.addresses import VECTOR_BYTES
from labkit.formats import Format
from labkit.gemm.problem import check_matrices


def check_operands(A, B, C, format: Format, any_major: bool = False) -> None:
    """Raises where the arrays of C = A @ B.T do not fit the format or one another.

    Rows of C may be longer than B has rows, to the next multiple of 16 bytes. Where a step takes `any_major`, rows of A
    and B, of 16 bits, may be columns in memory; and one may be longer along k, by zeros to the next 16 bytes.

    Raises
    ------
    TypeError
        An array cannot hold the format.
    ValueError
        The shapes do not fit together, or rows do not begin at multiples of 16 bytes.
    """
    check_matrices(A, B, C)
    if not A.dtype == B.dtype == format.dtype:
        raise TypeError(
            f"A holds {A.dtype} and B {B.dtype}, but arrays of {format} hold {format.dtype}: "
            f"use labkit.formats, or another format"
        )
    if C.dtype != format.result.dtype:
        raise TypeError(f"C holds {C.dtype}, but products of {format} are stored as {format.result.dtype}")
    (M, K), N = A.shape, B.shape[0]
    each = VECTOR_BYTES // A.dtype.itemsize
    if B.shape[1] != K and not (any_major and -(-K // each) == -(-B.shape[1] // each)):
        raise ValueError(f"A has {K} columns and B has {B.shape[1]}: for A @ B.T both run along k")
    if C.shape[0] != M or not N <= C.shape[1] < N + VECTOR_BYTES // C.dtype.itemsize:
        raise ValueError(f"C is {C.shape[0]} x {C.shape[1]}, but A @ B.T is {M} x {N}: make C of that shape")
    for name, X in (("A", A), ("B", B), ("C", C)):
        _check_lines(name, X, any_major and X is not C and X.dtype.itemsize == 2)


def _check_lines(name, X, may_be_columns):
    """Raises where copies of 16 bytes cannot follow the rows of X, or its columns if it may lie in these."""
    size = X.dtype.itemsize
    line, length, apart = "rows", X.shape[1], X.strides[0]
    if may_be_columns and X.strides[0] == size != X.strides[1]:
        line, length, apart = "columns", X.shape[0], X.strides[1]
    elif X.strides[1] != size:
        raise ValueError(
            f"{name} has rows whose elements lie apart in memory, but copies take {VECTOR_BYTES} bytes at a "
            f"time: pass np.ascontiguousarray({name}), which is a copy"
        )
    each = VECTOR_BYTES // size
    if length % each:
        raise ValueError(
            f"{name} has {line} of {length} elements, but copies take {VECTOR_BYTES} bytes at a time: "
            f"make {line} a multiple of {each} elements long, with zeros at the end"
        )
    if apart < 0 or apart % VECTOR_BYTES:
        raise ValueError(
            f"{name} has {line} {apart} bytes apart, but copies take {VECTOR_BYTES} bytes at a time: "
            f"let {line} begin at multiples of that"
        )


@cache
def in_format(kernel, format: Format):
    """The kernel for a format, whose number it holds in its constants FORMAT and RESULT."""
    return specialise(kernel, FORMAT=format.number, RESULT=format.result.number)

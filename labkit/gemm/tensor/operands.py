"""What the tensor-core steps multiply: which arrays hold which format, and what a step asks of them."""

from functools import cache

import numpy as np

from labkit import ptx, specialise
from labkit.gemm.problem import check_matrices

ROW_ALIGNMENT_BYTES = 16  # of vector copies and of the copy engine

# A format by the dtype of the arrays that hold it, and the dtype of the result: bfloat16 and e4m3 are held as bits.
FORMATS = {np.dtype(np.uint16): ptx.BF16, np.dtype(np.float16): ptx.FP16, np.dtype(np.uint8): ptx.E4M3}
RESULTS = {ptx.BF16: np.dtype(np.uint16), ptx.FP16: np.dtype(np.float16), ptx.E4M3: np.dtype(np.uint16)}
ROUNDED_TO = {ptx.BF16: ptx.BF16, ptx.FP16: ptx.FP16, ptx.E4M3: ptx.BF16}  # the format of the result


def check_operands(A, B, C) -> int:
    """The format of C = A @ B.T, a number of `labkit.ptx`.

    Raises
    ------
    TypeError
        No format of the tensor cores has such arrays.
    ValueError
        The shapes do not fit together, or rows do not begin at multiples of 16 bytes.
    """
    check_matrices(A, B, C)
    if A.dtype not in FORMATS or B.dtype != A.dtype:
        raise TypeError(
            f"A holds {A.dtype} and B {B.dtype}, but this step multiplies two arrays of uint16 (the bits of bfloat16), "
            "of float16, or of uint8 (the bits of e4m3)"
        )
    number = FORMATS[A.dtype]
    if C.dtype != RESULTS[number]:
        raise TypeError(f"C holds {C.dtype}, but products of {A.dtype} are stored as {RESULTS[number]}")
    (M, K), N = A.shape, B.shape[0]
    if B.shape[1] != K:
        raise ValueError(f"A has {K} columns and B has {B.shape[1]}: for A @ B.T both run along k")
    if tuple(C.shape) != (M, N):
        raise ValueError(f"C is {C.shape[0]} x {C.shape[1]}, but A @ B.T is {M} x {N}: make C of that shape")
    for name, X in (("A", A), ("B", B), ("C", C)):
        each = ROW_ALIGNMENT_BYTES // X.dtype.itemsize
        if X.strides[1] != X.dtype.itemsize or X.strides[0] % ROW_ALIGNMENT_BYTES or X.shape[1] % each:
            raise ValueError(
                f"{name} has rows of {X.shape[1]} elements, but copies take {ROW_ALIGNMENT_BYTES} bytes at a time: "
                f"make rows a multiple of {each} elements long, with zeros at the end"
            )
    return number


@cache
def in_format(kernel, number: int):
    """The kernel for a format, which it holds in its constants FORMAT and RESULT."""
    return specialise(kernel, FORMAT=number, RESULT=ROUNDED_TO[number])


def as_words(X):
    """A matrix as 32-bit words: what a register holds, two or four elements of a row."""
    return X.view(np.uint32)

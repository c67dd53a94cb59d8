"""C = alpha * op(A) @ op(B) + beta * C for arrays of any shape, order and precision, by the kernels of the ladders."""

import numpy as np
from jaxtyping import Shaped

from labkit import cuda
from labkit.arrays.views import share_memory, stacked, tidied, turned
from labkit.blas.problem import check_factor
from labkit.gemm.interface.candidates import Shape
from labkit.gemm.interface.carry_out import carry_out
from labkit.gemm.interface.choices import choice
from labkit.gemm.interface.combine import scaled
from labkit.gemm.interface.precisions import PRECISIONS, Precision, precision_of


def multiply(
    A: Shaped[np.ndarray, "*batch rows_a cols_a"],
    B: Shaped[np.ndarray, "*batch rows_b cols_b"],
    C: Shaped[np.ndarray, "*batch M N"] | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tf32: bool = False,
    stream=0,
) -> Shaped[np.ndarray, "*batch M N"]:
    """C = alpha * op(A) @ op(B) + beta * C, where op transposes a matrix or leaves it as it is.

    Parameters
    ----------
    A, B
        Matrices, or batches of matrices along a first axis; a matrix beside a batch is multiplied with each of it.
        Arrays of the device (numba's, torch's, or any with `__cuda_array_interface__`), or NumPy arrays, which are
        copied there. Any strides will do: a part of a larger array, or a transposed view, whose memory is in
        column-major order. Both hold float32, float16, bfloat16 (its bits, uint16) or e4m3 (its bits, uint8).
    C
        Where the result goes; if it is None, a new array, of NumPy where A and B are. It holds what A holds, or
        bfloat16 if that is e4m3.
    alpha, beta
        Real numbers, taken as float32. What C held does not matter where beta is 0, nor what A and B hold where alpha
        is 0.
    tf32
        Whether tensor cores multiply float32, rounded to TF32; otherwise they are multiplied in full, by CUDA cores.
    stream
        A stream of `cuda.stream()`. Multiply once before a graph is captured from it, and pass C then.

    Returns
    -------
    C. Sums are float32; they are rounded to C's format once, or twice where alpha or beta is given on a GPU of
    another compute capability than 9.0.

    Raises
    ------
    TypeError
        An operand is no array, or holds what is not multiplied, or a factor is no real number.
    ValueError
        The shapes do not fit, C is missing where beta is not 0, or C is an array of the device that shares memory with
        A, B or itself.
    RuntimeError
        The GPU has no instructions for such operands.

    Notes
    -----
    The kernel is the one that `labkit.gemm.tune` found fastest for this shape on this GPU, else the one that is
    reckoned to be. An operand that it cannot take as it lies is copied first (`labkit.gemm.interface.arrange`).
    (Dongarra and others, A Set of Level 3 Basic Linear Algebra Subprograms, 1990: what alpha, beta and op mean.)

    Examples
    --------
    >>> C = gemm.multiply(A, B)
    >>> gemm.multiply(X, W, Y, transpose_b=True)  # a layer: Y = X @ W.T
    """
    given = {"A": A, "B": B} if C is None else {"A": A, "B": B, "C": C}
    for name, X in given.items():
        _check_array(name, X)
    alpha, beta = check_factor("alpha", alpha), check_factor("beta", beta)
    precision = _precision(A, B, tf32)
    shape = _result_shape(A, B, transpose_a, transpose_b)
    if C is None:
        if beta != 0:
            raise ValueError("beta is not 0, but there is no C to multiply with it: pass C, or leave beta out")
    else:
        _check_result(C, shape, precision)

    on_host = isinstance(C, np.ndarray) if C is not None else all(isinstance(X, np.ndarray) for X in (A, B))
    left, right = _on_device(A, stream), _on_device(B, stream)
    if C is None or (on_host and beta == 0):
        out = cuda.device_array(shape, precision.result)
    else:
        out = _on_device(C, stream)
        _check_apart(out, A=left, B=right)
    if 0 not in shape:
        left = turned(left) if transpose_a else left
        right = right if transpose_b else turned(right)
        _multiply(precision, tidied(left), tidied(right), tidied(out), alpha, beta, stream)
    if not on_host:
        return out if C is None else C
    result = out.copy_to_host(stream=stream)
    if stream:
        stream.synchronize()
    if C is None:
        return result
    C[...] = result
    return C


def _multiply(precision, left, right, C, alpha, beta, stream):
    """C = alpha * left @ right.T + beta * C, none of them empty but for K."""
    if _runs_down(C):  # in column-major order C is the transpose of what its memory is by rows
        C, left, right = turned(C), right, left
    if len(right.shape) == 2:  # all matrices of a batch times one: one taller matrix, if they follow one another
        left, C = stacked(left, C)
    if left.shape[-1] == 0 or alpha == 0:
        scaled(C, beta, precision.result_format, stream)
    else:
        carry_out(choice(precision, Shape.of(left, right, C)), precision, left, right, C, alpha, beta, stream)


def _runs_down(C) -> bool:
    """Whether neighbours in memory are neighbours in a column of C."""
    return C.strides[-2] == C.dtype.itemsize != C.strides[-1]


# --- what cannot be multiplied -------------------------------------------------------------------


def _check_array(name, X):
    if not isinstance(X, np.ndarray) and not cuda.is_cuda_array(X):
        raise TypeError(f"{name} is a {type(X).__name__}, not an array: make it one with np.array or cuda.to_device")
    if len(X.shape) not in (2, 3):
        raise ValueError(
            f"{name} is of shape {tuple(X.shape)}: give a matrix, or a batch of matrices along a first axis"
        )


def _precision(A, B, tf32) -> Precision:
    dtypes = _dtype(A), _dtype(B)
    found = precision_of(dtypes[0], tf32) if dtypes[0] == dtypes[1] else None
    if found is None and tf32:
        raise TypeError(f"A holds {dtypes[0]} and B {dtypes[1]}, but TF32 is made of float32: leave tf32 out")
    if found is None:
        known = (f"{p.operands} ({p.name})" for p in PRECISIONS.values() if p.name != "tf32")
        raise TypeError(
            f"A holds {dtypes[0]} and B {dtypes[1]}, but two arrays of the same of these are multiplied: "
            + ", ".join(known)
        )
    return found


def _dtype(X):
    """NumPy's dtype of an array, of torch's too."""
    return X.dtype if isinstance(X.dtype, np.dtype) else np.dtype(X.__cuda_array_interface__["typestr"])


def _result_shape(A, B, transpose_a, transpose_b) -> tuple[int, ...]:
    (*batch_a, rows_a, cols_a), (*batch_b, rows_b, cols_b) = A.shape, B.shape
    M, K = (cols_a, rows_a) if transpose_a else (rows_a, cols_a)
    K_of_b, N = (cols_b, rows_b) if transpose_b else (rows_b, cols_b)
    if K_of_b != K:
        raise ValueError(
            f"op(A) is {M} x {K} and op(B) is {K_of_b} x {N}: op(A) needs as many columns as op(B) has rows"
        )
    if batch_a and batch_b and batch_a != batch_b:
        raise ValueError(f"A is a batch of {batch_a[0]} matrices and B of {batch_b[0]}: give as many of both, or one")
    return (*(batch_a or batch_b), M, N)


def _check_result(C, shape, precision):
    if tuple(C.shape) != shape:
        found, needed = (" x ".join(map(str, sides)) for sides in (C.shape, shape))
        raise ValueError(f"C is {found}, but op(A) @ op(B) is {needed}: make C of that shape")
    if _dtype(C) != precision.result:
        raise TypeError(f"C holds {_dtype(C)}, but products of {precision.name} are stored as {precision.result}")
    if isinstance(C, np.ndarray) and not C.flags.writeable:
        raise ValueError("C is read-only: pass an array that can be written to")


def _check_apart(C, **operands):
    """Raises ValueError where writing an element of C changes another one, or an operand."""
    if 0 in C.shape:
        return
    reach = C.dtype.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(C.strides, C.shape)):
        if length > 1 and stride < reach:
            raise ValueError("elements of C share their memory: pass an array in which each has its own")
        reach += stride * (length - 1)
    for name, X in operands.items():
        if share_memory(X, C):
            raise ValueError(f"C shares memory with {name}, which is read while C is written: give C memory of its own")


# --- arrays of the device ------------------------------------------------------------------------


def _on_device(X, stream):
    if isinstance(X, np.ndarray):
        return cuda.to_device(np.ascontiguousarray(X), stream=stream)
    return X if hasattr(X, "copy_to_host") else cuda.as_cuda_array(X)

"""C = alpha * op(A) @ op(B) + beta * C for arrays of any shape, order and format, by the kernels of the ladders.

Or a bias for each column is added, in the place of beta * C.
"""

from functools import partial

import numpy as np
from jaxtyping import Shaped

from labkit import cuda
from labkit.arrays.addresses import check_own_memory
from labkit.arrays.operands import (
    check_array,
    check_on_device,
    format_of,
    holds,
    on_device,
    seen,
    sides,
    taken,
    type_name,
)
from labkit.arrays.views import stacked, tidied, turned, viewed
from labkit.arrays.workspace import current_device, handle_of, of_stream
from labkit.blas.problem import check_factor
from labkit.formats import Format
from labkit.gemm.interface.candidates import Candidate, choice
from labkit.gemm.interface.combine import scaled
from labkit.gemm.interface.launches import launches
from labkit.planned import Plan, Remembered

_remembered = Remembered()


def multiply(
    A: Shaped[np.ndarray, "*batch rows_a cols_a"],
    B: Shaped[np.ndarray, "*batch rows_b cols_b"],
    C: Shaped[np.ndarray, "*batch M N"] | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: Shaped[np.ndarray, " N"] | None = None,
    format: str | Format | None = None,
    stream=0,
) -> Shaped[np.ndarray, "*batch M N"]:
    """C = alpha * op(A) @ op(B) + beta * C, where op transposes a matrix or leaves it as it is.

    Parameters
    ----------
    A, B
        Matrices, or batches of matrices along a first axis; a matrix beside a batch is multiplied with each of it.
        Arrays of the device (numba's, torch's, or any with `__cuda_array_interface__`), or NumPy arrays, which are
        copied there. Any strides will do: a part of a larger array, or a transposed view, whose memory is in
        column-major order. Both hold float32, float16, bfloat16 or float8_e4m3fn.
    C
        Where the result goes; if it is None, a new array, of NumPy where A and B are. It holds what A holds, or
        bfloat16 if that is e4m3.
    alpha, beta
        Real numbers, taken as float32. What C held does not matter where beta is 0, nor what A and B hold where alpha
        is 0.
    bias
        A number for each column of C, of its format, which is added to all of the column; beta is 0 then.
    format
        What arrays of bits hold, "bfloat16" (uint16) or "float8_e4m3" (uint8); or "tf32", by which tensor cores
        multiply float32, rounded to that. Otherwise float32 is multiplied in full, by CUDA cores.
    stream
        A stream of `cuda.stream()`, or another one with `__cuda_stream__`. Pass C where it is captured into a graph.

    Returns
    -------
    C. Sums are float32; they are rounded to C's format once, or twice where alpha or beta is given on a GPU of
    another compute capability than 9.0.

    Raises
    ------
    TypeError
        An operand is no array, or holds what is not multiplied, or bits that nobody declared, or a factor is no real
        number.
    ValueError
        There is no such format, the shapes do not fit, C is missing where beta is not 0, a bias is given there, or C is
        an array of the device that shares memory with A, B, bias or itself.
    RuntimeError
        The GPU has no instructions for such operands.

    Notes
    -----
    The kernel is the one that `labkit.gemm.tune` found fastest for this shape and order on this GPU, else the one that
    is predicted to be. An operand that it cannot take as it lies is copied first (`labkit.gemm.interface.arrange`).
    The first call makes a plan, which later ones find again by how their operands lie; see `plan`.
    Of float8_e4m3 the tensor cores of Hopper keep 13 bits behind the largest summand, and cut off the rest: where most
    products have one sign, long sums come out too small (`labkit.ptx.warpgroups.sums_of_e4m3`).
    (Dongarra and others, A Set of Level 3 Basic Linear Algebra Subprograms, 1990: what alpha, beta and op mean.)

    Examples
    --------
    >>> C = gemm.multiply(A, B)
    >>> gemm.multiply(X, W, Y, transpose_b=True, bias=b)  # a layer: Y = X @ W.T + b
    """
    options = alpha, beta, transpose_a, transpose_b, format
    if C is None or any(isinstance(X, np.ndarray) for X in (A, B, C, bias)):
        return _with_copies(A, B, C, bias, *options, stream)
    key, known = None, None
    try:
        (of_A, at_A), (of_B, at_B), (of_C, at_C) = seen(A), seen(B), seen(C)
        of_bias, at_bias = (None, None) if bias is None else seen(bias)
        factors = [(type(x), x if x == x else "NaN") for x in (alpha, beta)]  # no NaN is found again by itself
        key = of_A, of_B, of_C, of_bias, *factors, *options[2:], handle_of(stream), current_device()
        known = _remembered.get(key)
    except (AttributeError, TypeError, ValueError):  # no arrays, or no options: which, is told below
        pass
    if known is not None:
        if bias is None:
            known.run((A, B, C), [at_A, at_B, at_C])
        else:
            known.run((A, B, C, bias), [at_A, at_B, at_C, at_bias])
        return C
    arrays = _adopted(A, B, C, bias)
    made = planned(*arrays, *options, stream=stream, workspace=of_stream(stream), keep=False)
    made(*(X for X in arrays if X is not None))
    if key is not None:
        _remembered.keep(key, made)
    return C


def plan(
    A: Shaped[np.ndarray, "*batch rows_a cols_a"],
    B: Shaped[np.ndarray, "*batch rows_b cols_b"],
    C: Shaped[np.ndarray, "*batch M N"],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: Shaped[np.ndarray, " N"] | None = None,
    format: str | Format | None = None,
    stream=0,
) -> Plan:
    """As `multiply`, but gives the product as a plan, which is run by calling it: `plan()`, or `plan(A, B, C)`.

    With a bias it is `plan(A, B, C, bias)`. A plan costs the host a few microseconds a run, allocates nothing then, and
    can be captured in a CUDA graph on any stream. Operands are arrays of the device.

    Examples
    --------
    >>> plan = gemm.plan(X, W, Y, transpose_b=True)
    >>> plan()
    >>> plan(X2, W, Y2)  # which lie as X and Y do
    """
    return planned(*_adopted(A, B, C, bias), alpha, beta, transpose_a, transpose_b, format, stream=stream)


def planned(
    A,
    B,
    C,
    bias=None,
    alpha=1.0,
    beta=0.0,
    transpose_a=False,
    transpose_b=False,
    format=None,
    *,
    candidate: Candidate | None = None,
    **options,
) -> Plan:
    """A plan for arrays of the device, by a certain candidate if one is given; the options are those of `Plan`."""
    format, _ = _checked(A, B, C, bias, alpha, beta, transpose_a, transpose_b, format)
    product = {
        "alpha": check_factor("alpha", alpha),
        "beta": check_factor("beta", beta),
        "transpose_a": transpose_a,
        "transpose_b": transpose_b,
        "format": format,
        "candidate": candidate,
    }
    arrays = {"A": A, "B": B, "C": C} | ({} if bias is None else {"bias": bias})
    return Plan(partial(_launches, **product), arrays, ["C"], **options)


def forget() -> None:
    """Forgets the plans that `multiply` remembers, since other kernels may be chosen from now on."""
    _remembered.clear()


def arrangement(A, B, C, transpose_a: bool, transpose_b: bool) -> tuple:
    """Left, right and result, of which C = op(A) @ op(B) is left @ right.T, as the kernels are given them."""
    left = tidied(turned(taken(A)) if transpose_a else taken(A))
    right = tidied(taken(B) if transpose_b else turned(taken(B)))
    C = tidied(taken(C))
    if _runs_down(C):  # in column-major order C is the transpose of what its memory is by rows
        C, left, right = turned(C), right, left
    if len(right.shape) == 2:  # all matrices of a batch times one: one taller matrix, if they follow one another
        left, C = stacked(left, C)
    return left, right, C


def _launches(A, B, C, bias=None, *, alpha, beta, transpose_a, transpose_b, format, candidate, workspace):
    if 0 in C.shape:
        return []
    across = _runs_down(tidied(taken(C)))  # columns of C are rows of what the kernels are given
    left, right, C = arrangement(A, B, C, transpose_a, transpose_b)
    added, beta = (C, beta) if bias is None else (_of_all_rows(taken(bias), C, across), 1.0)
    if left.shape[-1] == 0 or alpha == 0:
        return [scaled(added, C, beta, format.result, workspace)]
    candidate = candidate or choice(format, left, right, C)
    return launches(candidate, format, left, right, C, alpha, beta, workspace, added)


def _of_all_rows(bias, C, across):
    """A vector as an array of C's shape, each of whose rows it is, or each of whose columns."""
    (step,) = bias.strides
    return viewed(bias, C.shape, (*(0 for _ in C.shape[:-2]), *((step, 0) if across else (0, step))))


def _runs_down(C) -> bool:
    """Whether neighbours in memory are neighbours in a column of C."""
    return C.strides[-2] == C.dtype.itemsize != C.strides[-1]


def _with_copies(A, B, C, bias, alpha, beta, transpose_a, transpose_b, format, stream):
    """As `multiply`, where there is no C, or arrays are the host's."""
    handle_of(stream)  # or it is none
    format, shape = _checked(A, B, C, bias, alpha, beta, transpose_a, transpose_b, format)
    on_host = isinstance(C, np.ndarray) if C is not None else all(isinstance(X, np.ndarray) for X in (A, B))
    blank = C is None or (on_host and beta == 0)
    out = cuda.device_array(shape, format.result.dtype) if blank else on_device(C, stream)
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "format": format, "stream": stream}
    options["bias"] = None if bias is None else on_device(bias, stream)
    multiply(on_device(A, stream), on_device(B, stream), out, alpha=alpha, beta=beta, **options)
    if not on_host:
        return out if C is None else C
    result = out.copy_to_host(stream=stream)
    if stream:
        stream.synchronize()
    if C is None:
        return result
    C[...] = result.view(C.dtype)
    return C


# --- what cannot be multiplied -------------------------------------------------------------------


def _adopted(A, B, C, bias):
    """Arrays of the device, which numba makes of what only says by `__cuda_array_interface__` that it is one."""
    for name, X in {"A": A, "B": B, "C": C, **({} if bias is None else {"bias": bias})}.items():
        check_on_device(name, X)
    return [X if X is None else on_device(X) for X in (A, B, C, bias)]


def _checked(A, B, C, bias, alpha, beta, transpose_a, transpose_b, format) -> tuple[Format, tuple[int, ...]]:
    """The format of a product, and the shape of its result; raises where it cannot be computed."""
    for name, X in {"A": A, "B": B, **({} if C is None else {"C": C})}.items():
        check_array(name, X)
        if len(X.shape) not in (2, 3):
            raise ValueError(
                f"{name} is of shape {tuple(X.shape)}: give a matrix, or a batch of matrices along a first axis"
            )
    check_factor("alpha", alpha)
    for name, transpose in (("transpose_a", transpose_a), ("transpose_b", transpose_b)):
        if not isinstance(transpose, bool | np.bool_):
            raise TypeError(f"{name} is {transpose!r}, and says whether a matrix is transposed: give True or False")
    format, shape = format_of(A, B, format), _result_shape(A, B, transpose_a, transpose_b)
    if C is not None:
        _check_result(C, shape, format)
    elif check_factor("beta", beta) != 0:
        raise ValueError("beta is not 0, but there is no C to multiply with it: pass C, or leave beta out")
    if bias is not None:
        _check_bias(bias, shape[-1], beta, format)
    return format, shape


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


def _check_result(C, shape, format):
    if tuple(C.shape) != shape:
        found, needed = map(sides, (C.shape, shape))
        raise ValueError(f"C is {found}, but op(A) @ op(B) is {needed}: make C of that shape")
    if not holds(C, format.result):
        raise TypeError(f"C holds {type_name(C)}, but products of {format} are stored as {format.result.dtype}")
    if isinstance(C, np.ndarray):
        if not C.flags.writeable:
            raise ValueError("C is read-only: pass an array that can be written to")
        check_own_memory("C", C)


def _check_bias(bias, columns, beta, format):
    check_array("bias", bias)
    if tuple(bias.shape) != (columns,):
        raise ValueError(f"bias is {sides(bias.shape)}, but C has {columns} columns: give a number for each")
    if not holds(bias, format.result):
        raise TypeError(f"bias holds {type_name(bias)}, but results are stored as {format.result.dtype}: convert it")
    if check_factor("beta", beta) != 0:
        raise ValueError("there are a bias and a beta that is not 0: leave one of them out")

"""C = alpha * op(A) @ op(B) + beta * C for arrays of any shape, order and format, by the kernels of the ladders.

Or a bias for each column is added, in the place of beta * C.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.element_types import type_name
from labkit.arrays.operands import TYPE_NAMES, can_hold, common_format, shape_text
from labkit.arrays.views import as_strided, merge_batches, transpose, with_plain_strides
from labkit.arrays.workspace import Workspace
from labkit.blas.problem import check_factor
from labkit.calls.call import call
from labkit.calls.operation import Operation, Result, calls
from labkit.calls.plan import Plan, make_plan
from labkit.formats import Format
from labkit.gemm.interface.candidates import Candidate, choice, multiplied, multiplied_format
from labkit.gemm.interface.combine import scaled
from labkit.gemm.interface.launches import launches
from labkit.ladder import Launch


@dataclass(frozen=True)
class Product(Operation):
    """A call of `multiply` without its arrays; for the options see there.

    `candidate` is what computes it; None for what is tuned or predicted to be the fastest.
    """

    alpha: float = 1.0
    beta: float = 0.0
    transpose_a: bool = False
    transpose_b: bool = False
    format: str | Format | None = None
    candidate: Candidate | None = None

    arrays, outputs, required = ("A", "B", "bias", "C"), ("C",), ("A", "B")

    def __post_init__(self):
        for name in ("alpha", "beta"):
            check_factor(name, getattr(self, name))
        for name in ("transpose_a", "transpose_b"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(
                    f"{name} is {getattr(self, name)!r}, and says whether a matrix is transposed: give True or False"
                )

    @property
    def read(self) -> tuple[str, ...]:
        return ("C",) if self.beta != 0 else ()

    def declared(self, given: Mapping[str, object]) -> "Product":
        return replace(self, format=self._format(given))

    def check(self, given: Mapping[str, object]) -> None:
        for name in ("A", "B", "C"):
            if name in given and len(given[name].shape) not in (2, 3):
                raise ValueError(
                    f"{name} is of shape {tuple(given[name].shape)}: give a matrix, or a batch of matrices along a "
                    "first axis"
                )
        format, shape = self._format(given), self._shape(given)
        if "C" in given:
            _check_result(given["C"], shape, format)
        elif self.beta != 0:
            raise ValueError("beta is not 0, but there is no C to multiply with it: pass C, or leave beta out")
        if "bias" in given:
            self._check_bias(given["bias"], shape[-1], format)

    def result(self, name: str, given: Mapping[str, object]) -> Result:
        format = self._format(given)
        is_bits = type_name(given["A"]) not in TYPE_NAMES.values()  # which say nothing of what they stand for
        held = str(format.result.dtype) if is_bits else TYPE_NAMES[format.result]
        return Result("A", self._shape(given), held)

    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        C = given["C"]
        if 0 in C.shape:
            return []
        across = _runs_down(with_plain_strides(C))  # columns of C are rows of what the kernels are given
        left, right, C = arrangement(given["A"], given["B"], C, self.transpose_a, self.transpose_b)
        alpha, beta, added = check_factor("alpha", self.alpha), check_factor("beta", self.beta), C
        if "bias" in given:
            added, beta = _of_all_rows(given["bias"], C, across), 1.0
        if left.shape[-1] == 0 or alpha == 0:
            return [scaled(added, C, beta, self.format.result, workspace)]
        candidate = self.candidate or choice(self.format, left, right, C)
        return launches(candidate, self.format, left, right, C, alpha, beta, workspace, added)

    def _format(self, given) -> Format:
        format = None if self.format is None else multiplied_format(self.format)
        return common_format(given["A"], given["B"], format, formats=multiplied())

    def _shape(self, given) -> tuple[int, ...]:
        """Of C; raises where A and B do not fit."""
        (*batch_a, rows_a, cols_a), (*batch_b, rows_b, cols_b) = given["A"].shape, given["B"].shape
        M, K = (cols_a, rows_a) if self.transpose_a else (rows_a, cols_a)
        K_of_b, N = (cols_b, rows_b) if self.transpose_b else (rows_b, cols_b)
        if K_of_b != K:
            raise ValueError(
                f"op(A) is {M} x {K} and op(B) is {K_of_b} x {N}: op(A) needs as many columns as op(B) has rows"
            )
        if batch_a and batch_b and batch_a != batch_b:
            raise ValueError(
                f"A is a batch of {batch_a[0]} matrices and B of {batch_b[0]}: give as many of both, or one"
            )
        return (*(batch_a or batch_b), M, N)

    def _check_bias(self, bias, columns, format):
        if tuple(bias.shape) != (columns,):
            raise ValueError(f"bias is {shape_text(bias.shape)}, but C has {columns} columns: give a number for each")
        if not can_hold(bias, format.result):
            raise TypeError(
                f"bias holds {type_name(bias)}, but results are stored as {format.result.dtype}: convert it"
            )
        if self.beta != 0:
            raise ValueError("there are a bias and a beta that is not 0: leave one of them out")


@calls(Product)
def multiply(
    A: Shaped[np.ndarray, "*batch rows_a cols_a"],
    B: Shaped[np.ndarray, "*batch rows_b cols_b"],
    *,
    C: Shaped[np.ndarray, "*batch M N"] | None = None,
    bias: Shaped[np.ndarray, " N"] | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "*batch M N"]:
    """C = alpha * op(A) @ op(B) + beta * C, where op transposes a matrix or leaves it as it is.

    Parameters
    ----------
    A, B
        Matrices, or batches of matrices along a first axis; a matrix beside a batch is multiplied with each of it.
        Arrays of the device (numba's, torch's, CuPy's, or any with `__cuda_array_interface__`), or of the host, which
        are copied there (NumPy's, torch's). Any strides will do: a part of a larger array, or a transposed view, whose
        memory is in column-major order. Both hold float32, float16, bfloat16 or float8_e4m3fn.
    C
        Where the result goes; if it is None, a new array of the kind that A is. It holds what A holds, or bfloat16 if
        that is e4m3.
    alpha, beta
        Real numbers, taken as float32. What C held does not matter where beta is 0, nor what A and B hold where alpha
        is 0.
    bias
        A number for each column of C, of its format, which is added to all of the column; beta is 0 then.
    format
        What arrays of bits hold, "bfloat16" (uint16) or "float8_e4m3" (uint8); or "tf32", by which tensor cores
        multiply float32, rounded to that. Otherwise float32 is multiplied in full, by CUDA cores.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

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
        There is no such format or it is not multiplied, the shapes do not fit, C is missing where beta is not 0, a bias
        is given there, or C shares memory with A, B, bias or itself.
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
    >>> gemm.multiply(X, W, C=Y, transpose_b=True, bias=b)  # a layer: Y = X @ W.T + b
    """
    return call(Product, (A, B, bias, C), (alpha, beta, transpose_a, transpose_b, format), stream)


def plan(A, B, *, C, bias=None, stream=None, **options) -> Plan:
    """A call of `multiply` worked out once, to be run many times: `plan()`, or `plan(A, B, C)` for other arrays.

    With a bias it is `plan(A, B, bias, C)`. Arrays are of the device; all else is as for `labkit.plan`.

    Examples
    --------
    >>> plan = gemm.plan(X, W, C=Y, transpose_b=True)
    >>> plan()
    >>> plan(X2, W, Y2)  # which lie as X and Y do
    """
    return make_plan(Product(**options), {"A": A, "B": B, "bias": bias, "C": C}, stream=stream)


def arrangement(A, B, C, transpose_a: bool, transpose_b: bool) -> tuple:
    """Left, right and result, of which C = op(A) @ op(B) is left @ right.T, as the kernels are given them."""
    left = with_plain_strides(transpose(A) if transpose_a else A)
    right = with_plain_strides(B if transpose_b else transpose(B))
    C = with_plain_strides(C)
    if _runs_down(C):  # in column-major order C is the transpose of what its memory is by rows
        C, left, right = transpose(C), right, left
    if len(right.shape) == 2:  # all matrices of a batch times one: one taller matrix, if they follow one another
        left, C = merge_batches(left, C)
    return left, right, C


def _of_all_rows(bias, C, across):
    """A vector as an array of C's shape, each of whose rows it is, or each of whose columns."""
    (step,) = bias.strides
    return as_strided(bias, C.shape, (*(0 for _ in C.shape[:-2]), *((step, 0) if across else (0, step))))


def _runs_down(C) -> bool:
    """Whether neighbours in memory are neighbours in a column of C."""
    return C.strides[-2] == C.dtype.itemsize != C.strides[-1]


def _check_result(C, shape, format):
    if tuple(C.shape) != shape:
        found, needed = map(shape_text, (C.shape, shape))
        raise ValueError(f"C is {found}, but op(A) @ op(B) is {needed}: make C of that shape")
    if not can_hold(C, format.result):
        raise TypeError(f"C holds {type_name(C)}, but products of {format} are stored as {format.result.dtype}")

"""`gemm.multiply`: C = alpha * op(A) @ op(B) + beta * C, or + bias, for arrays of any shape, order and format."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Shaped

from labkit.arrays.element_types import type_name
from labkit.arrays.operands import TYPE_NAMES, can_hold, common_format, shape_text
from labkit.arrays.views import as_strided, merge_batches, transpose, with_plain_strides
from labkit.arrays.workspace import Workspace
from labkit.blas.problem import as_float32_factor
from labkit.calls.call import run_operation
from labkit.calls.operation import Operation, Result, call_of
from labkit.calls.plan import Plan, make_plan
from labkit.formats import Format
from labkit.gemm.interface.candidates import Candidate, choose_candidate, find_format, supported_formats
from labkit.gemm.interface.combine import scale_added
from labkit.gemm.interface.launches import launches
from labkit.ladder import Launch


@dataclass(frozen=True)
class Product(Operation):
    """Options of a call of `multiply`; a `candidate` computes it, by default the fastest tuned or predicted one."""

    alpha: float = 1.0
    beta: float = 0.0
    transpose_a: bool = False
    transpose_b: bool = False
    format: str | Format | None = None
    candidate: Candidate | None = None

    arrays, outputs, required = ("A", "B", "bias", "C"), ("C",), ("A", "B")  # names of parameters of `multiply`

    def __post_init__(self):
        for name in ("alpha", "beta"):
            as_float32_factor(name, getattr(self, name))  # refuses what is no real number
        for name in ("transpose_a", "transpose_b"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(
                    f"{name} is {getattr(self, name)!r}, and says whether a matrix is transposed: give True or False"
                )

    @property
    def read(self) -> tuple[str, ...]:  # outputs whose old contents are read
        return ("C",) if self.beta != 0 else ()

    def with_format(self, operands: Mapping[str, object]) -> "Product":
        """Return these options with the operands' format filled in."""
        return replace(self, format=self._format(operands))

    def check(self, operands: Mapping[str, object]) -> None:
        for name in ("A", "B", "C"):
            if name in operands and len(operands[name].shape) not in (2, 3):
                raise ValueError(
                    f"{name} is of shape {tuple(operands[name].shape)}: give a matrix, or a batch of matrices along a "
                    "first axis"
                )
        format, shape = self._format(operands), self._shape(operands)
        if "C" in operands:
            _check_result(operands["C"], shape, format)
        elif self.beta != 0:
            raise ValueError("beta is not 0, but there is no C to multiply with it: pass C, or leave beta out")
        if "bias" in operands:
            self._check_bias(operands["bias"], shape[-1], format)

    def result(self, name: str, operands: Mapping[str, object]) -> Result:
        format = self._format(operands)
        is_bits = type_name(operands["A"]) not in TYPE_NAMES.values()  # uint16 does not tell which format it holds
        element_type = str(format.result.dtype) if is_bits else TYPE_NAMES[format.result]
        return Result(like="A", shape=self._shape(operands), type_name=element_type)

    def launches(self, operands: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        C = operands["C"]
        if 0 in C.shape:
            return []
        is_transposed = _is_column_major(with_plain_strides(C))  # the kernels then compute C.T
        left, right, C = arrange_operands(operands["A"], operands["B"], C, self.transpose_a, self.transpose_b)
        alpha, beta, added = as_float32_factor("alpha", self.alpha), as_float32_factor("beta", self.beta), C
        if "bias" in operands:
            added, beta = _broadcast_bias(operands["bias"], C, is_transposed), 1.0
        if left.shape[-1] == 0 or alpha == 0:
            return [scale_added(added, C, beta, self.format.result, workspace)]
        candidate = self.candidate or choose_candidate(self.format, left, right, C)
        return launches(candidate, self.format, left, right, C, alpha, beta, workspace, added)

    def _format(self, operands) -> Format:
        format = None if self.format is None else find_format(self.format)
        return common_format(operands["A"], operands["B"], format, formats=supported_formats())

    def _shape(self, operands) -> tuple[int, ...]:
        """Return the shape of C; raise ValueError where A and B do not fit."""
        (*batch_a, rows_a, cols_a), (*batch_b, rows_b, cols_b) = operands["A"].shape, operands["B"].shape
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


@call_of(Product)  # tells `labkit.plan` and `labkit.tune` which operation this function calls
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
    """Compute C = alpha * op(A) @ op(B) + beta * C, where op transposes a matrix or leaves it as it is.

    Parameters
    ----------
    A, B
        Matrices, or batches of matrices along a first axis; a single matrix is multiplied with each one of a batch.
        Device arrays (numba, torch, CuPy, or any with `__cuda_array_interface__`), or host arrays (NumPy, torch),
        which are copied to the device. Any strides: parts of larger arrays, transposed views. Both hold one of the
        formats that a ladder of `labkit.gemm` multiplies, such as float32, bfloat16 or float8_e4m3fn.
    C
        Result array; if it is None, a new array of A's kind. It holds the `result` of A's format: that format, or
        bfloat16 for 8-bit floats.
    alpha, beta
        Real numbers, converted to float32. Where beta is 0, C's old contents are ignored, even NaN; where alpha is 0,
        those of A and B.
    bias
        Vector with one number per column of C, in C's format, added to each row; beta must then be 0.
    format
        Format of arrays of bits, such as "bfloat16" (uint16) or "float8_e4m3" (uint8); or "tf32": tensor cores
        multiply float32 rounded to TF32. By default CUDA cores multiply float32 in full precision.
    stream
        numba, torch or CuPy stream, or 0 for the driver's default stream; None for the current stream of torch's and
        CuPy's arrays.

    Returns
    -------
    C. Sums are float32, rounded to C's format once; twice where alpha or beta is given and the compute capability is
    not 9.0.

    Raises
    ------
    TypeError
        An operand is not an array or holds an unsupported or undeclared format, or a factor is not a real number.
    ValueError
        The format is unknown or unsupported, the shapes do not fit, C is missing or a bias is given where beta is not
        0, or C shares memory with A, B, bias or itself.
    RuntimeError
        The GPU has no instructions for such operands.

    Notes
    -----
    The kernel is the one that `labkit.gemm.tune` found fastest for this shape and order on this GPU, else the one
    predicted to be. An operand whose layout it cannot read is copied first (`labkit.gemm.interface.arrange`).
    The first call makes a plan, which later calls with the same layouts reuse; see `plan`.
    For float8_e4m3 the tensor cores of Hopper keep 13 bits below the largest summand and truncate the rest: where most
    products have one sign, long sums come out too small (`labkit.ptx.warpgroups.sums_of_e4m3`).
    (Dongarra and others, A Set of Level 3 Basic Linear Algebra Subprograms, 1990, defines alpha, beta and op.)

    Examples
    --------
    >>> C = gemm.multiply(A, B)
    >>> gemm.multiply(X, W, C=Y, transpose_b=True, bias=b)  # a layer: Y = X @ W.T + b
    """
    return run_operation(Product, (A, B, bias, C), (alpha, beta, transpose_a, transpose_b, format), stream)


def plan(A, B, *, C, bias=None, stream=None, **options) -> Plan:
    """Prepare a call of `multiply` to be run many times: `plan()`, or `plan(A, B, C)` for other arrays.

    With a bias it is `plan(A, B, bias, C)`. Takes device arrays; otherwise like `labkit.plan`.

    Examples
    --------
    >>> plan = gemm.plan(X, W, C=Y, transpose_b=True)
    >>> plan()
    >>> plan(X2, W, Y2)  # of the same shapes and strides
    """
    return make_plan(Product(**options), {"A": A, "B": B, "bias": bias, "C": C}, stream=stream)


def arrange_operands(A, B, C, transpose_a: bool, transpose_b: bool) -> tuple:
    """Return left, right and result such that result = left @ right.T is C = op(A) @ op(B)."""
    left = with_plain_strides(transpose(A) if transpose_a else A)
    right = with_plain_strides(B if transpose_b else transpose(B))
    C = with_plain_strides(C)
    if _is_column_major(C):  # then C.T is row-major
        C, left, right = transpose(C), right, left
    if len(right.shape) == 2:  # a contiguous batch times one matrix is one taller matrix
        left, C = merge_batches(left, C)
    return left, right, C


def _broadcast_bias(bias, C, is_transposed):
    """Return a view of C's shape whose rows are all the bias, or whose columns are, if C is transposed."""
    (stride,) = bias.strides
    return as_strided(bias, C.shape, (*(0 for _ in C.shape[:-2]), *((stride, 0) if is_transposed else (0, stride))))


def _is_column_major(C) -> bool:
    """Return whether the columns of C, not its rows, are contiguous."""
    return C.strides[-2] == C.dtype.itemsize != C.strides[-1]


def _check_result(C, shape, format):
    if tuple(C.shape) != shape:
        found, needed = map(shape_text, (C.shape, shape))
        raise ValueError(f"C is {found}, but op(A) @ op(B) is {needed}: make C of that shape")
    if not can_hold(C, format.result):
        raise TypeError(f"C holds {type_name(C)}, but products of {format} are stored as {format.result.dtype}")

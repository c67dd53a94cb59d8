"""A product computed in one of the ways there are, whatever its operands look like."""

from math import prod

import numpy as np

from labkit import cuda
from labkit.blas import gemv, gemv_t
from labkit.gemm.interface.arrange import arranged, in_pieces, lies_in_pieces, rearrange
from labkit.gemm.interface.candidates import Candidate
from labkit.gemm.interface.combine import combined
from labkit.gemm.interface.precisions import Precision
from labkit.gemm.ladder import Step, step
from labkit.gemm.tensor import s08_general
from labkit.gemm.tensor.plans import MN_ROWS, Plan, Work, in_boxes
from labkit.gemm.views import matrix_of, row, rows_of, turned
from labkit.gemm.workspace import counters, workspace

MOST_ROWS = 2**19  # that a launch takes: a grid has at most 65535 blocks along y, each of 16 rows or more


def carry_out(candidate: Candidate, precision: Precision, left, right, C, alpha: float, beta: float, stream=0) -> None:
    """C = alpha * left @ right.T + beta * C.

    Parameters
    ----------
    candidate
        One of those that `candidates` gives for the precision.
    left, right, C
        Arrays of the device, M x K, N x K and M x N, or batches of such; where C is a batch, one of the operands may be
        a matrix. K is at least 1.
    """
    if candidate.plan is not None:
        by_plan(candidate.plan, left, right, C, alpha, beta, stream)
    elif candidate.step == "gemv":
        by_gemv(left, right, C, alpha, beta, stream)
    else:
        by_step(step(precision.ladder, candidate.step), precision, left, right, C, alpha, beta, stream)


def by_plan(plan: Plan, left, right, C, alpha, beta, stream):
    """By the last step of the tensor ladder, which knows alpha, beta and batches.

    Where one operand is a batch and the other a matrix, the matrices take a launch each.
    """
    M, N = C.shape[-2:]
    plan = _suited(plan, left, right, C)
    rows_of_left, rows_of_right = (plan.cols, plan.rows) if plan.swapped else (plan.rows, plan.cols)  # in a tile
    left, right = _for_tiles(left, rows_of_left, "left", stream), _for_tiles(right, rows_of_right, "right", stream)
    result = C
    if not lies_in_pieces(C, (M, N)):
        result = workspace("product", (*C.shape[:-1], in_pieces(N, C.dtype)), C.dtype, stream)
        if beta != 0:
            rearrange(C, result, stream)
    if len({len(X.shape) for X in (left, right, C)}) == 1:
        s08_general.launch_as(left, right, result, plan, alpha, beta, stream)
    else:
        for z in range(C.shape[0]):
            matrices = (matrix_of(X, z) for X in (left, right, result))
            s08_general.launch_as(*matrices, plan, alpha, beta, stream)
    if result is not C:
        rearrange(result, C, stream)


def _suited(plan, left, right, C):
    """The plan, or another where the operand whose tiles have its columns runs along its rows."""
    X = left if plan.swapped else right
    if not _runs_along_rows(X):
        return plan
    row_bytes = X.shape[-1] * X.dtype.itemsize
    work = Work(*C.shape[-2:], row_bytes, *C.shape[:-2])
    return in_boxes(plan, work, cuda.get_current_device().MULTIPROCESSOR_COUNT, prod(X.shape[:-1]) * row_bytes)


def _for_tiles(X, rows, role, stream):
    """An operand as it lies, along k or, if so many rows in a tile are whole boxes, along its rows; or else a copy."""
    if _runs_along_rows(X) and rows % MN_ROWS == 0:
        return X
    return arranged(X, (X.shape[-2], in_pieces(X.shape[-1], X.dtype)), role, stream)


def _runs_along_rows(X) -> bool:
    """Whether an operand has 16-bit elements that lie side by side along its rows, in whole pieces."""
    *_, rows, K = X.shape
    return X.dtype.itemsize == 2 and lies_in_pieces(turned(X), (K, rows))


def by_gemv(left, right, C, alpha, beta, stream):
    """By BLAS level 2, where C is a row or a column: a matrix times a vector, which only has to be read."""
    for z in range(C.shape[0] if len(C.shape) == 3 else 1):
        left_z, right_z, C_z = (matrix_of(X, z) for X in (left, right, C))
        if C_z.shape[1] != 1:
            left_z, right_z, C_z = right_z, left_z, turned(C_z)
        x, y = row(right_z), row(turned(C_z))
        if left_z.strides[0] < left_z.strides[1]:
            A = turned(left_z)
            (strips, parts), _ = gemv_t.geometry(*A.shape)
            partials = workspace("partials", (parts, strips * gemv_t.STRIP), np.float32, stream)
            gemv_t.launch(alpha, A, x, beta, y, (partials, counters(strips, stream)), stream)
        else:
            gemv.launch(alpha, left_z, x, beta, y, stream)


def by_step(step: Step, precision: Precision, left, right, C, alpha, beta, stream):
    """By a step of a ladder, which multiplies one matrix by another and knows neither alpha nor beta.

    The matrices of a batch take a launch each, and so do the parts of one with millions of rows. Where alpha is not 1
    or beta not 0, the product is rounded to the result's format before the sum is.
    """
    (M, N), K = C.shape[-2:], left.shape[-1]
    in_place = (alpha, beta) == (1, 0)
    width = N
    if precision.ladder == "fp32" and not hasattr(step.module, "check_c_order"):  # a step that takes any strides
        A, B = left, turned(right)
    else:
        K, width = in_pieces(K, left.dtype), in_pieces(N, C.dtype)
        gaps = precision.ladder == "tensor"
        in_place = in_place and lies_in_pieces(C, (M, N), gaps)
        A = arranged(left, (M, K), "left", stream, gaps)
        if precision.ladder == "fp32":
            B = arranged(turned(right), (K, width), "right", stream, gaps)
        else:
            B = arranged(right, (N, K), "right", stream, gaps)
    product = C if in_place else workspace("product", (*C.shape[:-1], width), C.dtype, stream)
    for z in range(C.shape[0] if len(C.shape) == 3 else 1):
        A_z, B_z, product_z = matrix_of(A, z), matrix_of(B, z), matrix_of(product, z)
        for first in range(0, M, MOST_ROWS):
            step.launch(rows_of(A_z, first, MOST_ROWS), B_z, rows_of(product_z, first, MOST_ROWS), stream)
    if product is not C:
        combined(product, C, alpha, beta, precision.result_format, stream)

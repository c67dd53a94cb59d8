"""A product computed in one of the ways there are, whatever its operands look like."""

from math import prod

from labkit import cuda
from labkit.arrays.views import matrix_of, parts_of_columns, parts_of_rows, row, rows_of, turned, viewed
from labkit.arrays.workspace import workspace
from labkit.blas import gemv, gemv_t
from labkit.gemm.interface.arrange import arranged, in_pieces, lies_in_pieces, rearrange
from labkit.gemm.interface.candidates import Candidate
from labkit.gemm.interface.combine import add_up, combined
from labkit.gemm.interface.planes import in_planes
from labkit.gemm.interface.precisions import Precision
from labkit.gemm.library.constants import MN_ROWS
from labkit.gemm.library.launches import launch_as
from labkit.gemm.library.tilings import Tiling, Work, in_boxes
from labkit.ladder import Step, ladder
from labkit.layout import is_in_c_order
from labkit.ptx import TF32

MOST_ROWS = 2**19  # that a launch takes: a grid has at most 65535 blocks along y, each of 16 rows or more
MOST_PLANES = 2**15  # of a grid, which has at most 65535 blocks along z


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
    if candidate.tiling is not None:
        by_tiling(candidate.tiling, left, right, C, alpha, beta, stream)
    elif candidate.step == "gemv":
        by_gemv(left, right, C, alpha, beta, stream)
    elif candidate.splits > 1:
        by_parts(
            ladder("gemm", precision.ladder).step(candidate.step), candidate.splits, left, right, C, alpha, beta, stream
        )
    else:
        by_step(ladder("gemm", precision.ladder).step(candidate.step), precision, left, right, C, alpha, beta, stream)


def by_tiling(tiling: Tiling, left, right, C, alpha, beta, stream):
    """By the library's kernel, which knows alpha, beta and batches.

    Where one operand is a batch and the other a matrix, the matrices take a launch each.
    """
    M, N = C.shape[-2:]
    tiling = _suited(tiling, left, right, C)
    rows_of_left, rows_of_right = (
        (tiling.cols, tiling.rows) if tiling.swapped else (tiling.rows, tiling.cols)
    )  # in a tile
    left, right = _for_tiles(left, rows_of_left, "left", stream), _for_tiles(right, rows_of_right, "right", stream)
    result = C
    if not lies_in_pieces(C, (M, N)):
        result = workspace("product", (*C.shape[:-1], in_pieces(N, C.dtype)), C.dtype, stream)
        if beta != 0:
            rearrange(C, result, stream)
    if len({len(X.shape) for X in (left, right, C)}) == 1:
        launch_as(left, right, result, tiling, alpha, beta, stream)
    else:
        for z in range(C.shape[0]):
            matrices = (matrix_of(X, z) for X in (left, right, result))
            launch_as(*matrices, tiling, alpha, beta, stream)
    if result is not C:
        rearrange(result, C, stream)


def _suited(tiling, left, right, C):
    """The tiling, or another where the operand whose tiles have its columns runs along its rows."""
    X = left if tiling.swapped else right
    if not _runs_along_rows(X):
        return tiling
    row_bytes = X.shape[-1] * X.dtype.itemsize
    work = Work(*C.shape[-2:], row_bytes, *C.shape[:-2])
    return in_boxes(tiling, work, cuda.get_current_device().MULTIPROCESSOR_COUNT, prod(X.shape[:-1]) * row_bytes)


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
    """By BLAS level 2, where C has few rows or columns: a matrix times a vector for each, which only has to be read."""
    for z in range(C.shape[0] if len(C.shape) == 3 else 1):
        left_z, right_z, C_z = (matrix_of(X, z) for X in (left, right, C))
        if C_z.shape[0] < C_z.shape[1]:
            left_z, right_z, C_z = right_z, left_z, turned(C_z)
        for column in range(C_z.shape[1]):
            _by_gemv(left_z, row(right_z, column), row(turned(C_z), column), alpha, beta, stream)


def _by_gemv(matrix, x, y, alpha, beta, stream):
    """y = alpha * matrix @ x + beta * y, by the kernel that reads the matrix along its memory."""
    if matrix.strides[0] >= matrix.strides[1]:
        gemv.launch(alpha, matrix, x, beta, y, stream=stream)
    else:
        gemv_t.launch(alpha, turned(matrix), x, beta, y, stream=stream)


def by_step(step: Step, precision: Precision, left, right, C, alpha, beta, stream):
    """By a step of a ladder, which multiplies one matrix by another and knows neither alpha nor beta.

    Where alpha is not 1 or beta not 0, the product is rounded to the result's format before the sum is.
    """
    (M, N), K = C.shape[-2:], left.shape[-1]
    in_place = (alpha, beta) == (1, 0)
    width = N
    if precision.ladder == "fp32" and _takes_any_strides(step):
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
    _launch(step, A, B, product, stream)
    if product is not C:
        combined(product, C, alpha, beta, precision.result_format, stream)


def by_parts(step: Step, splits: int, left, right, C, alpha, beta, stream):
    """One product of float32 by a step that multiplies so many parts of k, each as a matrix of a batch."""
    M, N = C.shape
    K, width = splits * in_pieces(-(-left.shape[1] // splits), left.dtype), in_pieces(N, C.dtype)
    if left.shape[1] < K:
        left = arranged(left, (M, K), "left", stream, gaps=False)
    A = workspace("parts of left", (splits, M, K // splits), left.dtype, stream)
    rearrange(parts_of_rows(left, splits), A, stream)
    B = parts_of_columns(arranged(turned(right), (K, width), "right", stream, gaps=False), splits)
    product = workspace("product", (splits, M, width), C.dtype, stream)
    _launch(step, A, B, product, stream)
    of_parts = viewed(product, (splits, 1, M, width), (product.strides[0], *product.strides))
    add_up(of_parts, C, alpha, beta, TF32, stream)


def _takes_any_strides(step):
    return not hasattr(step.module, "check_c_order")


def _launch(step: Step, A, B, C, stream):
    """C = A @ B by a step: a batch of float32 by one launch, if its order allows that, else each matrix by its own.

    A matrix with millions of rows takes several launches.
    """
    *batch, M, N = C.shape
    batches = batch[0] if batch else 1
    if batch and M <= MOST_ROWS and step.ladder.name == "fp32" and _fits_planes(step, A, B, C):
        grid, block = step.geometry(M, N)
        for first in range(0, batches, MOST_PLANES):
            planes = (*grid, min(MOST_PLANES, batches - first))
            matrices = (rows_of(X, first, MOST_PLANES) for X in (A, B, C))
            in_planes(step.kernel)[planes, block, stream, step.shared_bytes](*matrices)
        return
    for z in range(batches):
        A_z, B_z, C_z = (matrix_of(X, z) for X in (A, B, C))
        for first in range(0, M, MOST_ROWS):
            matrices = rows_of(A_z, first, MOST_ROWS), B_z, rows_of(C_z, first, MOST_ROWS)
            format = next(one for one in step.formats if one.dtype == A_z.dtype)
            step.launch(*matrices, stream=stream, format=format)


def _fits_planes(step, *arrays):
    """Whether these are batches of as many matrices each, which lie as the step takes them."""
    if len({X.shape[:-2] for X in arrays}) > 1:
        return False
    return _takes_any_strides(step) or all(is_in_c_order(X.shape, X.strides, X.dtype.itemsize) for X in arrays)

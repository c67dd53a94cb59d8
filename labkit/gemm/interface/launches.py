"""What computes a product in one of the ways there are, whatever its operands look like: a list of launches."""

from math import prod

from labkit import cuda
from labkit.arrays.addresses import address_of, has_c_order, has_vector_rows, round_up_to_vectors
from labkit.arrays.views import (
    WORD_BYTES,
    as_strided,
    row,
    select_matrix,
    slice_rows,
    split_columns,
    split_rows,
    transpose,
)
from labkit.arrays.workspace import Workspace
from labkit.formats import FP32, Format
from labkit.gemm.interface.arrange import arranged
from labkit.gemm.interface.candidates import Candidate, step_of
from labkit.gemm.interface.combine import add_up, combined
from labkit.gemm.interface.planes import in_planes
from labkit.gemm.library import launches as library
from labkit.gemm.library.constants import MN_ROWS
from labkit.gemm.library.tilings import Tiling, Work, in_boxes
from labkit.ladder import Launch, Step, ladder
from labkit.layouts.interface.strided import rearrange

MOST_ROWS = 2**19  # that a launch takes: a grid has at most 65535 blocks along y, each of 16 rows or more
MOST_PLANES = 2**15  # of a grid, which has at most 65535 blocks along z


def launches(
    candidate: Candidate, format: Format, left, right, C, alpha: float, beta: float, workspace: Workspace, added=None
) -> list[Launch]:
    """C = alpha * left @ right.T + beta * C.

    Parameters
    ----------
    candidate
        One of those that `candidates` gives for the format.
    left, right, C
        Arrays of the device, M x K, N x K and M x N, or batches of such; where C is a batch, one of the operands may be
        a matrix. K is at least 1.
    added
        What beta is multiplied with in the place of C, an array of its shape, of any strides.
    """
    product = left, right, C if added is None else added, C, alpha, beta
    if candidate.tiling is not None:
        return by_tiling(candidate.tiling, format, *product, workspace)
    if candidate.step == "gemv":
        return by_gemv(*product, workspace)
    step = step_of(candidate, format)
    if candidate.splits > 1:
        return by_parts(step, candidate.splits, *product, workspace)
    return by_step(step, format, *product, workspace)


def by_tiling(tiling: Tiling, format: Format, left, right, added, C, alpha, beta, workspace):
    """By the library's kernel, which knows alpha, beta and batches.

    Where one operand is a batch and the other a matrix, the matrices take a launch each.
    """
    M, N = C.shape[-2:]
    tiling = _suited(tiling, left, right, C)
    of_left, of_right = (tiling.cols, tiling.rows) if tiling.swapped else (tiling.rows, tiling.cols)  # rows in a tile
    made = []
    left = _for_tiles(left, of_left, "left", workspace, made)
    right = _for_tiles(right, of_right, "right", workspace, made)
    result = C
    if not has_vector_rows(C, (M, N)):
        result = workspace.array("product", (*C.shape[:-1], round_up_to_vectors(N, C.dtype)), C.dtype)
    if beta == 0:  # what is added does not matter
        added = result
    elif added is not result and (result is not C or not _is_taken(added, tiling)):
        made.append(rearrange(added, result))
        added = result
    alike = len({len(X.shape) for X in (left, right, C)}) == 1
    for z in range(1 if alike else C.shape[0]):
        *operands, its = (X if alike else select_matrix(X, z) for X in (left, right, result, added))
        made += library.launches(*operands, tiling, alpha, beta, workspace, its, format)
    if result is not C:
        made.append(rearrange(result, C))
    return made


def _suited(tiling, left, right, C):
    """The tiling, or another where the operand whose tiles have its columns runs along its rows."""
    X = left if tiling.swapped else right
    if not _runs_along_rows(X):
        return tiling
    row_bytes = X.shape[-1] * X.dtype.itemsize
    work = Work(*C.shape[-2:], row_bytes, *C.shape[:-2])
    return in_boxes(tiling, work, cuda.get_current_device().MULTIPROCESSOR_COUNT, prod(X.shape[:-1]) * row_bytes)


def _for_tiles(X, rows, role, workspace, made):
    """An operand as it lies, along k or, if so many rows in a tile are whole boxes, along its rows; or else a copy."""
    if _runs_along_rows(X) and rows % MN_ROWS == 0:
        return X
    return arranged(X, (X.shape[-2], round_up_to_vectors(X.shape[-1], X.dtype)), role, workspace, made)


def _runs_along_rows(X) -> bool:
    """Whether an operand has 16-bit elements that lie side by side along its rows, in whole pieces."""
    *_, rows, K = X.shape
    return X.dtype.itemsize == 2 and has_vector_rows(transpose(X), (K, rows))


def _is_taken(added, tiling):
    """Whether the library's kernel can read what is added as it lies."""
    size = added.dtype.itemsize
    if tiling.swapped or size == WORD_BYTES:
        return True
    *apart, step = added.strides
    return step == size and not any(n % WORD_BYTES for n in (address_of(added), *apart))


def by_gemv(left, right, added, C, alpha, beta, workspace):
    """By BLAS level 2, where C has few rows or columns: a matrix times a vector for each, which only has to be read."""
    made = [] if added is C else [rearrange(added, C)]
    for z in range(C.shape[0] if len(C.shape) == 3 else 1):
        left_z, right_z, C_z = (select_matrix(X, z) for X in (left, right, C))
        if C_z.shape[0] < C_z.shape[1]:
            left_z, right_z, C_z = right_z, left_z, transpose(C_z)
        along = left_z.strides[0] >= left_z.strides[1]  # the kernel that reads the matrix along its memory
        step, matrix = (
            ladder("blas", "level2").step("gemv" if along else "gemv_t"),
            left_z if along else transpose(left_z),
        )
        for column in range(C_z.shape[1]):
            x, y = row(right_z, column), row(transpose(C_z), column)
            made += step.launches(alpha, matrix, x, beta, y, workspace=workspace)
    return made


def by_step(step: Step, format: Format, left, right, added, C, alpha, beta, workspace):
    """By a step of a ladder, which multiplies one matrix by another and knows neither alpha nor beta.

    Where alpha is not 1 or beta not 0, the product is rounded to the result's format before the sum is.
    """
    (M, N), K = C.shape[-2:], left.shape[-1]
    in_place, width, made = (alpha, beta) == (1, 0), N, []
    along_k = step.ladder.name == "tensor"  # in both operands
    if not along_k and _takes_any_strides(step):
        A, B = left, transpose(right)
    else:
        K, width = round_up_to_vectors(K, left.dtype), round_up_to_vectors(N, C.dtype)
        in_place = in_place and has_vector_rows(C, (M, N), gaps=along_k)
        A = arranged(left, (M, K), "left", workspace, made, gaps=along_k)
        B, rows = (right, (N, K)) if along_k else (transpose(right), (K, width))
        B = arranged(B, rows, "right", workspace, made, gaps=along_k)
    product = C if in_place else workspace.array("product", (*C.shape[:-1], width), C.dtype)
    made += _multiplied(step, format, A, B, product, workspace)
    if product is not C:
        made.append(combined(product, added, C, alpha, beta, format.result))
    return made


def by_parts(step: Step, splits: int, left, right, added, C, alpha, beta, workspace):
    """One product of float32 by a step that multiplies so many parts of k, each as a matrix of a batch."""
    (M, N), made = C.shape, []
    K, width = splits * round_up_to_vectors(-(-left.shape[1] // splits), left.dtype), round_up_to_vectors(N, C.dtype)
    if left.shape[1] < K:
        left = arranged(left, (M, K), "left", workspace, made, gaps=False)
    A = workspace.array("parts of left", (splits, M, K // splits), left.dtype)
    made.append(rearrange(split_columns(left, splits), A))
    B = split_rows(arranged(transpose(right), (K, width), "right", workspace, made, gaps=False), splits)
    product = workspace.array("product", (splits, M, width), C.dtype)
    made += _multiplied(step, FP32, A, B, product, workspace)
    of_parts = as_strided(product, (splits, 1, M, width), (product.strides[0], *product.strides))
    return [*made, add_up(of_parts, added, C, alpha, beta, FP32)]


def _takes_any_strides(step):
    return not hasattr(step.module, "check_c_order")


def _multiplied(step: Step, format, A, B, C, workspace):
    """C = A @ B by a step: a batch of float32 by one launch, if its order allows that, else each matrix by its own.

    A matrix with millions of rows takes several launches.
    """
    *batch, M, N = C.shape
    batches, made = batch[0] if batch else 1, []
    if batch and M <= MOST_ROWS and step.ladder.name == "fp32" and _fits_planes(step, A, B, C):
        grid, block = step.geometry(M, N)
        beside = len(A.shape) == 2
        for first in range(0, batches, MOST_PLANES):
            planes = (*grid, min(MOST_PLANES, batches - first))
            left = A if beside else slice_rows(A, first, MOST_PLANES)
            matrices = left, slice_rows(B, first, MOST_PLANES), slice_rows(C, first, MOST_PLANES)
            made.append(Launch(in_planes(step.kernel, beside), planes, block, matrices, step.shared_bytes))
        return made
    for z in range(batches):
        A_z, B_z, C_z = (select_matrix(X, z) for X in (A, B, C))
        for first in range(0, M, MOST_ROWS):
            matrices = slice_rows(A_z, first, MOST_ROWS), B_z, slice_rows(C_z, first, MOST_ROWS)
            made += step.launches(*matrices, format=format, workspace=workspace)
    return made


def _fits_planes(step, A, B, C):
    """Whether these are batches of as many matrices each, or A is one matrix, and lie as the step takes them."""
    if B.shape[:-2] != C.shape[:-2] or A.shape[:-2] not in ((), C.shape[:-2]):
        return False
    return _takes_any_strides(step) or all(map(has_c_order, (A, B, C)))

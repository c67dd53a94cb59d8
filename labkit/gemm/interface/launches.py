"""Launches that compute a product by any candidate, for operands of any strides."""

from math import prod
from typing import NamedTuple

from labkit import cuda
from labkit.arrays.addresses import address_of, has_c_order, has_vector_rows, round_up_to_vectors
from labkit.arrays.views import (
    WORD_BYTES,
    as_strided,
    row,
    select_matrix,
    slice_rows,
    split_columns,
    transpose,
)
from labkit.arrays.workspace import Workspace
from labkit.formats import FP32, Format
from labkit.gemm import small
from labkit.gemm.bandwidth import dram_bytes_per_cycle
from labkit.gemm.interface.arrange import align_lines, arrange_operand, straddles_sectors
from labkit.gemm.interface.candidates import Candidate, find_step
from labkit.gemm.interface.combine import combine_product
from labkit.gemm.interface.planes import batched_kernel
from labkit.gemm.library import launches as library
from labkit.gemm.library.constants import MN_ROWS
from labkit.gemm.library.tilings import Tiling, Work, choose_copies, choose_whole_boxes
from labkit.gemm.parts import add_parts_launch
from labkit.gemm.problem import LayerProblem
from labkit.gemm.simt import launches as simt
from labkit.ladder import Launch, Step, ladder
from labkit.layouts.interface.strided import make_strided_copy

MAX_ROWS = 2**19  # per launch: a grid has at most 65535 blocks along y, each of 16 rows or more
MAX_PLANES = 2**15  # per grid, which has at most 65535 blocks along z


class Terms(NamedTuple):
    """Terms of C = alpha * left @ right.T + beta * added: device arrays, or batches of matrices, and factors."""

    left: object
    right: object
    added: object
    C: object
    alpha: float
    beta: float


def launches(
    candidate: Candidate, format: Format, left, right, C, alpha: float, beta: float, workspace: Workspace, added=None
) -> list[Launch]:
    """Return the launches of C = alpha * left @ right.T + beta * added.

    Parameters
    ----------
    candidate
        One of `candidates` for the format.
    left, right, C
        Device arrays, M x K, N x K and M x N, or batches of them; where C is a batch, one operand may be a matrix.
        K is at least 1.
    added
        Array of C's shape, of any strides; C if it is None.
    """
    terms = Terms(left, right, C if added is None else added, C, alpha, beta)
    if candidate.step == "general":
        if candidate.parts > 1:
            return library_launches_in_parts(candidate, format, terms, workspace)
        return library_launches(candidate.tiling, format, terms, workspace)
    if candidate.step == "simt":
        return simt_launches(candidate.tiling, terms, workspace)
    if candidate.step == "small":
        return small.launches(left, right, C, format, alpha, beta, terms.added)
    if candidate.step == "gemv":
        return gemv_launches(terms, workspace)
    return step_launches(find_step(candidate, format), format, terms, workspace)


def library_launches(tiling: Tiling, format: Format, terms: Terms, workspace: Workspace) -> list[Launch]:
    """Return launches of the library's kernel, which applies alpha and beta and takes batches.

    Where one operand is a batch and the other a matrix, there is one launch per matrix.
    """
    left, right, added, C, alpha, beta = terms
    M, N = C.shape[-2:]
    tiling = _adapt_tiling(tiling, left, right, C)
    left_rows, right_rows = (tiling.cols, tiling.rows) if tiling.swapped else (tiling.rows, tiling.cols)  # of a tile
    launch_list = []
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    copies = choose_copies(tiling, _work_of(left, right, C), sms, dram_bytes_per_cycle())
    left, right = (
        align_lines(X, role, workspace, launch_list) if copied else X
        for X, role, copied in ((left, "left", copies[0]), (right, "right", copies[1]))
    )
    left = _prepare_operand(left, left_rows, "left", workspace, launch_list)
    right = _prepare_operand(right, right_rows, "right", workspace, launch_list)
    result = C
    if not has_vector_rows(C, (M, N)):
        result = workspace.array("product", (*C.shape[:-1], round_up_to_vectors(N, C.dtype)), C.dtype)
    if beta == 0:  # the kernel does not read `added`
        added = result
    elif added is not result and (result is not C or not _can_read_added(added, tiling)):
        launch_list.append(make_strided_copy(added, result))
        added = result
    same_rank = len({len(X.shape) for X in (left, right, C)}) == 1
    for z in range(1 if same_rank else C.shape[0]):
        *operands, added_z = (X if same_rank else select_matrix(X, z) for X in (left, right, result, added))
        launch_list += library.launches(
            *operands, tiling, alpha, beta, workspace=workspace, added=added_z, format=format
        )
    if result is not C:
        launch_list.append(make_strided_copy(result, C))
    return launch_list


def library_launches_in_parts(candidate: Candidate, format: Format, terms: Terms, workspace: Workspace) -> list[Launch]:
    """Return launches of the library's kernel for parts of k as a batch, whose float32 sums a last launch adds."""
    left, right, added, C, alpha, beta = terms
    left, right = (split_columns(X, candidate.parts) for X in (left, right))
    M, N = C.shape
    parts = workspace.array("parts of the sum", (candidate.parts, M, round_up_to_vectors(N, FP32.dtype)), FP32.dtype)
    product = as_strided(parts, (candidate.parts, M, N), parts.strides)
    launch_list = library_launches(candidate.tiling, format, Terms(left, right, product, product, 1, 0), workspace)
    parts = as_strided(parts, (candidate.parts, 1, *parts.shape[1:]))
    return [*launch_list, add_parts_launch(parts, added, C, alpha, beta, format.result)]


def _adapt_tiling(tiling, left, right, C):
    """Return the tiling, or another one where the operand of the tiles' columns is MN-major."""
    X = left if tiling.swapped else right
    if not _is_mn_major(X):
        return tiling
    work, sms = _work_of(left, right, C), cuda.get_current_device().MULTIPROCESSOR_COUNT
    return choose_whole_boxes(tiling, work, sms, prod(X.shape[:-1]) * work.row_bytes, dram_bytes_per_cycle())


def _work_of(left, right, C) -> Work:
    row_bytes = left.shape[-1] * left.dtype.itemsize
    return Work(*C.shape[-2:], row_bytes, prod(C.shape[:-2]), (straddles_sectors(left), straddles_sectors(right)))


def _prepare_operand(X, tile_rows, role, workspace, launch_list):
    """Return an operand unchanged if the kernel can read it, K-major or in whole MN-major boxes; else a copy."""
    if _is_mn_major(X) and tile_rows % MN_ROWS == 0:
        return X
    return arrange_operand(X, (X.shape[-2], round_up_to_vectors(X.shape[-1], X.dtype)), role, workspace, launch_list)


def _is_mn_major(X) -> bool:
    """Return whether 16-bit elements are contiguous along an operand's rows index, in whole 16-byte pieces."""
    *_, rows, K = X.shape
    return X.dtype.itemsize == 2 and has_vector_rows(transpose(X), (K, rows))


def _can_read_added(added, tiling):
    """Return whether the library's kernel can read `added` without a copy."""
    size = added.dtype.itemsize
    if tiling.swapped or size == WORD_BYTES:
        return True
    *strides, element_stride = added.strides
    return element_stride == size and not any(n % WORD_BYTES for n in (address_of(added), *strides))


def simt_launches(tiling: simt.Tiling, terms: Terms, workspace: Workspace) -> list[Launch]:
    """Return launches of the kernel for CUDA cores, which takes all strides but negative ones."""
    left, right, added, C, alpha, beta = terms
    launch_list = []
    left, right = (
        arrange_operand(X, (X.shape[-2], round_up_to_vectors(X.shape[-1], X.dtype)), role, workspace, launch_list)
        if min(X.strides[-2:]) < 0
        else X
        for X, role in ((left, "left"), (right, "right"))
    )
    result = workspace.array("product", C.shape, C.dtype) if min(C.strides[-2:]) < 0 else C
    launch_list += simt.launches(left, right, result, tiling, alpha, beta, added, workspace)
    return launch_list if result is C else [*launch_list, make_strided_copy(result, C)]


def gemv_launches(terms: Terms, workspace: Workspace) -> list[Launch]:
    """Return launches of BLAS level 2 for a C of few rows or columns: a matrix times a vector for each of them."""
    left, right, added, C, alpha, beta = terms
    launch_list = [] if added is C else [make_strided_copy(added, C)]
    for z in range(C.shape[0] if len(C.shape) == 3 else 1):
        left_z, right_z, C_z = (select_matrix(X, z) for X in (left, right, C))
        if C_z.shape[0] < C_z.shape[1]:
            left_z, right_z, C_z = right_z, left_z, transpose(C_z)
        is_row_major = left_z.strides[0] >= left_z.strides[1]
        step = ladder("blas", "level2").step("gemv" if is_row_major else "gemv_t")
        matrix = left_z if is_row_major else transpose(left_z)
        for column in range(C_z.shape[1]):
            x, y = row(right_z, column), row(transpose(C_z), column)
            launch_list += step.launches(alpha, matrix, x, beta, y, workspace=workspace)
    return launch_list


def step_launches(step: Step, format: Format, terms: Terms, workspace: Workspace) -> list[Launch]:
    """Return launches of a ladder's step, which multiplies two matrices without alpha and beta.

    Where alpha is not 1 or beta not 0, the product is rounded to the result's format before the sum is.
    """
    left, right, added, C, alpha, beta = terms
    (M, N), K = C.shape[-2:], left.shape[-1]
    writes_to_C, product_columns, launch_list = (alpha, beta) == (1, 0), N, []
    along_k = issubclass(step.problem, LayerProblem)  # whether rows of both operands run along k
    if not along_k and _takes_any_strides(step):
        A, B = left, transpose(right)
    else:
        K, product_columns = round_up_to_vectors(K, left.dtype), round_up_to_vectors(N, C.dtype)
        writes_to_C = writes_to_C and has_vector_rows(C, (M, N), gaps=along_k)
        A = arrange_operand(left, (M, K), "left", workspace, launch_list, allow_gaps=along_k)
        B, B_shape = (right, (N, K)) if along_k else (transpose(right), (K, product_columns))
        B = arrange_operand(B, B_shape, "right", workspace, launch_list, allow_gaps=along_k)
    product = C if writes_to_C else workspace.array("product", (*C.shape[:-1], product_columns), C.dtype)
    launch_list += _multiply(step, format, A, B, product, workspace)
    if product is not C:
        launch_list.append(combine_product(product, added, C, alpha, beta, format.result))
    return launch_list


def _takes_any_strides(step):
    return not hasattr(step.module, "check_c_order")  # which its `launches` would call


def _multiply(step: Step, format, A, B, C, workspace):
    """Return launches of C = A @ B: one for a float32 batch in C order, else one per matrix and its MAX_ROWS rows."""
    *batch, M, N = C.shape
    batches, launch_list = batch[0] if batch else 1, []
    if batch and M <= MAX_ROWS and step.ladder.name == "fp32" and _can_batch(step, A, B, C):
        grid, block = step.geometry(M, N)
        is_A_shared = len(A.shape) == 2
        for z in range(0, batches, MAX_PLANES):
            batch_grid = (*grid, min(MAX_PLANES, batches - z))
            left = A if is_A_shared else slice_rows(A, z, MAX_PLANES)
            matrices = left, slice_rows(B, z, MAX_PLANES), slice_rows(C, z, MAX_PLANES)
            kernel = batched_kernel(step.kernel, is_A_shared)
            launch_list.append(Launch(kernel, batch_grid, block, matrices, step.shared_bytes))
        return launch_list
    for z in range(batches):
        A_z, B_z, C_z = (select_matrix(X, z) for X in (A, B, C))
        for m in range(0, M, MAX_ROWS):
            matrices = slice_rows(A_z, m, MAX_ROWS), B_z, slice_rows(C_z, m, MAX_ROWS)
            launch_list += step.launches(*matrices, format=format, workspace=workspace)
    return launch_list


def _can_batch(step, A, B, C):
    """Return whether these are batches of equally many matrices, or A one matrix, in an order that the step takes."""
    if B.shape[:-2] != C.shape[:-2] or A.shape[:-2] not in ((), C.shape[:-2]):
        return False
    return _takes_any_strides(step) or all(map(has_c_order, (A, B, C)))

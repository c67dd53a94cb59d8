"""Launches of the kernel, C = alpha * left @ right.T + beta * added, for arrays of any strides."""

from functools import cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.addresses import has_aligned_rows, round_up_to_vectors
from labkit.arrays.views import as_batch, as_strided, transpose
from labkit.arrays.workspace import Workspace
from labkit.formats import FP32
from labkit.gemm.combine import combine_parts
from labkit.gemm.simt.constants import K_MAJOR, MN_MAJOR
from labkit.gemm.simt.kernel import Output, Tiles, simt
from labkit.gemm.simt.tilings import Block, Tiling, block_of
from labkit.ladder import Launch


def launches(left, right, C, tiling: Tiling, alpha: float, beta: float, added, workspace: Workspace) -> list[Launch]:
    """Return the launch of C = alpha * left @ right.T + beta * added, and that which adds the parts of k.

    The arrays are matrices or batches, M x K, N x K and M x N; where C is a batch, an operand may be a matrix.
    """
    block = block_of(tiling)
    if tiling.swapped:
        left, right, C, added = right, left, transpose(C), transpose(added)
    C, added = as_batch(C), as_batch(added)
    batches, rows, cols = C.shape
    output = Output(as_strided(C, (1, *C.shape), (0, *C.strides)), np.float32(alpha), np.float32(beta), added)
    later = []
    if tiling.parts > 1:
        shape = tiling.parts, batches, rows, round_up_to_vectors(cols, C.dtype)
        parts = workspace.array("parts", shape, C.dtype)
        later.append(combine_parts(parts, added, C, alpha, beta, FP32))
        output = Output(parts, np.float32(1), np.float32(0), added)
    left, right = (_repeat(X, batches) for X in (left, right))
    K = left.shape[-1]
    row_tiles, col_tiles = -(-rows // block.rows), -(-cols // block.cols)
    (left, left_major, left_width), (right, right_major, right_width) = map(_arrange, (left, right))
    width = 4 if output.array.shape[3] % 4 == 0 and has_aligned_rows(output.array) else 1
    kernel = specialise_kernel(block, left_major, left_width, right_major, right_width, width, bool(output.beta != 0))
    tiles = Tiles(*map(np.uint32, (row_tiles, col_tiles, tiling.parts, K)))
    grid = row_tiles * col_tiles * tiling.parts * batches
    return [Launch(kernel, grid, (32, block.warps), (left, right, tiles, output), block.shared_bytes), *later]


def _repeat(X, batches):
    """View a matrix as a batch that repeats it."""
    return X if len(X.shape) == 3 else as_strided(X, (batches, *X.shape), (0, *X.strides))


def _arrange(X) -> tuple:
    """Return an operand with contiguous rows, the axis along which these run, and the neighbours of one copy."""
    if abs(X.strides[2]) <= abs(X.strides[1]):
        return X, K_MAJOR, 4 if has_aligned_rows(X) else 1
    X = transpose(X)
    return X, MN_MAJOR, 4 if has_aligned_rows(X) else 1


@cache
def specialise_kernel(
    block: Block, left_major: int, left_width: int, right_major: int, right_width: int, output_width: int, adds: bool
):
    """Return the kernel compiled for a block, and for the operands' memory order and alignment."""
    left_shape, right_shape = (
        (block.stages, rows, block.step) if major == K_MAJOR else (block.stages, block.step, rows)
        for rows, major in ((block.rows, left_major), (block.cols, right_major))
    )
    threads = 32 * block.warps
    bounded = cuda.jit(launch_bounds=(threads, block.per_sm))(simt.py_func)
    return specialise(
        bounded,
        BM=block.rows,
        BN=block.cols,
        BK=block.step,
        SLICES=block.slices,
        WARPS_Y=block.warps_y,
        WARPS_X=block.warps_x,
        LANES_Y=block.lanes_y,
        LANES_X=block.lanes_x,
        TM=block.thread_rows,
        TN=block.thread_cols,
        DEPTH=block.step // block.slices,
        THREADS=threads,
        STAGES=block.stages,
        PENDING=block.stages - 2,
        LEFT_MAJOR=left_major,
        RIGHT_MAJOR=right_major,
        LEFT_SHAPE=left_shape,
        RIGHT_SHAPE=right_shape,
        LEFT_WIDTH=left_width,
        RIGHT_WIDTH=right_width,
        OUTPUT_WIDTH=output_width,
        ADDS=adds,
        RIGHT_BYTE=block.stages * block.rows * block.step * 4,
    )

"""Launches of the kernel, C = alpha * left @ right.T + beta * added, for arrays of any strides."""

from functools import cache
from typing import NamedTuple

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.addresses import has_aligned_rows, round_up_to_vectors
from labkit.arrays.views import as_batch, as_strided, flatten_memory, transpose
from labkit.arrays.workspace import Workspace
from labkit.formats import FP32
from labkit.gemm.early import is_early, previous_launch, release_next
from labkit.gemm.parts import add_parts_launch
from labkit.gemm.simt.constants import K_MAJOR, MN_MAJOR
from labkit.gemm.simt.kernel import Output, Tiles, simt
from labkit.gemm.simt.tiles import Operand
from labkit.gemm.simt.tilings import Block, Tiling, block_of
from labkit.ladder import Launch

EVEN_BLOCKS = 6  # per SM, which many waves spread evenly
MAX_LINE = 2**32 // 256  # elements between lines; of no tile with lines so far apart a 32-bit index counts them all


class Access(NamedTuple):
    """What the kernel is compiled for, besides a block: how it accesses the arrays.

    left_major, right_major: K_MAJOR or MN_MAJOR. left_width, right_width, width: neighbours of one access, of operands
    and result. index: type of indices within a tile. adds: whether an array is added.
    """

    left_major: int
    left_width: int
    right_major: int
    right_width: int
    width: int
    index: type
    adds: bool


def launches(left, right, C, tiling: Tiling, alpha: float, beta: float, added, workspace: Workspace) -> list[Launch]:
    """Return the launch of C = alpha * left @ right.T + beta * added, and that which adds the parts of k.

    The arrays are matrices or batches, M x K, N x K and M x N, whose rows and columns do not run backwards; where C is
    a batch, an operand may be a matrix.
    """
    block = block_of(tiling)
    if tiling.swapped:
        left, right, C, added = right, left, transpose(C), transpose(added)
    C, added = as_batch(C), as_batch(added)
    (batches, rows, cols), K = C.shape, left.shape[-1]
    left, left_major, left_width = _as_operand(left)
    right, right_major, right_width = _as_operand(right)
    row_tiles, col_tiles = -(-rows // block.rows), -(-cols // block.cols)
    tiles = Tiles(*map(np.uint32, (row_tiles, col_tiles, tiling.parts, K)))
    result, later = as_strided(C, (1, *C.shape), (0, *C.strides)), []
    if tiling.parts > 1:
        shape = tiling.parts, batches, rows, round_up_to_vectors(cols, C.dtype)
        result = workspace.array("parts", shape, C.dtype)
        later.append(add_parts_launch(result, added, C, alpha, beta, FP32))
        alpha, beta = 1, 0
    output, width = _as_output(result, added, alpha, beta)
    index = np.uint32 if max(left.line, right.line) < MAX_LINE else np.uint64
    access = Access(left_major, left_width, right_major, right_width, width, index, adds=bool(beta != 0))
    grid = row_tiles * col_tiles * tiling.parts * batches
    is_even = block.per_sm == 1 or grid >= EVEN_BLOCKS * cuda.get_current_device().MULTIPROCESSOR_COUNT
    begin = None if not is_early() else previous_launch if is_even else release_next
    kernel = specialise_kernel(block, access, begin)
    return [Launch(kernel, grid, (32, block.warps), (left, right, tiles, output), block.shared_bytes), *later]


def _as_operand(X) -> tuple[Operand, int, int]:
    """Return an operand, the axis along which its lines run, and the neighbours of one copy."""
    X = as_batch(X)
    major = K_MAJOR if X.strides[2] <= X.strides[1] else MN_MAJOR
    lines = X if major == K_MAJOR else transpose(X)
    vector, first = flatten_memory(X)
    batch, line, step = (stride // X.dtype.itemsize for stride in lines.strides)
    batch = batch if X.shape[0] > 1 else 0  # one matrix may be repeated
    numbers = np.int64(first), np.int64(batch), np.uint32(line), np.uint32(step), np.uint32(X.shape[1])
    return Operand(vector, *numbers), major, 4 if has_aligned_rows(lines) else 1


def _as_output(result, added, alpha, beta) -> tuple[Output, int]:
    """Return the output, and the neighbours that one access stores."""
    _, _, rows, cols = result.shape
    vector, first = flatten_memory(result)
    part, batch, row, col = (stride // result.dtype.itemsize for stride in result.strides)
    width = 4 if cols % 4 == 0 and has_aligned_rows(result) else 1
    strides = np.int64(first), np.int64(part), np.int64(batch), np.uint32(row), np.uint32(col)
    numbers = *strides, np.uint32(rows), np.uint32(cols), np.float32(alpha), np.float32(beta)
    return Output(vector, *numbers, added), width


@cache
def specialise_kernel(block: Block, access: Access, begin):
    """Return the kernel compiled for a block and the arrays' layouts; `begin` replaces `await_previous`, if any."""
    left_shape, right_shape = (
        (block.stages, rows, block.step) if major == K_MAJOR else (block.stages, block.step, rows)
        for rows, major in ((block.rows, access.left_major), (block.cols, access.right_major))
    )
    threads = 32 * block.warps
    bounded = cuda.jit(launch_bounds=(threads, block.per_sm), early=begin is previous_launch)(simt.py_func)
    if begin is not None:
        bounded = specialise(bounded, await_previous=begin)
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
        LEFT_MAJOR=access.left_major,
        RIGHT_MAJOR=access.right_major,
        LEFT_SHAPE=left_shape,
        RIGHT_SHAPE=right_shape,
        LEFT_WIDTH=access.left_width,
        RIGHT_WIDTH=access.right_width,
        OUTPUT_WIDTH=access.width,
        INDEX=access.index,
        ADDS=access.adds,
        RIGHT_BYTE=block.stages * block.rows * block.step * 4,
    )

"""Epilogue of a tile: accumulators are changed in registers (`blend`) and written to global memory (`store`).

A thread's accumulators are those of `ptx.wgmma`: two rows, 8 apart, and pairs of columns, 8 apart. `blend` or all of
`epilogue` may be replaced, and may read any tuple `output`; `store` needs its `map` and `array`.
"""

from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.library.constants import BOX, BOX_ACC, C_BYTE, FP32, NUM_ACC, PACK, RESULT, SWAPPED, WARPGROUPS, WM


class Output(NamedTuple):
    """Result array: a batch of rows x cols each, transposed if operands are swapped, with its factors.

    `added`, the array that beta multiplies, is C itself or an array of its shape.
    """

    map: ptx.TensorMap
    array: object
    rows: int
    cols: int
    alpha: np.float32
    beta: np.float32
    added: object


@cuda.jit(device=True)
def epilogue(acc, origin, output, box):
    """Blend and store a warpgroup's accumulators.

    `origin` is their product of the batch, first row and first column. `box` numbers the next of the warpgroup's two
    boxes in shared memory; returns the one after the store.
    """
    blend(acc, origin, output)
    if SWAPPED:
        store_swapped(acc, origin, output)
        return box
    return store(acc, origin, output, box)


@cuda.jit(device=True)
def thread_origin(origin):
    """Return the row and column of the thread's first accumulator."""
    _, top, left = origin
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    return top + warp % 4 * 16 + lane // 4, left + lane % 4 * 2


@cuda.jit(device=True)
def blend(acc, origin, output):
    """Multiply this thread's accumulators by alpha, and add beta times the elements of `output.added`.

    For columns outside of C, which are not stored, the thread reads its first column again. No load is conditional,
    so all loads of a row are in flight at once; loads of both rows would take too many registers.
    """
    added, rows, cols, beta = output.added, output.rows, output.cols, output.beta
    batch = origin[0]
    row, col = thread_origin(origin)
    for n in range(NUM_ACC):
        acc[n] *= output.alpha
    if beta != 0:
        for half in range(2):
            y = row + half * 8
            if y < rows and col < cols:
                for i in range(half * 2, NUM_ACC, 4):
                    x = col + i // 4 * 8
                    x = x if x < cols else col
                    if SWAPPED:
                        acc[i] += beta * decode_element(added[batch, x, y])
                        acc[i + 1] += beta * decode_element(added[batch, x + 1 if x + 1 < cols else x, y])
                    else:
                        if RESULT == FP32:
                            first, second = added[batch, y, x], added[batch, y, x + 1]
                        else:
                            first, second = ptx.unpack2(added[batch, y, x // 2], RESULT)
                        acc[i] += beta * first
                        acc[i + 1] += beta * second
            cuda.syncwarp()


@cuda.jit(device=True)
def decode_element(element):
    """Convert an element of the result to float32."""
    if RESULT == FP32:
        return element
    return ptx.unpack2(np.uint32(element), RESULT)[0]


@cuda.jit(device=True)
def store(acc, origin, output, box):
    """Store a tile by boxes with rows of 128 bytes, and return the next box.

    Where the columns are not whole boxes, the last box overlaps the one before: some columns are stored twice.
    """
    C_boxes = ptx.shared_array(C_BYTE, (WARPGROUPS, 2, WM, BOX), np.uint32)
    C_singles = ptx.shared_array(C_BYTE, (WARPGROUPS, 2, WM, BOX), np.float32)  # the same, for float32 results
    batch, top, left = origin
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    group, leads = warp // 4 - 1, warp % 4 == 0 and lane == 0
    box_row, box_piece = warp % 4 * 16 + lane % 16, lane // 16  # of the 16 bytes this lane stores
    for start in range(0, NUM_ACC, BOX_ACC):
        n = min(start, NUM_ACC - BOX_ACC)
        if leads:
            ptx.tma_store_wait(1)  # the box is free again
        ptx.barrier_sync(group + 1, 128)
        if RESULT == FP32:
            for piece in range(0, 8, 2):
                for half in range(2):
                    i = n + piece * 2 + half * 2
                    line = warp % 4 * 16 + half * 8 + lane // 4
                    word = (piece + lane % 4 // 2 ^ line % 8) * 4 + lane % 2 * 2
                    ptx.store2(C_singles, (group, box, line, word), acc[i], acc[i + 1])
        else:
            for piece in range(0, 8, 2):
                i = n + piece * 4
                ptx.stmatrix4(
                    C_boxes,
                    (group, box, box_row, (piece + box_piece ^ box_row % 8) * 4),
                    ptx.pack2(acc[i], acc[i + 1], RESULT),
                    ptx.pack2(acc[i + 2], acc[i + 3], RESULT),
                    ptx.pack2(acc[i + 4], acc[i + 5], RESULT),
                    ptx.pack2(acc[i + 6], acc[i + 7], RESULT),
                )
        ptx.fence_async()
        ptx.barrier_sync(group + 1, 128)
        if leads:
            ptx.tma_store(output.map, (batch, top, (left + n * 2) // PACK), C_boxes, (group, box, 0, 0))
            ptx.tma_store_commit()
        box = 1 - box
    return box


@cuda.jit(device=True)
def store_swapped(acc, origin, output):
    """Store the transpose of a tile element by element; such tiles are small."""
    C, batch = output.array, origin[0]
    row, col = thread_origin(origin)
    for n in range(0, NUM_ACC, 4):
        for half in range(2):
            y, x = row + half * 8, col + n * 2
            for i in range(2):
                if y < output.rows and x + i < output.cols:
                    value = acc[n + half * 2 + i]
                    if RESULT == FP32:
                        C[batch, x + i, y] = value
                    else:
                        C[batch, x + i, y] = ptx.pack2(value, value, RESULT) & 0xFFFF

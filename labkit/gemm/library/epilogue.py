"""What becomes of a tile's sums: they are changed in registers (`blend`), and brought to global memory (`store`).

A thread's sums are those of `ptx.wgmma`: of two rows, 8 apart, pairs of columns that lie 8 apart. `blend` or all of
`epilogue` may be replaced, and `output` is what they make of it; `store` takes `map` and `array` of it.
"""

from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.library.constants import BOX, BOX_SUMS, C_BYTE, EACH, FP32, RESULT, SUMS, SWAPPED, WARPGROUPS, WM


class Output(NamedTuple):
    """Where results go: a batch C of rows x cols each, transposed if operands have changed places, and its factors.

    `added` is what beta is the factor of: C itself, or an array of its shape.
    """

    map: ptx.TensorMap
    array: object
    rows: int
    cols: int
    alpha: np.float32
    beta: np.float32
    added: object


@cuda.jit(device=True)
def epilogue(sums, place, output, box):
    """Stores a warpgroup's sums: `place` is their product of the batch, and their first row and column.

    `box` is which of the warpgroup's two boxes in shared memory is the next, and the result which one is afterwards.
    """
    blend(sums, place, output)
    if SWAPPED:
        store_swapped(sums, place, output)
        return box
    return store(sums, place, output, box)


@cuda.jit(device=True)
def first_of_thread(place):
    """The row and column of the thread's first sum."""
    _, top, left = place
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    return top + warp % 4 * 16 + lane // 4, left + lane % 4 * 2


@cuda.jit(device=True)
def blend(sums, place, output):
    """alpha times this thread's sums, plus beta times what `output.added` holds there.

    For columns outside of C, whose sums nobody stores, the thread reads its first one once more: no load has a
    condition of its own, and so all of a row are under way at once; those of both its rows would take too many
    registers.
    """
    added, rows, cols, beta = output.added, output.rows, output.cols, output.beta
    batch = place[0]
    row, col = first_of_thread(place)
    for n in range(SUMS):
        sums[n] *= output.alpha
    if beta != 0:
        for half in range(2):
            y = row + half * 8
            if y < rows and col < cols:
                for i in range(half * 2, SUMS, 4):
                    x = col + i // 4 * 8
                    x = x if x < cols else col
                    if SWAPPED:
                        sums[i] += beta * number(added[batch, x, y])
                        sums[i + 1] += beta * number(added[batch, x + 1 if x + 1 < cols else x, y])
                    else:
                        if RESULT == FP32:
                            first, second = added[batch, y, x], added[batch, y, x + 1]
                        else:
                            first, second = ptx.unpack2(added[batch, y, x // 2], RESULT)
                        sums[i] += beta * first
                        sums[i + 1] += beta * second
            cuda.syncwarp()


@cuda.jit(device=True)
def number(element):
    """What an element of a result stands for."""
    if RESULT == FP32:
        return element
    return ptx.unpack2(np.uint32(element), RESULT)[0]


@cuda.jit(device=True)
def store(sums, place, output, box):
    """Stores a tile by boxes of 128 bytes a row; gives the box that is next.

    Where the columns are no whole boxes, the last one begins within the one before, and some are stored twice.
    """
    C_boxes = ptx.shared_array(C_BYTE, (WARPGROUPS, 2, WM, BOX), np.uint32)
    C_singles = ptx.shared_array(C_BYTE, (WARPGROUPS, 2, WM, BOX), np.float32)  # the same, for float32 results
    batch, top, left = place
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    group, leads = warp // 4 - 1, warp % 4 == 0 and lane == 0
    box_row, box_piece = warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
    for start in range(0, SUMS, BOX_SUMS):
        n = min(start, SUMS - BOX_SUMS)
        if leads:
            ptx.tma_store_wait(1)  # the box is free again
        ptx.barrier_sync(group + 1, 128)
        if RESULT == FP32:
            for piece in range(0, 8, 2):
                for half in range(2):
                    i = n + piece * 2 + half * 2
                    line = warp % 4 * 16 + half * 8 + lane // 4
                    word = (piece + lane % 4 // 2 ^ line % 8) * 4 + lane % 2 * 2
                    ptx.store2(C_singles, (group, box, line, word), sums[i], sums[i + 1])
        else:
            for piece in range(0, 8, 2):
                i = n + piece * 4
                ptx.stmatrix4(
                    C_boxes,
                    (group, box, box_row, (piece + box_piece ^ box_row % 8) * 4),
                    ptx.pack2(sums[i], sums[i + 1], RESULT),
                    ptx.pack2(sums[i + 2], sums[i + 3], RESULT),
                    ptx.pack2(sums[i + 4], sums[i + 5], RESULT),
                    ptx.pack2(sums[i + 6], sums[i + 7], RESULT),
                )
        ptx.fence_async()
        ptx.barrier_sync(group + 1, 128)
        if leads:
            ptx.tma_store(output.map, (batch, top, (left + n * 2) // EACH), C_boxes, (group, box, 0, 0))
            ptx.tma_store_commit()
        box = 1 - box
    return box


@cuda.jit(device=True)
def store_swapped(sums, place, output):
    """Stores the transpose of a tile, of which there is little."""
    C, batch = output.array, place[0]
    row, col = first_of_thread(place)
    for n in range(0, SUMS, 4):
        for half in range(2):
            y, x = row + half * 8, col + n * 2
            for i in range(2):
                if y < output.rows and x + i < output.cols:
                    value = sums[n + half * 2 + i]
                    if RESULT == FP32:
                        C[batch, x + i, y] = value
                    else:
                        C[batch, x + i, y] = ptx.pack2(value, value, RESULT) & 0xFFFF

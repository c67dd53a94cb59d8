"""Blocks stay, tiles come in many shapes, and where C is small the taps of a row count as channels.

Each block takes tile after tile, and the thread that asks for copies runs ahead into the next one while the results of
this one go out: sums become pairs of 16 bits, `stmatrix` lays them out in shared memory, and the copy engine takes
boxes of 64 x 64 from there to the outputs, whose rows are those of the tile. The kernel begins while the launch before
it still works, sets up its barriers, and waits.

`best_tiling` chooses the shape of the tiles for a problem. Two or three warpgroups multiply, each one or two times 64
pixels by 64 to 256 filters: 28 x 28 outputs of 64 images and 128 filters are 392 tiles of 128 x 128, which take three
rounds on 132 SMs, or 262 of 192 x 128, which take two.

With few channels most of the 64 that a copy brings would be zeros. Where C is no multiple of 8, so that images are
copied anyway, they get their border with that copy, too. Then the taps of a row of the filter are neighbours in memory,
and that row is one tap of S * C channels: windows that overlap are an array whose strides are shorter than its rows,
and to the copy engine that is an image like any other.

Costs, where C is a multiple of 64, K of BN and NPQ of BM:

    CRS / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    CRS / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    0                                 bytes of workspace

Limited by L2, from which every pixel comes anew for each tap: 64 channels of one take an SM of an H100 4.4 cycles, and
it multiplies them by 128 filters in 4. With 1 x 1 taps limited by device memory. Tried as well,
with 1 x 1 taps: the images as a matrix, in tiled copies, which took as long.
"""

from functools import cache
from math import ceil

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshaped
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.maps import pixel_map
from labkit.conv.tensor.operands import TAKES, as_outputs, prepared
from labkit.conv.tensor.tilings import BOXES, Tiling, best_tiling
from labkit.conv.tensor.windows import windows
from labkit.ladder import Launch
from labkit.parts.division import fast_divide
from labkit.parts.tile_order import tile_coordinates

FORMAT = RESULT = ptx.BF16
BM, BN = 128, 256  # a block's part of the outputs: pixels and filters
BK = 32  # words of channels that a stage holds, 128 bytes
STEP = 8  # words of channels that an instruction takes
STAGES = 4
WM = 64  # rows that a warpgroup multiplies at a time
TIMES = 1  # so many times
SUMS = WM * BN // 128  # of a thread, each time
WARPGROUPS = BM // (WM * TIMES)  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
BOX = 32  # words of a row of results that one copy stores, 128 bytes
IN_BOXES = True  # whether rows of outputs begin at multiples of 16 bytes, as copies want it
EVEN = True  # whether K is
FEW, MANY = 40, 232  # registers of a thread that asks for copies, and of one that multiplies
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
Y_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of results begin
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(device=True)
def store_box(y_map, y_boxes, box, sums, time, first, row, k, group):
    """Stores 64 rows of results from `row` on, and as many filters from `k` on, of which the sums begin at `first`."""
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    leads = warp % 4 == 0 and lane == 0
    box_row, box_piece = warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
    if leads:
        ptx.tma_store_wait(1)  # this one of the two boxes is free again
    ptx.barrier_sync(group + 1, 128)
    for piece in range(0, 8, 2):
        n = first + piece * 4
        ptx.stmatrix4(
            y_boxes,
            (group, box, box_row, (piece + box_piece ^ box_row % 8) * 4),
            ptx.pack2(sums[time, n], sums[time, n + 1], RESULT),
            ptx.pack2(sums[time, n + 2], sums[time, n + 3], RESULT),
            ptx.pack2(sums[time, n + 4], sums[time, n + 5], RESULT),
            ptx.pack2(sums[time, n + 6], sums[time, n + 7], RESULT),
        )
    ptx.fence_async()
    ptx.barrier_sync(group + 1, 128)
    if leads:
        ptx.tma_store(y_map, (row, k // 2), y_boxes, (group, box, 0, 0))
        ptx.tma_store_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def persistent(x_map, w_map, y_map, y, of, rows, cols):
    x_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, BN, BK), np.uint32)
    y_boxes = ptx.shared_array(Y_BYTE, (WARPGROUPS, BOXES, WM, BOX), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, WARPGROUPS)
        ptx.mbarrier_init_fence()
    elif warp == 1 and lane == 0:
        ptx.tma_prefetch(x_map)
        ptx.tma_prefetch(w_map)
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()  # from here on global memory is touched
    words = of.pieces.value * 4
    stage, parity = 0, 0

    if warp < 4:
        ptx.setmaxnreg_dec(FEW)
        if warp == 0 and lane == 0:
            for part in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
                row, col = tile_coordinates(part, rows, cols)
                top = np.uint32(row * BM)
                n = fast_divide(top, of.PQ)
                pq = np.uint32(top - n * of.PQ.value)
                p = fast_divide(pq, of.Q)
                corner_row = np.int32(p * of.stride_h - of.top)
                corner_col = np.int32((pq - p * of.Q.value) * of.stride_w - of.left)
                for r in range(of.R):
                    for s in range(of.S.value):
                        tap = np.int32(r * of.S.value + s)
                        tap = np.int32(of.RS) - 1 - tap if of.turn == 1 else tap
                        offset = r * of.dilation_h, s * of.dilation_w
                        for word in range(0, words, BK):
                            ptx.mbarrier_wait(empty, stage, 1 - parity)
                            ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                            corner = n, corner_row, corner_col, word
                            ptx.tma_load_pixels(x_tiles, (stage, 0, 0), x_map, corner, offset, full, stage)
                            ptx.tma_load(w_tiles, (stage, 0, 0), w_map, (col * BN, tap, word), full, stage)
                            stage += 1
                            if stage == STAGES:
                                stage, parity = 0, 1 - parity
    else:
        ptx.setmaxnreg_inc(MANY)
        sums = cuda.local.array((TIMES, SUMS), np.float32)
        group = warp // 4 - 1
        leads = warp % 4 == 0 and lane == 0
        steps = of.RS * (np.uint32(words + BK - 1) // np.uint32(BK))
        box = 0  # of two, which take turns
        for part in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
            row, col = tile_coordinates(part, rows, cols)
            for time in range(TIMES):
                for n in range(SUMS):
                    sums[time, n] = 0
            before = -1  # the stage that the tensor cores may still read
            for _ in range(steps):
                ptx.mbarrier_wait(full, stage, parity)
                ptx.wgmma_fence()
                for step in range(0, BK, STEP):
                    for time in range(TIMES):
                        a = stage, (group * TIMES + time) * WM, step
                        ptx.wgmma(sums, (time, 0), BN, x_tiles, a, w_tiles, (stage, 0, step), FORMAT)
                ptx.wgmma_commit()
                ptx.wgmma_wait(1)
                if leads and before >= 0:
                    ptx.mbarrier_arrive(empty, before)
                before = stage
                stage += 1
                if stage == STAGES:
                    stage, parity = 0, 1 - parity
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty, before)

            for time in range(TIMES):
                top, left = row * BM + (group * TIMES + time) * WM, col * BN
                if IN_BOXES:
                    for start in range(0, SUMS, BOX):
                        first = min(start, SUMS - BOX)  # the last box may begin within the one before
                        store_box(y_map, y_boxes, box, sums, time, first, top, left + first * 2, group)
                        box = 1 - box
                else:
                    npq = top + warp % 4 * 16 + lane // 4
                    for n in range(0, SUMS, 4):
                        k = left + n * 2 + lane % 4 * 2
                        store_pair(y, npq, k, ptx.pack2(sums[time, n], sums[time, n + 1], RESULT))
                        store_pair(y, npq + 8, k, ptx.pack2(sums[time, n + 2], sums[time, n + 3], RESULT))
        if leads:
            ptx.tma_store_wait(0)


by_three = cuda.jit(launch_bounds=(32 * 16, 1), early=True)(persistent.py_func)  # warpgroups that multiply


def launches(x, w, y, problem, format, workspace, tiling=None):
    """y = the convolution of x and w, by the tiling that is given."""
    problem.check(x, w, y, takes=TAKES, dtype=format.dtype)
    made, x, w, problem = prepared(x, w, problem, format, workspace, folds=True)
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    tiling = tiling or best_tiling(problem, sms)
    outputs, taps = as_outputs(y, problem), as_words(reshaped(w, problem.K * problem.R * problem.S, problem.C))
    filters = as_words(reshaped(w, problem.K, problem.R * problem.S, problem.C))
    in_boxes = problem.K % 8 == 0
    maps = (
        pixel_map(as_words(x), problem, tiling.pixels, BK),
        ptx.TensorMap(filters, (tiling.filters, 1, BK)),
        ptx.TensorMap(outputs if in_boxes else taps, (WM, BOX)),  # of any matrix where no copy goes to the outputs
    )
    rows, cols = ceil(problem.N * problem.P * problem.Q / tiling.pixels), ceil(problem.K / tiling.filters)
    arguments = *maps, outputs, windows(problem, format), rows, cols
    kernel = with_tiling(tiling, format, problem.K % 2 == 0, in_boxes)
    block = 32, 4 * (1 + tiling.groups)
    return [*made, Launch(kernel, min(rows * cols, sms), block, arguments, tiling.shared_bytes)]


@cache
def with_tiling(tiling: Tiling, format, even: bool, in_boxes: bool):
    """The kernel for a tiling and a format, and for outputs as `as_outputs` gives them."""
    few, many = tiling.registers
    return specialise(
        persistent if tiling.groups == 2 else by_three,
        FORMAT=format.number,
        RESULT=format.result.number,
        EVEN=even,
        IN_BOXES=in_boxes,
        BM=tiling.pixels,
        BN=tiling.filters,
        STAGES=tiling.stages,
        TIMES=tiling.times,
        FEW=few,
        MANY=many,
    )

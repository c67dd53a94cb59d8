"""Persistent blocks, tiles of many shapes, and with small C the taps of a row as channels.

Each block computes tile after tile. The producer thread loads the next tile while the results of this one are stored:
accumulators become pairs of 16 bits, `stmatrix` writes them to shared memory, and TMA copies boxes of 64 x 64 from
there to the outputs, whose rows are those of the tile. The kernel starts during the launch before it, initialises its
barriers, and waits.

`best_tiling` chooses the shape of the tiles for a problem. Two or three warpgroups multiply, each one or two times 64
pixels by 64 to 256 filters. 28 x 28 outputs of 64 images and 128 filters are 392 tiles of 128 x 128, which take three
waves on 132 SMs, or 262 of 192 x 128, which take two.

With few channels, most of the 64 in a copy would be zeros. If C is not a multiple of 8, images are copied anyway, and
that copy also adds their border. Then the taps of a filter's row are contiguous in memory, and that row is one tap of
S * C channels. Overlapping windows are an array whose strides are shorter than its rows: to TMA an image like any
other.

Costs, where C is a multiple of 64, K of BN and NPQ of BM:

    CRS / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    CRS / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    0                                 bytes of workspace

Limited by L2, from which every pixel is loaded again for each tap: 64 channels of a pixel take an SM of an H100 4.4
cycles, and it multiplies them by 128 filters in 4. With 1 x 1 taps limited by device memory. Tiled copies of the images
as a matrix, tried with 1 x 1 taps, took as long.
"""

from functools import cache
from math import ceil

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshape
from labkit.conv.sizes import make_windows
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.operands import SUPPORTED, as_outputs, make_pixel_map, pad_channels
from labkit.conv.tensor.tilings import BOXES, Tiling, as_product, best_tiling
from labkit.ladder import Launch
from labkit.parts.division import fast_divide
from labkit.parts.tile_order import tile_coordinates

FORMAT = RESULT = ptx.BF16
BM, BN = 128, 256  # tile of a block: pixels and filters
BK = 32  # words of channels per stage, 128 bytes
STEP = 8  # words of channels per instruction
STAGES = 4
WM = 64  # rows of a warpgroup per instruction
M_BLOCKS = 1  # of WM rows per warpgroup
ACC_VALUES = WM * BN // 128  # of a thread per block of rows
WARPGROUPS = BM // (WM * M_BLOCKS)  # consumers
WARPS = 4 * (1 + WARPGROUPS)
BOX = 32  # words of a row of results per copy, 128 bytes
IN_BOXES = True  # rows of outputs are aligned to 16 bytes, as TMA needs
EVEN = True  # K is even: `store_pair` stores two outputs as a word
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232  # per thread
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
Y_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of results begin
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(device=True)
def store_box(y_map, y_boxes, box, acc, m_block, acc0, row, k, warpgroup):
    """Store 64 rows of results from `row` on, and 64 filters from `k` on, with accumulators from `acc0` on."""
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    is_leader = warp % 4 == 0 and lane == 0
    box_row, box_vector = warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
    if is_leader:
        ptx.tma_store_wait(1)  # until this one of the two boxes is free
    ptx.barrier_sync(warpgroup + 1, 128)
    for vector in range(0, 8, 2):
        n = acc0 + vector * 4
        ptx.stmatrix4(
            y_boxes,
            (warpgroup, box, box_row, (vector + box_vector ^ box_row % 8) * 4),
            ptx.pack2(acc[m_block, n], acc[m_block, n + 1], RESULT),
            ptx.pack2(acc[m_block, n + 2], acc[m_block, n + 3], RESULT),
            ptx.pack2(acc[m_block, n + 4], acc[m_block, n + 5], RESULT),
            ptx.pack2(acc[m_block, n + 6], acc[m_block, n + 7], RESULT),
        )
    ptx.fence_async()
    ptx.barrier_sync(warpgroup + 1, 128)
    if is_leader:
        ptx.tma_store(y_map, (row, k // 2), y_boxes, (warpgroup, box, 0, 0))
        ptx.tma_store_commit()


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def persistent(x_map, w_map, y_map, y, conv, rows, cols):
    x_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, BN, BK), np.uint32)
    y_boxes = ptx.shared_array(Y_BYTE, (WARPGROUPS, BOXES, WM, BOX), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- initialise barriers --
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
    ptx.launch_wait()  # from here on it accesses global memory
    words = conv.vectors.value * 4  # of a pixel's channels; `conv` has the sizes, with reciprocals for `fast_divide`
    stage, parity = 0, 0

    # -- producer: load windows and filters --
    if warp < 4:
        ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
        if warp == 0 and lane == 0:
            for tile in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
                row, col = tile_coordinates(tile, rows, cols)
                top = np.uint32(row * BM)
                n = fast_divide(top, conv.PQ)
                pq = np.uint32(top - n * conv.PQ.value)
                p = fast_divide(pq, conv.Q)
                corner_row = np.int32(p * conv.stride_h - conv.top)
                corner_col = np.int32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
                for r in range(conv.R):
                    for s in range(conv.S.value):
                        tap = np.int32(r * conv.S.value + s)
                        tap = np.int32(conv.RS) - 1 - tap if conv.flipped == 1 else tap
                        offset = r * conv.dilation_h, s * conv.dilation_w
                        for word in range(0, words, BK):
                            ptx.mbarrier_wait(empty, stage, 1 - parity)
                            ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                            corner = n, corner_row, corner_col, word
                            ptx.tma_load_pixels(x_tiles, (stage, 0, 0), x_map, corner, offset, full, stage)
                            ptx.tma_load(w_tiles, (stage, 0, 0), w_map, (col * BN, tap, word), full, stage)
                            stage += 1
                            if stage == STAGES:
                                stage, parity = 0, 1 - parity
    # -- consumers: acc += x w --
    else:
        ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
        acc = cuda.local.array((M_BLOCKS, ACC_VALUES), np.float32)
        warpgroup = warp // 4 - 1
        is_leader = warp % 4 == 0 and lane == 0
        steps = conv.RS * (np.uint32(words + BK - 1) // np.uint32(BK))
        box = 0  # of two, which alternate
        for tile in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
            row, col = tile_coordinates(tile, rows, cols)
            for m_block in range(M_BLOCKS):
                for n in range(ACC_VALUES):
                    acc[m_block, n] = 0
            previous = -1  # the stage that the tensor cores may still read
            for _ in range(steps):
                ptx.mbarrier_wait(full, stage, parity)
                ptx.wgmma_fence()
                for step in range(0, BK, STEP):
                    for m_block in range(M_BLOCKS):
                        a = stage, (warpgroup * M_BLOCKS + m_block) * WM, step
                        ptx.wgmma(acc, (m_block, 0), BN, x_tiles, a, w_tiles, (stage, 0, step), FORMAT)
                ptx.wgmma_commit()
                ptx.wgmma_wait(1)
                if is_leader and previous >= 0:
                    ptx.mbarrier_arrive(empty, previous)
                previous = stage
                stage += 1
                if stage == STAGES:
                    stage, parity = 0, 1 - parity
            ptx.wgmma_wait(0)
            if is_leader:
                ptx.mbarrier_arrive(empty, previous)

            # -- store outputs --
            for m_block in range(M_BLOCKS):
                top, left = row * BM + (warpgroup * M_BLOCKS + m_block) * WM, col * BN
                if IN_BOXES:
                    for start in range(0, ACC_VALUES, BOX):
                        acc0 = min(start, ACC_VALUES - BOX)  # the last box may begin within the one before
                        store_box(y_map, y_boxes, box, acc, m_block, acc0, top, left + acc0 * 2, warpgroup)
                        box = 1 - box
                else:
                    npq = top + warp % 4 * 16 + lane // 4
                    for n in range(0, ACC_VALUES, 4):
                        k = left + n * 2 + lane % 4 * 2
                        store_pair(y, npq, k, ptx.pack2(acc[m_block, n], acc[m_block, n + 1], RESULT))
                        store_pair(y, npq + 8, k, ptx.pack2(acc[m_block, n + 2], acc[m_block, n + 3], RESULT))
        if is_leader:
            ptx.tma_store_wait(0)


persistent_3 = cuda.jit(launch_bounds=(32 * 16, 1), early=True)(persistent.py_func)  # with three consumers


def launches(x, w, y, problem, format, workspace, tiling=None):
    """y = the convolution of x and w, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    padding, x, w, problem = pad_channels(x, w, problem, format, workspace, may_fold=True)
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    tiling = tiling or best_tiling(as_product(problem), sms)
    outputs, taps = as_outputs(y, problem), as_words(reshape(w, problem.K * problem.R * problem.S, problem.C))
    filters = as_words(reshape(w, problem.K, problem.R * problem.S, problem.C))
    in_boxes = problem.K % 8 == 0
    maps = (
        make_pixel_map(as_words(x), problem, tiling.pixels, BK),
        ptx.TensorMap(filters, (tiling.filters, 1, BK)),
        ptx.TensorMap(outputs if in_boxes else taps, (WM, BOX)),  # any matrix, if no copy writes the outputs
    )
    rows, cols = ceil(problem.N * problem.P * problem.Q / tiling.pixels), ceil(problem.K / tiling.filters)
    arguments = *maps, outputs, make_windows(problem, format), rows, cols
    kernel = specialise_tiling(tiling, format, problem.K % 2 == 0, in_boxes)
    block = 32, 4 * (1 + tiling.warpgroups)
    return [*padding, Launch(kernel, min(rows * cols, sms), block, arguments, tiling.shared_bytes)]


@cache
def specialise_tiling(tiling: Tiling, format, even: bool, in_boxes: bool):
    """Return the kernel for a tiling and a format, and for the outputs of `as_outputs`."""
    return specialise(
        persistent if tiling.warpgroups == 2 else persistent_3,
        FORMAT=format.number,
        RESULT=format.result.number,
        EVEN=even,
        IN_BOXES=in_boxes,
        BM=tiling.pixels,
        BN=tiling.filters,
        STAGES=tiling.stages,
        M_BLOCKS=tiling.m_blocks,
        PRODUCER_REGISTERS=tiling.registers[0],
        CONSUMER_REGISTERS=tiling.registers[1],
    )

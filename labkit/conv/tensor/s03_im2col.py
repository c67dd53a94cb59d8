"""The copy engine walks over windows itself: 128 of them in the order of the outputs, whatever image they lie in.

This is `boxes` with another map. A `PixelMap` knows where the windows of an image begin, how far they lie apart and
how many there are. One copy takes the pixel at the same place in each of 128 windows that follow one another: at the
end of a row it goes on with the next, and at the end of an image with the next image. So every tile is full but the
last one, its rows are rows of the outputs, and strides are the map's: the copy engine leaves pixels out. Which pixel of
a window is meant, the copy is told by an offset.

Costs, where C is a multiple of 64, K of BN and NPQ of BM:

    CRS / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    CRS / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4       bytes of shared memory per block
    0                                 bytes of workspace

Limited by beginnings and ends, as `gemm/tensor/s05_wgmma`: while a block stores its outputs the tensor cores rest, and
so does the ring. The engine takes strides up to 8, and offsets up to 255.
"""

from math import ceil

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words, reshaped
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.maps import pixel_map
from labkit.conv.tensor.operands import TAKES, as_outputs, prepared, with_outputs
from labkit.conv.tensor.windows import windows
from labkit.ladder import Launch
from labkit.parts.division import fast_divide
from labkit.parts.tile_order import tile_coordinates

FORMAT = RESULT = ptx.BF16
BM, BN = 128, 128  # a block's part of the outputs: pixels and filters
BK = 32  # words of channels that a stage holds, 128 bytes
STEP = 8  # words of channels that an instruction takes
STAGES = 4
WM = 64  # rows of a warpgroup's part
SUMS = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def im2col(x_map, w_map, y, of, rows, cols):
    x_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, BN, BK), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, WARPGROUPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    row_of_tiles, col_of_tiles = tile_coordinates(np.uint32(cuda.blockIdx.x), rows, cols)
    top, first_filter = np.uint32(row_of_tiles * BM), col_of_tiles * BN
    words = of.pieces.value * 4
    stage, parity = 0, 0

    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
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
                        ptx.tma_load(w_tiles, (stage, 0, 0), w_map, (first_filter, tap, word), full, stage)
                        stage += 1
                        if stage == STAGES:
                            stage, parity = 0, 1 - parity
    else:
        ptx.setmaxnreg_inc(232)
        sums = cuda.local.array(SUMS, np.float32)
        first = (warp // 4 - 1) * WM
        leads = warp % 4 == 0 and lane == 0
        steps = of.RS * (np.uint32(words + BK - 1) // np.uint32(BK))
        before = -1  # the stage that the tensor cores may still read
        for i in range(SUMS):
            sums[i] = 0
        for _ in range(steps):
            ptx.mbarrier_wait(full, stage, parity)
            ptx.wgmma_fence()
            for step in range(0, BK, STEP):
                ptx.wgmma(sums, 0, BN, x_tiles, (stage, first, step), w_tiles, (stage, 0, step), FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(1)
            if leads and before >= 0:
                ptx.mbarrier_arrive(empty, before)
            before = stage
            stage += 1
            if stage == STAGES:
                stage, parity = 0, 1 - parity
        ptx.wgmma_wait(0)

        npq = top + first + warp % 4 * 16 + lane // 4
        for j in range(0, SUMS, 4):
            k = first_filter + j * 2 + lane % 4 * 2
            store_pair(y, npq, k, ptx.pack2(sums[j], sums[j + 1], RESULT))
            store_pair(y, npq + 8, k, ptx.pack2(sums[j + 2], sums[j + 3], RESULT))


def launches(x, w, y, problem, format, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES, dtype=format.dtype)
    made, x, w, problem = prepared(x, w, problem, format, workspace)
    filters = as_words(reshaped(w, problem.K, problem.R * problem.S, w.shape[-1]))
    maps = pixel_map(as_words(x), problem, BM, BK), ptx.TensorMap(filters, (BN, 1, BK))
    rows, cols = ceil(problem.N * problem.P * problem.Q / BM), ceil(problem.K / BN)
    arguments = *maps, as_outputs(y, problem), windows(problem, format), rows, cols
    kernel = with_outputs(im2col, format, problem)
    return [*made, Launch(kernel, rows * cols, (32, WARPS), arguments, SHARED_BYTES)]

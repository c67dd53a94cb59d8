"""TMA iterates over windows itself: 128 of them in the order of the outputs, across rows and images.

This is `boxes` with another map. A `PixelMap` holds the first window of an image, the strides between windows and
their number. One copy loads the pixel at the same offset in each of 128 consecutive windows. At the end of a row it
continues with the next row, and at the end of an image with the next image. So every tile but the last is full, its
rows are rows of the outputs, and the map handles strides: TMA skips pixels. An offset selects the pixel of a window.

Costs, where C is a multiple of 64, K of BN and NPQ of BM:

    CRS / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    CRS / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4       bytes of shared memory per block
    0                                 bytes of workspace

Limited by prologue and epilogue, as `gemm/tensor/s05_wgmma`: while a block stores its outputs, tensor cores and copies
idle. TMA supports strides up to 8, and offsets up to 255.
"""

from math import ceil

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words, reshape
from labkit.conv.sizes import make_windows
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.operands import SUPPORTED, as_outputs, make_pixel_map, pad_channels, specialise_for_outputs
from labkit.ladder import Launch
from labkit.parts.division import fast_divide
from labkit.parts.tile_order import tile_coordinates

FORMAT = RESULT = ptx.BF16
BM, BN = 128, 128  # tile of a block: pixels and filters
BK = 32  # words of channels per stage, 128 bytes
STEP = 8  # words of channels per instruction
STAGES = 4
WM = 64  # rows of a warpgroup
ACC_VALUES = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # consumers
WARPS = 4 * (1 + WARPGROUPS)
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def im2col(x_map, w_map, y, conv, rows, cols):
    x_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, BN, BK), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- initialise barriers --
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, WARPGROUPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    # -- locate the tile --
    row_of_tiles, col_of_tiles = tile_coordinates(np.uint32(cuda.blockIdx.x), rows, cols)
    top, k0 = np.uint32(row_of_tiles * BM), col_of_tiles * BN
    words = conv.vectors.value * 4
    stage, parity = 0, 0

    # -- producer: load windows and filters --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
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
                        ptx.tma_load(w_tiles, (stage, 0, 0), w_map, (k0, tap, word), full, stage)
                        stage += 1
                        if stage == STAGES:
                            stage, parity = 0, 1 - parity
    # -- consumers: acc += x w --
    else:
        ptx.setmaxnreg_inc(232)
        acc = cuda.local.array(ACC_VALUES, np.float32)
        wg_row = (warp // 4 - 1) * WM
        is_leader = warp % 4 == 0 and lane == 0
        steps = conv.RS * (np.uint32(words + BK - 1) // np.uint32(BK))
        previous = -1  # the stage that the tensor cores may still read
        for i in range(ACC_VALUES):
            acc[i] = 0
        for _ in range(steps):
            ptx.mbarrier_wait(full, stage, parity)
            ptx.wgmma_fence()
            for step in range(0, BK, STEP):
                ptx.wgmma(acc, 0, BN, x_tiles, (stage, wg_row, step), w_tiles, (stage, 0, step), FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(1)
            if is_leader and previous >= 0:
                ptx.mbarrier_arrive(empty, previous)
            previous = stage
            stage += 1
            if stage == STAGES:
                stage, parity = 0, 1 - parity
        ptx.wgmma_wait(0)

        # -- store outputs --
        npq = top + wg_row + warp % 4 * 16 + lane // 4
        for j in range(0, ACC_VALUES, 4):
            k = k0 + j * 2 + lane % 4 * 2
            store_pair(y, npq, k, ptx.pack2(acc[j], acc[j + 1], RESULT))
            store_pair(y, npq + 8, k, ptx.pack2(acc[j + 2], acc[j + 3], RESULT))


def launches(x, w, y, problem, format, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    padding, x, w, problem = pad_channels(x, w, problem, format, workspace)
    filters = as_words(reshape(w, problem.K, problem.R * problem.S, w.shape[-1]))
    maps = make_pixel_map(as_words(x), problem, BM, BK), ptx.TensorMap(filters, (BN, 1, BK))
    rows, cols = ceil(problem.N * problem.P * problem.Q / BM), ceil(problem.K / BN)
    arguments = *maps, as_outputs(y, problem), make_windows(problem, format), rows, cols
    kernel = specialise_for_outputs(im2col, format, is_even=problem.K % 2 == 0)
    return [*padding, Launch(kernel, rows * cols, (32, WARPS), arguments, SHARED_BYTES)]

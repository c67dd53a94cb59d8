"""TMA gathers: for each tap, the pixels of 128 outputs are a box of the images, shifted by the tap.

The main loop is that of `gemm/tensor/s05_wgmma`. A tile's 128 outputs are a box of some images, rows and columns. With
a stride of 1 the pixels under a tap are a box of the same shape, at the outputs' position shifted by the tap. 64 of
their channels are rows of 128 bytes, so a tiled `TensorMap` with four axes copies them at once. It fills elements
outside the image with zeros: padding is free. One thread loops over r, s and the blocks of channels with counters; only
the tile's position takes divisions.

The sides of a box of 128 outputs are powers of two. Images with other sides leave tiles partly empty: `choose_box`
finds the box with the fewest tiles, and `waste` returns the wasted share of the work. It is an eighth for 7 x 7 outputs
of 64 images.

Costs, where C is a multiple of 64, K of BN and boxes fit the outputs:

    CRS / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    CRS / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4       bytes of shared memory per block
    0                                 bytes of workspace

Limited by partly empty tiles, by the 64 channels of a copy if there are fewer, and by prologue and epilogue as
`gemm/tensor/s05_wgmma`. It takes no strides: pixels under a tap would not be neighbours.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words, reshape
from labkit.conv.problem import Convolution
from labkit.conv.sizes import make_windows
from labkit.conv.tensor import operands
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.operands import as_outputs, pad_channels, specialise_for_outputs
from labkit.ladder import Launch
from labkit.parts.tile_order import tile_coordinates

SUPPORTED = operands.SUPPORTED | {"stride_h": (1,), "stride_w": (1,)}
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 6, 9, 3, 3, 1, 1, 1, 0, 2, 1, 1, 2),
    (3, 72, 9, 7, 136, 2, 3, 1, 1, 1, 0, 0, 2, 1, 1, 1, True),
    (2, 8, 33, 34, 70, 1, 1),
)
FORMAT = RESULT = ptx.BF16
BM, BN = 128, 128  # tile of a block: pixels and filters
BK = 32  # words of channels per stage, 128 bytes
STEP = 8  # words of channels per instruction
STAGES = 4
WM = 64  # rows of a warpgroup
ACC_VALUES = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # consumers
WARPS = 4 * (1 + WARPGROUPS)
OUTSIDE = 2**31  # a row past all outputs
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


class Box(NamedTuple):
    """The images of a tile, and the rows and columns of their outputs."""

    images: int
    rows: int
    cols: int


class Boxes(NamedTuple):
    """A tile's box, and the number of boxes along each axis."""

    sides: Box
    counts: Box


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def boxes(x_map, w_map, y, conv, box_grid):
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
    side, count = box_grid.sides, box_grid.counts
    tiles = count.images * count.rows * count.cols
    tile, col_of_tiles = tile_coordinates(
        np.uint32(cuda.blockIdx.x), tiles, (conv.K + np.uint32(BN - 1)) // np.uint32(BN)
    )
    k0 = col_of_tiles * BN
    n, pq = tile // (count.rows * count.cols) * side.images, tile % (count.rows * count.cols)
    p, q = pq // count.cols * side.rows, pq % count.cols * side.cols
    words = conv.vectors.value * 4
    stage, parity = 0, 0

    # -- producer: load windows and filters --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            row = np.int32(p) - np.int32(conv.top)
            for r in range(conv.R):
                col = np.int32(q) - np.int32(conv.left)
                for s in range(conv.S.value):
                    tap = np.int32(r * conv.S.value + s)
                    tap = np.int32(conv.RS) - 1 - tap if conv.flipped == 1 else tap
                    for word in range(0, words, BK):
                        ptx.mbarrier_wait(empty, stage, 1 - parity)
                        ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                        ptx.tma_load(x_tiles, (stage, 0, 0), x_map, (n, row, col, word), full, stage)
                        ptx.tma_load(w_tiles, (stage, 0, 0), w_map, (k0, tap, word), full, stage)
                        stage += 1
                        if stage == STAGES:
                            stage, parity = 0, 1 - parity
                    col += np.int32(conv.dilation_w)
                row += np.int32(conv.dilation_h)
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
        for half in range(2):
            i = np.uint32(wg_row + warp % 4 * 16 + lane // 4 + half * 8)
            p_out = np.uint32(p + i // side.cols % side.rows)
            q_out = np.uint32(q + i % side.cols)
            image = np.uint32(n + i // np.uint32(side.cols * side.rows))
            npq = np.uint32(image * conv.PQ.value + p_out * conv.Q.value + q_out)
            npq = npq if p_out < conv.P and q_out < conv.Q.value else np.uint32(OUTSIDE)
            for j in range(0, ACC_VALUES, 4):
                k = k0 + j * 2 + lane % 4 * 2
                store_pair(y, npq, k, ptx.pack2(acc[j + half * 2], acc[j + half * 2 + 1], RESULT))


def choose_box(problem: Convolution) -> Box:
    """Return the box of BM outputs with the fewest tiles; among several, the one of fewest images."""
    sides = [2**i for i in range(BM.bit_length()) if BM % 2**i == 0]
    candidates = [Box(BM // (rows * cols), rows, cols) for rows in sides for cols in sides if BM % (rows * cols) == 0]
    return min(candidates, key=lambda box: (count_tiles(problem, box), box.images, box.rows))


def waste(problem: Convolution) -> float:
    """Return the share of computed outputs that are not needed."""
    return 1 - problem.N * problem.P * problem.Q / (BM * count_tiles(problem, choose_box(problem)))


def count_boxes(problem: Convolution, box: Box) -> Box:
    """Return the number of boxes that cover the outputs along each axis."""
    sides = problem.N, problem.P, problem.Q
    return Box(*(ceil(side / extent) for side, extent in zip(sides, box, strict=True)))


def count_tiles(problem, box):
    return int(np.prod(count_boxes(problem, box)))


def launches(x, w, y, problem, format, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    padding, x, w, problem = pad_channels(x, w, problem, format, workspace)
    box = choose_box(problem)
    filters = as_words(reshape(w, problem.K, problem.R * problem.S, w.shape[-1]))
    maps = ptx.TensorMap(as_words(x), (*box, BK)), ptx.TensorMap(filters, (BN, 1, BK))
    arguments = *maps, as_outputs(y, problem), make_windows(problem, format), Boxes(box, count_boxes(problem, box))
    grid = count_tiles(problem, box) * ceil(problem.K / BN)
    kernel = specialise_for_outputs(boxes, format, is_even=problem.K % 2 == 0)
    return [*padding, Launch(kernel, grid, (32, WARPS), arguments, SHARED_BYTES)]

"""The copy engine gathers: of each tap the pixels of 128 outputs are a box of the images, moved by where the tap is.

The main loop is that of `gemm/tensor/s05_wgmma`. A tile's 128 outputs are a box themselves, of some images, rows and
columns. With a stride of 1 the pixels under a tap are a box of that shape, at the outputs' own place moved by the tap,
and 64 of their channels are rows of 128 bytes: a tiled `TensorMap` with four axes copies them at once. What it has
outside of the image it fills with zeros, so that padding costs nothing at all. One thread walks over r, s and the
blocks of channels with counters; there are no divisions but those that find the tile's place.

128 outputs are a box only where the sides of the box are powers of two. Images whose sides are not leave tiles that
are not full: `box_of` chooses the box that needs fewest tiles, and `waste` says which share of the work is for nothing,
which is an eighth for 7 x 7 outputs of 64 images.

Costs, where C is a multiple of 64, K of BN and boxes fit the outputs:

    CRS / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    CRS / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4       bytes of shared memory per block
    0                                 bytes of workspace

Limited by tiles that are not full, by the 64 channels of a copy where there are fewer, and by beginnings and ends as
`gemm/tensor/s05_wgmma`. It takes no strides: pixels under a tap would not be neighbours.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words, reshaped
from labkit.conv.problem import Convolution
from labkit.conv.tensor import operands
from labkit.conv.tensor.edges import store_pair
from labkit.conv.tensor.operands import as_outputs, prepared, with_outputs
from labkit.conv.tensor.windows import windows
from labkit.ladder import Launch
from labkit.parts.tile_order import tile_coordinates

TAKES = operands.TAKES | {"stride_h": (1,), "stride_w": (1,)}
EXAMPLES = (
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 6, 9, 3, 3, 1, 1, 1, 0, 2, 1, 1, 2),
    (3, 72, 9, 7, 136, 2, 3, 1, 1, 1, 0, 0, 2, 1, 1, 1, True),
    (2, 8, 33, 34, 70, 1, 1),
)
FORMAT = RESULT = ptx.BF16
BM, BN = 128, 128  # a block's part of the outputs: pixels and filters
BK = 32  # words of channels that a stage holds, 128 bytes
STEP = 8  # words of channels that an instruction takes
STAGES = 4
WM = 64  # rows of a warpgroup's part
SUMS = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
OUTSIDE = 2**31  # a row below all outputs
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


class Box(NamedTuple):
    """How many images, and rows and columns of their outputs, a tile has."""

    images: int
    rows: int
    cols: int


class Boxes(NamedTuple):
    """A tile's box, and how many of them lie along each axis."""

    sides: Box
    counts: Box


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def boxes(x_map, w_map, y, of, tiled):
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
    side, count = tiled.sides, tiled.counts
    tiles = count.images * count.rows * count.cols
    tile, col_of_tiles = tile_coordinates(
        np.uint32(cuda.blockIdx.x), tiles, (of.K + np.uint32(BN - 1)) // np.uint32(BN)
    )
    first_filter = col_of_tiles * BN
    n, pq = tile // (count.rows * count.cols) * side.images, tile % (count.rows * count.cols)
    p, q = pq // count.cols * side.rows, pq % count.cols * side.cols
    words = of.pieces.value * 4
    stage, parity = 0, 0

    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            row = np.int32(p) - np.int32(of.top)
            for r in range(of.R):
                col = np.int32(q) - np.int32(of.left)
                for s in range(of.S.value):
                    tap = np.int32(r * of.S.value + s)
                    tap = np.int32(of.RS) - 1 - tap if of.turn == 1 else tap
                    for word in range(0, words, BK):
                        ptx.mbarrier_wait(empty, stage, 1 - parity)
                        ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                        ptx.tma_load(x_tiles, (stage, 0, 0), x_map, (n, row, col, word), full, stage)
                        ptx.tma_load(w_tiles, (stage, 0, 0), w_map, (first_filter, tap, word), full, stage)
                        stage += 1
                        if stage == STAGES:
                            stage, parity = 0, 1 - parity
                    col += np.int32(of.dilation_w)
                row += np.int32(of.dilation_h)
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

        for half in range(2):
            i = np.uint32(first + warp % 4 * 16 + lane // 4 + half * 8)
            above = np.uint32(p + i // side.cols % side.rows)
            beside = np.uint32(q + i % side.cols)
            image = np.uint32(n + i // np.uint32(side.cols * side.rows))
            npq = np.uint32(image * of.PQ.value + above * of.Q.value + beside)
            npq = npq if above < of.P and beside < of.Q.value else np.uint32(OUTSIDE)
            for j in range(0, SUMS, 4):
                k = first_filter + j * 2 + lane % 4 * 2
                store_pair(y, npq, k, ptx.pack2(sums[j + half * 2], sums[j + half * 2 + 1], RESULT))


def box_of(problem: Convolution) -> Box:
    """The box of BM outputs that needs fewest tiles; among several, one of as few images as possible."""
    sides = [2**i for i in range(BM.bit_length()) if BM % 2**i == 0]
    found = [Box(BM // (rows * cols), rows, cols) for rows in sides for cols in sides if BM % (rows * cols) == 0]
    return min(found, key=lambda box: (_tiles(problem, box), box.images, box.rows))


def waste(problem: Convolution) -> float:
    """Which share of the outputs that tiles compute nobody needs."""
    return 1 - problem.N * problem.P * problem.Q / (BM * _tiles(problem, box_of(problem)))


def counts(problem: Convolution, box: Box) -> Box:
    """How many boxes cover the outputs along each axis."""
    sides = problem.N, problem.P, problem.Q
    return Box(*(ceil(side / each) for side, each in zip(sides, box, strict=True)))


def _tiles(problem, box):
    return int(np.prod(counts(problem, box)))


def launches(x, w, y, problem, format, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, takes=TAKES, dtype=format.dtype)
    made, x, w, problem = prepared(x, w, problem, format, workspace)
    box = box_of(problem)
    filters = as_words(reshaped(w, problem.K, problem.R * problem.S, w.shape[-1]))
    maps = ptx.TensorMap(as_words(x), (*box, BK)), ptx.TensorMap(filters, (BN, 1, BK))
    arguments = *maps, as_outputs(y, problem), windows(problem, format), Boxes(box, counts(problem, box))
    grid = _tiles(problem, box) * ceil(problem.K / BN)
    return [*made, Launch(with_outputs(boxes, format, problem), grid, (32, WARPS), arguments, SHARED_BYTES)]

"""The gradient of the filters sums over all pixels of the outputs: both operands lie across the sum.

It is the product of the K x NPQ gradient of the outputs and NPQ x RSC pixels. With channels last neither has its sum
along memory: 64 pixels of 64 filters, or of 64 channels of a tap, are rows of 128 bytes, one per term of the sum. That
is an MN-major tile of `wgmma`, so TMA loads both as they are: boxes of the outputs' gradient, and pixels of windows
(`tensor/s03_im2col`) once for each tap. The ring, its producer and its consumers are those of `tensor/s04_persistent`.

The result is as small as the filters, and its sums are long, so the pixels are divided into parts, each with a whole
gradient in float32. A last launch adds the parts in a fixed order and rounds once; a single part is rounded at once.
`best_split` chooses the tiles and the parts: a layer of 64 filters and channels takes one tile of 64 x 576, which reads
each gradient of the outputs once.

If C or K is not a multiple of 8, images or gradients are copied first, with zeros after the channels of each pixel;
with few channels that copy makes the taps of a row channels of one tap, as in `tensor/s04_persistent`.

Costs, where C is a multiple of BN, K of BM and NPQ of the pixels of all parts:

    NPQ / PIXELS / 64 * (1 / BM + 1 / BN)   copies per element of the filters, of 64 channels of PIXELS pixels
    NPQ / 16 / (64 * COLUMNS)               `wgmma` of a warpgroup per element of the filters
    4 * parts                               bytes of workspace per element of the filters, if there are several

Limited by L2, from which pixels are loaded again for each tap, by shared memory, from which each warpgroup reads its
operands, and with many parts by the workspace.
"""

from dataclasses import replace
from functools import cache
from math import ceil

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import round_up_to_vectors
from labkit.arrays.views import as_words, reshape
from labkit.conv.problem import BackwardFilterNHWC
from labkit.conv.sizes import make_windows
from labkit.conv.tensor.operands import fold_taps, is_worth_folding, make_pixel_map
from labkit.conv.tensor.padding import copy_padded
from labkit.conv.tensor_gradients.filter_tilings import Product, Tiling, best_split, count_tiles
from labkit.conv.tensor_gradients.part_sums import sum_parts
from labkit.ladder import Launch
from labkit.parts.division import fast_divide

PROBLEM = BackwardFilterNHWC
EXAMPLES = (  # tested sizes: N, C, H, W, K, R, S, strides, zeros top bottom left right, dilations, groups, flipped
    (1, 1, 1, 1, 1, 1, 1),
    (2, 3, 7, 6, 9, 3, 3, 2, 1, 1, 0, 2, 1, 1, 2),
    (3, 72, 9, 7, 136, 2, 3, 1, 1, 1, 0, 0, 2, 1, 1, 1, True),
    (9, 8, 33, 34, 70, 1, 1),
    (2, 3, 20, 19, 16, 5, 5, 2, 2, 2, 2, 2, 2),
)
SUPPORTED = {"result": ("w",), "groups": (1,), "layout": ("NHWC",)}  # fields that it takes; w: gradient of filters
FORMAT = RESULT = ptx.BF16
A_MAJOR = B_MAJOR = ptx.MN_MAJOR
ROW_GROUPS, COL_GROUPS = 2, 1  # warpgroups along the filters and along the channels of a block's tile
M_BLOCKS, COLUMNS = 1, 256  # of 64 filters, and of channels of one or several taps, per warpgroup
PIXELS = 64  # per stage
STEP = 16  # pixels per instruction
STAGES = 4
WM = 64  # filters of a warpgroup per instruction
BOX = 32  # words of a row of a tile, 128 bytes
CHANNELS = 2 * BOX
BM, BN = WM * ROW_GROUPS * M_BLOCKS, COLUMNS * COL_GROUPS  # tile of a block: filters and channels
Y_BOXES, X_BOXES = BM // CHANNELS, BN // CHANNELS  # copies per stage
ACC_VALUES = COLUMNS // 2  # of a thread per block of 64 filters
BOX_VALUES = CHANNELS // 2  # of them, of a box of channels
WARPGROUPS = ROW_GROUPS * COL_GROUPS  # consumers
WARPS = 4 * (1 + WARPGROUPS)
IN_PARTS = True  # results are float32 sums of parts; else a single part is rounded
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232  # per thread
X_BYTE = STAGES * Y_BOXES * PIXELS * BOX * 4  # where the tiles of images begin
STAGE_BYTES = (Y_BOXES + X_BOXES) * PIXELS * BOX * 4


@cuda.jit(device=True)
def load_stage(y_tiles, x_tiles, y_map, x_map, full, stage, pixel, row, tap, conv):
    """Start the copies of PIXELS pixels to a stage; `tap` is the row, column and chunk of channels of the first box."""
    n = fast_divide(pixel, conv.PQ)
    pq = np.uint32(pixel - n * conv.PQ.value)
    p = fast_divide(pq, conv.Q)
    corner_row = np.int32(p * conv.stride_h - conv.top)
    corner_col = np.int32((pq - p * conv.Q.value) * conv.stride_w - conv.left)
    for box in range(Y_BOXES):
        ptx.tma_load(y_tiles, (stage, box, 0, 0), y_map, (pixel, (row * Y_BOXES + box) * BOX), full, stage)
    r, s, chunk = tap
    chunks = count_chunks(conv)
    for box in range(X_BOXES):
        word = (chunk if r < conv.R else chunks) * np.uint32(BOX)  # past the last tap zeros, from past the channels
        offset = (r if r < conv.R else np.uint32(0)) * conv.dilation_h, s * conv.dilation_w
        corner = n, corner_row, corner_col, word
        ptx.tma_load_pixels(x_tiles, (stage, box, 0, 0), x_map, corner, offset, full, stage)
        chunk = np.uint32(chunk + np.uint32(1))
        if chunk == chunks:
            chunk, s = np.uint32(0), np.uint32(s + np.uint32(1))
            if s == conv.S.value:
                s, r = np.uint32(0), np.uint32(r + np.uint32(1))


@cuda.jit(device=True)
def count_chunks(conv):
    """Return the copies that a tap's channels take: each has 64, which are 8 vectors."""
    return np.uint32(conv.vectors.value + np.uint32(7)) // np.uint32(8)


@cuda.jit(device=True)
def store_two(w, part, k, column, a, b, conv):
    """Store neighbouring sums of filter k, if it exists."""
    if k < conv.K:
        if IN_PARTS:
            ptx.store2(w, (part, k, column), a, b)
        else:
            w[part, k, column // 2] = ptx.pack2(a, b, RESULT)


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def backward_filter(x_map, y_map, w, conv, rows, tiles, parts):
    y_tiles = ptx.shared_array(0, (STAGES, Y_BOXES, PIXELS, BOX), np.uint32)
    x_tiles = ptx.shared_array(X_BYTE, (STAGES, X_BOXES, PIXELS, BOX), np.uint32)
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
        ptx.tma_prefetch(y_map)
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()  # from here on it accesses global memory
    block, tiles = np.uint32(cuda.blockIdx.x), np.uint32(tiles)
    part = block // tiles
    col = np.uint32(block - part * tiles) // np.uint32(rows)
    row = np.uint32(block - part * tiles - col * np.uint32(rows))
    steps = np.uint32(conv.NPQ + np.uint32(PIXELS - 1)) // np.uint32(PIXELS)
    begin, end = np.int64(steps) * part // parts, np.int64(steps) * (part + 1) // parts
    chunks = count_chunks(conv)
    stage, parity = 0, 0

    # -- producer: load pixels of both --
    if warp < 4:
        ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
        if warp == 0 and lane == 0:
            tap = np.uint32(col * np.uint32(X_BOXES)) // chunks
            r = fast_divide(tap, conv.S)
            first = r, np.uint32(tap - r * conv.S.value), np.uint32(col * np.uint32(X_BOXES) - tap * chunks)
            for step in range(begin, end):
                ptx.mbarrier_wait(empty, stage, 1 - parity)
                ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                load_stage(y_tiles, x_tiles, y_map, x_map, full, stage, np.uint32(step * PIXELS), row, first, conv)
                stage += 1
                if stage == STAGES:
                    stage, parity = 0, 1 - parity
    # -- consumers: acc += y.T x --
    else:
        ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
        acc = cuda.local.array((M_BLOCKS, ACC_VALUES), np.float32)
        warpgroup = warp // 4 - 1
        is_leader = warp % 4 == 0 and lane == 0
        y_box = warpgroup % ROW_GROUPS * M_BLOCKS
        x_box = warpgroup // ROW_GROUPS * (COLUMNS // CHANNELS)
        for m_block in range(M_BLOCKS):
            for n in range(ACC_VALUES):
                acc[m_block, n] = 0
        previous = -1  # the stage that the tensor cores may still read
        for _ in range(begin, end):
            ptx.mbarrier_wait(full, stage, parity)
            ptx.wgmma_fence()
            for pixel in range(0, PIXELS, STEP):
                for m_block in range(M_BLOCKS):
                    a, b = (stage, y_box + m_block, pixel, 0), (stage, x_box, pixel, 0)
                    ptx.wgmma_major(acc, (m_block, 0), COLUMNS, y_tiles, a, A_MAJOR, x_tiles, b, B_MAJOR, FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(1)
            if is_leader and previous >= 0:
                ptx.mbarrier_arrive(empty, previous)
            previous = stage
            stage += 1
            if stage == STAGES:
                stage, parity = 0, 1 - parity
        ptx.wgmma_wait(0)

        # -- store sums --
        channels = conv.vectors.value * np.uint32(8)
        for start in range(0, ACC_VALUES, BOX_VALUES):
            box = np.uint32(col * np.uint32(X_BOXES) + x_box + np.uint32(start // BOX_VALUES))
            tap = box // chunks
            c0 = np.uint32((box - tap * chunks) * np.uint32(CHANNELS) + lane % 4 * 2)
            tap_of_w = np.uint32(conv.RS - np.uint32(1) - tap) if conv.flipped == 1 else tap
            for n in range(0, BOX_VALUES, 4):
                c, i = np.uint32(c0 + np.uint32(n * 2)), start + n
                if tap < conv.RS and c < channels:
                    column = np.uint32(tap_of_w * channels + c)
                    for m_block in range(M_BLOCKS):
                        k = np.uint32((row * Y_BOXES + y_box + m_block) * WM + warp % 4 * 16 + lane // 4)
                        store_two(w, part, k, column, acc[m_block, i], acc[m_block, i + 1], conv)
                        k = np.uint32(k + np.uint32(8))
                        store_two(w, part, k, column, acc[m_block, i + 2], acc[m_block, i + 3], conv)


backward_filter_3 = cuda.jit(launch_bounds=(32 * 16, 1), early=True)(backward_filter.py_func)  # with three consumers


def launches(x, w, y, problem, format, workspace, split=None, limit_bytes=None):
    """w = the gradient of the filters, from images x and the outputs' gradient y, split as given or best."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    C, K = (round_up_to_vectors(n, format.dtype) for n in (problem.C, problem.K))
    sequence, padded = [], problem
    if K != problem.K:
        y = copy_padded(y, (problem.N, problem.P, problem.Q, K), (0, 0), "outputs", workspace, sequence)
    if C != problem.C:
        if is_worth_folding(problem, C):
            x, padded = fold_taps(x, problem, C, workspace, sequence)
        else:
            x = copy_padded(x, (problem.N, problem.H, problem.W, C), (0, 0), "images", workspace, sequence)
            padded = replace(problem, C=C)
    row = problem.R * problem.S * C  # sums of a filter
    if split is None:
        limit = None if limit_bytes is None else max(0, limit_bytes - workspace.size_bytes) // (4 * problem.K * row)
        split = best_split(as_product(padded, format), cuda.get_current_device().MULTIPROCESSOR_COUNT, limit)
    tiling, parts = split
    in_parts = parts > 1 or C != problem.C
    if in_parts:
        sums = workspace.array("parts", (parts, problem.K, row), np.float32)
    else:
        sums = as_words(reshape(w, 1, problem.K, row))
    maps = (
        make_pixel_map(as_words(x), padded, tiling.pixels, BOX),
        ptx.TensorMap(as_words(reshape(y, problem.N * problem.P * problem.Q, K)), (tiling.pixels, BOX)),
    )
    product = as_product(padded, format)
    rows, tiles = ceil(problem.K / tiling.filters), count_tiles(tiling, product)
    arguments = *maps, sums, make_windows(padded, format), rows, tiles, parts
    kernel = specialise_tiling(tiling, format, in_parts)
    block = 32, 4 * (1 + tiling.warpgroups)
    sequence.append(Launch(kernel, tiles * parts, block, arguments, tiling.shared_bytes))
    if in_parts:
        sequence.append(sum_parts(sums, w, C, format))
    return sequence


def as_product(problem, format) -> Product:
    """Return the product that computes the gradient of the filters of a problem."""
    channels = problem.R * problem.S * ceil(problem.C / CHANNELS) * CHANNELS
    sums = problem.K * problem.R * problem.S * problem.C
    return Product(problem.K, channels, problem.N * problem.P * problem.Q, sums, problem.min_bytes(format))


@cache
def specialise_tiling(tiling: Tiling, format, in_parts: bool):
    """Return the kernel for a tiling and a format, and for results in parts or rounded."""
    return specialise(
        backward_filter if tiling.warpgroups == 2 else backward_filter_3,
        FORMAT=format.number,
        RESULT=format.result.number,
        IN_PARTS=in_parts,
        ROW_GROUPS=tiling.row_groups,
        COL_GROUPS=tiling.col_groups,
        M_BLOCKS=tiling.m_blocks,
        COLUMNS=tiling.columns,
        PIXELS=tiling.pixels,
        STAGES=tiling.stages,
        PRODUCER_REGISTERS=tiling.registers[0],
        CONSUMER_REGISTERS=tiling.registers[1],
    )

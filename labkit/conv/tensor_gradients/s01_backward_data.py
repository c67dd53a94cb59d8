"""The gradient of the images, as one convolution of the outputs' gradient per pair of remainders by the strides.

Pixels whose rows and columns have the same remainders by the strides take the same taps (`conv.remainders`). Their
gradient is a convolution with a stride of 1: its images are the gradient of the outputs, its channels the filters, and
its taps are in reverse order. At a stride of 1 it is a single one.

The kernel is that of `tensor/s04_persistent`, with two differences. Filters are read as they are stored: a copy loads
64 filters of one tap, 64 channels each, so a row of the tile has the channels of one filter. That is an MN-major
operand of `wgmma`, and no transposed copy of the filters is needed. Results are stored by TMA as pixels of windows of
one tap: in memory the pixels of one remainder are `stride_w` apart, and a box of consecutive pixels goes on in the next
row.

If K or C is not a multiple of 8, a launch before this one copies gradients or filters to a workspace, with zeros after
the channels of each pixel or tap.

Costs, where K is a multiple of 64, C of BN and NHW of BM, at a stride of 1:

    KRS / 64 * (1 + BN / 64) / (BM * BN)   copies per element of the images
    KRS / 16 / (64 * BN)                   `wgmma` of a warpgroup per element of the images
    0                                      bytes of workspace

Limited as the convolution is: by L2, and with 1 x 1 taps by device memory. With strides each pair of remainders is a
launch, and with few pixels each leaves SMs idle at its end.
"""

from functools import cache
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import round_up_to_vectors
from labkit.arrays.views import as_bits, as_strided, as_words, reshape
from labkit.conv.problem import BackwardDataNHWC
from labkit.conv.remainders import Remainder, remainders
from labkit.conv.sizes import check_counts
from labkit.conv.tensor.padding import copy_padded
from labkit.conv.tensor.tilings import BOXES, TILINGS, Product, Tiling, best_tiling
from labkit.ladder import Launch, TooLarge
from labkit.parts.division import Divisor, fast_divide, make_divisor
from labkit.parts.tile_order import tile_coordinates

PROBLEM = BackwardDataNHWC
SUPPORTED = {"result": ("x",), "groups": (1,), "layout": ("NHWC",)}  # fields that it takes; x: gradient of images
FORMAT = RESULT = ptx.BF16
A_MAJOR, B_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
BM, BN = 128, 256  # tile of a block: pixels and channels
BK = 32  # words of filters per stage, 128 bytes
FILTERS = 2 * BK
STEP = 8  # words of filters per instruction
STAGES = 4
WM = 64  # rows of a warpgroup per instruction
M_BLOCKS = 1  # of WM rows per warpgroup
ACC_VALUES = WM * BN // 128  # of a thread per block of rows
WARPGROUPS = BM // (WM * M_BLOCKS)  # consumers
WARPS = 4 * (1 + WARPGROUPS)
BOX = 32  # words of channels per copy, 128 bytes
W_BOXES = BN // (2 * BOX)  # of filters per stage
IN_BOXES = True  # pixels of the images are aligned to 16 bytes, as TMA needs
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232  # per thread
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
X_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of results begin
STAGE_BYTES = (BM + BN) * BK * 4


GRADIENT_TILINGS = tuple(tiling for tiling in TILINGS if tiling.filters % 64 == 0)  # whole boxes of filters


class Pixels(NamedTuple):
    """The pixels of a pair of remainders, all uint32, modulo 2**32, but for divisors.

    Taps are counted from the last: `tap` is its number in a filter, and `tap_down` and `tap_across` lead to the next
    row and column. Pixels are counted over images, rows and columns, and divided by `PQ` and `Q`. In memory pixel 0 of
    an image is its pixel `first`, `down` and `across` lead to the next row and column, and `image` to the next image.
    """

    chunks: np.uint32  # of 64 filters
    R: np.uint32
    S: np.uint32
    top: np.uint32
    left: np.uint32
    dilation_h: np.uint32
    dilation_w: np.uint32
    tap: np.uint32
    tap_down: np.uint32
    tap_across: np.uint32
    first: np.uint32
    down: np.uint32
    across: np.uint32
    image: np.uint32
    NPQ: np.uint32
    PQ: Divisor
    Q: Divisor


@cuda.jit(device=True)
def locate(pixel, pixels):
    """Return the image, row and column of a pixel, counted among those of the remainders."""
    n = fast_divide(pixel, pixels.PQ)
    pq = np.uint32(pixel - n * pixels.PQ.value)
    p = fast_divide(pq, pixels.Q)
    return n, p, np.uint32(pq - p * pixels.Q.value)


@cuda.jit(device=True)
def store_box(x_map, x_boxes, box, acc, m_block, acc0, pixel, c, warpgroup, pixels):
    """Store 64 pixels of results from `pixel` on, and 64 channels from `c` on, with accumulators from `acc0` on."""
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    is_leader = warp % 4 == 0 and lane == 0
    box_row, box_vector = warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
    if is_leader:
        ptx.tma_store_wait(1)  # until this one of the two boxes is free
    ptx.barrier_sync(warpgroup + 1, 128)
    for vector in range(0, 8, 2):
        n = acc0 + vector * 4
        ptx.stmatrix4(
            x_boxes,
            (warpgroup, box, box_row, (vector + box_vector ^ box_row % 8) * 4),
            ptx.pack2(acc[m_block, n], acc[m_block, n + 1], RESULT),
            ptx.pack2(acc[m_block, n + 2], acc[m_block, n + 3], RESULT),
            ptx.pack2(acc[m_block, n + 4], acc[m_block, n + 5], RESULT),
            ptx.pack2(acc[m_block, n + 6], acc[m_block, n + 7], RESULT),
        )
    ptx.fence_async()
    ptx.barrier_sync(warpgroup + 1, 128)
    if is_leader:
        if pixel < pixels.NPQ:
            n, p, q = locate(pixel, pixels)
            ptx.tma_store_pixels(x_map, (n, p, q, c // 2), x_boxes, (warpgroup, box, 0, 0))
        ptx.tma_store_commit()


@cuda.jit(device=True)
def store_two(x, pixel, c, pair, pixels):
    """Store the results of channels c and c + 1 of a pixel, if they exist."""
    if pixel < pixels.NPQ:
        n, p, q = locate(np.uint32(pixel), pixels)
        row = n * pixels.image + pixels.first + p * pixels.down + q * pixels.across
        if c < x.shape[1]:
            x[row, c] = pair & 0xFFFF
        if c + 1 < x.shape[1]:
            x[row, c + 1] = pair >> 16


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def backward_data(y_map, w_map, x_map, x, pixels, rows, cols):
    y_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    w_tiles = ptx.shared_array(W_BYTE, (STAGES, W_BOXES, FILTERS, BOX), np.uint32)
    x_boxes = ptx.shared_array(X_BYTE, (WARPGROUPS, BOXES, WM, BOX), np.uint32)
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
        ptx.tma_prefetch(y_map)
        ptx.tma_prefetch(w_map)
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()  # from here on it accesses global memory
    stage, parity = 0, 0

    # -- producer: load windows and filters --
    if warp < 4:
        ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
        if warp == 0 and lane == 0:
            for tile in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
                row, col = tile_coordinates(tile, rows, cols)
                n, p, q = locate(np.uint32(row * BM), pixels)
                corner_row, corner_col = np.int32(p - pixels.top), np.int32(q - pixels.left)
                for r in range(pixels.R):
                    for s in range(pixels.S):
                        tap = np.int32(pixels.tap + r * pixels.tap_down + s * pixels.tap_across)
                        offset = r * pixels.dilation_h, s * pixels.dilation_w
                        for chunk in range(pixels.chunks):
                            ptx.mbarrier_wait(empty, stage, 1 - parity)
                            ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                            corner = n, corner_row, corner_col, chunk * BK
                            ptx.tma_load_pixels(y_tiles, (stage, 0, 0), y_map, corner, offset, full, stage)
                            for box in range(W_BOXES):
                                place = chunk * FILTERS, tap, (col * W_BOXES + box) * BOX
                                ptx.tma_load(w_tiles, (stage, box, 0, 0), w_map, place, full, stage)
                            stage += 1
                            if stage == STAGES:
                                stage, parity = 0, 1 - parity
    # -- consumers: acc += y w --
    else:
        ptx.setmaxnreg_inc(CONSUMER_REGISTERS)
        acc = cuda.local.array((M_BLOCKS, ACC_VALUES), np.float32)
        warpgroup = warp // 4 - 1
        is_leader = warp % 4 == 0 and lane == 0
        steps = pixels.R * pixels.S * pixels.chunks
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
                        b = stage, 0, step * 2, 0
                        ptx.wgmma_major(acc, (m_block, 0), BN, y_tiles, a, A_MAJOR, w_tiles, b, B_MAJOR, FORMAT)
                ptx.wgmma_commit()
                ptx.wgmma_wait(1)
                if is_leader and previous >= 0:
                    ptx.mbarrier_arrive(empty, previous)
                previous = stage
                stage += 1
                if stage == STAGES:
                    stage, parity = 0, 1 - parity
            ptx.wgmma_wait(0)
            if is_leader and previous >= 0:
                ptx.mbarrier_arrive(empty, previous)

            # -- store outputs --
            for m_block in range(M_BLOCKS):
                top, left = row * BM + (warpgroup * M_BLOCKS + m_block) * WM, col * BN
                if IN_BOXES:
                    for acc0 in range(0, ACC_VALUES, BOX):
                        store_box(x_map, x_boxes, box, acc, m_block, acc0, top, left + acc0 * 2, warpgroup, pixels)
                        box = 1 - box
                else:
                    pixel = top + warp % 4 * 16 + lane // 4
                    for n in range(0, ACC_VALUES, 4):
                        c = left + n * 2 + lane % 4 * 2
                        store_two(x, pixel, c, ptx.pack2(acc[m_block, n], acc[m_block, n + 1], RESULT), pixels)
                        pair = ptx.pack2(acc[m_block, n + 2], acc[m_block, n + 3], RESULT)
                        store_two(x, pixel + 8, c, pair, pixels)
        if is_leader:
            ptx.tma_store_wait(0)


backward_data_3 = cuda.jit(launch_bounds=(32 * 16, 1), early=True)(backward_data.py_func)  # with three consumers


def launches(x, w, y, problem, format, workspace, tiling=None):
    """x = the gradient of the images, from the outputs' gradient y and filters w, by the given tiling or the best."""
    problem.check(x, w, y, supported=SUPPORTED, dtype=format.dtype)
    C, K = (round_up_to_vectors(n, format.dtype) for n in (problem.C, problem.K))
    sequence = []
    if C != problem.C:
        w = copy_padded(w, (problem.K, problem.R, problem.S, C), (0, 0), "filters", workspace, sequence)
    if K != problem.K:
        y = copy_padded(y, (problem.N, problem.P, problem.Q, K), (0, 0), "outputs", workspace, sequence)
    for rows in remainders(problem.H, problem.R, problem.stride_h, problem.top, problem.dilation_h):
        for cols in remainders(problem.W, problem.S, problem.stride_w, problem.left, problem.dilation_w):
            sequence.append(make_launch(x, w, y, problem, rows, cols, format, tiling))
    return sequence


def make_launch(x, w, y, problem, rows: Remainder, cols: Remainder, format, tiling: Tiling | None) -> Launch:
    """Return the launch for the pixels of a pair of remainders."""
    N, C, H, W = problem.N, problem.C, problem.H, problem.W
    num_pixels, sms = N * rows.pixels * cols.pixels, cuda.get_current_device().MULTIPROCESSOR_COUNT
    steps = rows.taps * cols.taps * ceil(y.shape[3] / FILTERS)
    product = Product(num_pixels, C, steps, format.itemsize * (num_pixels * C + N * problem.P * problem.Q * problem.K))
    tiling = tiling or best_tiling(product, sms, GRADIENT_TILINGS)
    in_boxes = w.shape[3] == C
    of_pixel = (H * W * C, W * C * problem.stride_h, C * problem.stride_w, 1)
    targets = as_strided(
        x,
        (N, rows.pixels, cols.pixels, C),
        tuple(step * format.itemsize for step in of_pixel),
        begin_byte=(rows.first * W + cols.first) * C * format.itemsize,
    )
    w_words = as_words(reshape(w, problem.K, problem.R * problem.S, w.shape[3]))
    maps = (
        make_window_map(as_words(y), rows, cols, tiling.pixels),
        ptx.TensorMap(w_words, (FILTERS, 1, BOX)),
        make_store_map(as_words(targets) if in_boxes else as_words(y)),  # any images, if no copy writes the results
    )
    tiles = ceil(num_pixels / tiling.pixels), ceil(C / tiling.filters)
    rows_of_x = reshape(x, N * H * W, C)
    results = as_words(rows_of_x) if in_boxes else as_bits(rows_of_x)
    arguments = *maps, results, make_pixels(problem, rows, cols, ceil(y.shape[3] / FILTERS))
    kernel = specialise_tiling(tiling, format, in_boxes)
    block = 32, 4 * (1 + tiling.warpgroups)
    return Launch(kernel, min(prod(tiles), sms), block, (*arguments, *tiles), tiling.shared_bytes)


def make_window_map(y_words, rows: Remainder, cols: Remainder, pixels: int) -> ptx.PixelMap:
    """Return the TMA map of the outputs' gradient in words, with a window for each pixel of a pair of remainders.

    Raise `TooLarge` if TMA does not support these windows.
    """
    sides = (rows, y_words.shape[1]), (cols, y_words.shape[2])
    taps = [max(1, axis.taps) for axis, _ in sides]  # without a tap nothing is loaded
    reach = [(n - 1) * axis.dilation for n, (axis, _) in zip(taps, sides)]
    after = [axis.pixels + r - size - axis.before for r, (axis, size) in zip(reach, sides)]  # outputs past the last
    try:
        return ptx.PixelMap(
            *(y_words, pixels, BK, rows.before, cols.before, *after, *taps, 1, 1, rows.dilation, cols.dilation)
        )
    except ValueError as error:
        raise TooLarge(str(error)) from None


def make_store_map(words) -> ptx.PixelMap:
    """Return the TMA map of images in words, for stores of 64 pixels."""
    return ptx.PixelMap(words, WM, BOX, 0, 0, 0, 0, 1, 1)


def make_pixels(problem, rows: Remainder, cols: Remainder, chunks: int) -> Pixels:
    """Return the pixels of a pair of remainders; raise `TooLarge` if 32 bits do not count them."""
    N, H, W = problem.N, problem.H, problem.W
    check_counts({"the pixels of a channel": N * H * W})
    r, r_step, s, s_step = rows.last_tap, -rows.tap_step, cols.last_tap, -cols.tap_step
    if problem.flipped:
        r, r_step, s, s_step = problem.R - 1 - r, -r_step, problem.S - 1 - s, -s_step
    PQ = rows.pixels * cols.pixels
    numbers = {"chunks": chunks, "R": rows.taps, "S": cols.taps, "top": rows.before, "left": cols.before}
    numbers |= {"dilation_h": rows.dilation, "dilation_w": cols.dilation}
    numbers |= {"tap": r * problem.S + s, "tap_down": r_step * problem.S, "tap_across": s_step}
    numbers |= {"first": rows.first * W + cols.first, "down": problem.stride_h * W, "across": problem.stride_w}
    numbers |= {"image": H * W, "NPQ": N * PQ}
    numbers = {name: np.uint32(n % 2**32) for name, n in numbers.items()}
    return Pixels(**numbers, PQ=make_divisor(PQ), Q=make_divisor(cols.pixels))


@cache
def specialise_tiling(tiling: Tiling, format, in_boxes: bool):
    """Return the kernel for a tiling and a format, and for results that TMA stores or not."""
    return specialise(
        backward_data if tiling.warpgroups == 2 else backward_data_3,
        FORMAT=format.number,
        RESULT=format.result.number,
        IN_BOXES=in_boxes,
        BM=tiling.pixels,
        BN=tiling.filters,
        STAGES=tiling.stages,
        M_BLOCKS=tiling.m_blocks,
        PRODUCER_REGISTERS=tiling.registers[0],
        CONSUMER_REGISTERS=tiling.registers[1],
    )

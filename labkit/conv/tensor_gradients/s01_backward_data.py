"""The gradient of the images, as one convolution of the outputs' gradient per pair of remainders by the strides.

Pixels whose rows and columns have the same remainders by the strides take the same taps (`conv.remainders`). Their
gradient is a convolution with a stride of 1: its images are the gradient of the outputs, its channels the filters, and
its taps are in reverse order. At a stride of 1 it is a single one; at a stride of 2 one launch computes all four, the
one with most taps first. Their windows are those of the outermost taps of all, so they share a map, and each has an
offset into these windows.

The kernel is that of `tensor/s04_persistent`, with four differences. Filters are read as they are stored: a copy loads
64 filters of one tap, 64 channels each, so a row of the tile has the channels of one filter. That is an MN-major
operand of `wgmma`, and no transposed copy of the filters is needed. Results are stored by TMA as pixels of windows of
one tap: in memory the pixels of one remainder are `stride_w` apart, and a box of consecutive pixels goes on in the next
row. If sums are short, each consumer warpgroup has tiles of its own, so that one stores results while the other
multiplies (ping-pong); `TEAMS` is then 2. Every second round of tiles is in reverse order, so that no block has the
first of all rounds, which take longest.

If K or C is not a multiple of 8, a launch before this one copies gradients or filters to a workspace, with zeros after
the channels of each pixel or tap.

Costs, where K is a multiple of 64, C of BN and NHW of BM, at a stride of 1:

    KRS / 64 * (1 + BN / 64) / (BM * BN)   copies per element of the images
    KRS / 16 / (64 * BN)                   `wgmma` of a warpgroup per element of the images
    0                                      bytes of workspace

Limited as the convolution is: by L2, and with 1 x 1 taps by device memory.
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
from labkit.conv.tensor.tilings import BOXES, Product, Tiling
from labkit.conv.tensor_gradients.data_tilings import best_tiling
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
TEAMS = 1  # of warpgroups, which alternate in tiles
TEAM = BM // (WM * M_BLOCKS)  # warpgroups of a team
WARPGROUPS = TEAM * TEAMS  # consumers
CONSUMERS = 128 * WARPGROUPS  # threads
ORDER = 4  # named barrier, and the next one, at which a team waits until the other has multiplied its tile
WARPS = 4 * (1 + WARPGROUPS)
BOX = 32  # words of channels per copy, 128 bytes
W_BOXES = BN // (2 * BOX)  # of filters per stage
IN_BOXES = True  # pixels of the images are aligned to 16 bytes, as TMA needs
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232  # per thread
MAX_PAIRS = 4  # of remainders, per launch
MAX_OFFSET = 255  # outputs, of a tap in its window
W_BYTE = STAGES * BM * BK * 4  # where the tiles of filters begin
X_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of results begin
STAGE_BYTES = (BM + BN) * BK * 4


class Pixels(NamedTuple):
    """What pairs of remainders have in common, all uint32, modulo 2**32, but for divisors.

    Their pixels are counted over images, rows and columns, and divided by `PQ` and `Q`; the window of the first one
    begins `top` rows above and `left` columns before the outputs. In memory `down` and `across` lead to the next row
    and column of pixels, and `image` to the next image.
    """

    chunks: np.uint32  # of 64 filters
    top: np.uint32
    left: np.uint32
    dilation_h: np.uint32
    dilation_w: np.uint32
    tap_down: np.uint32  # to the next row of taps
    tap_across: np.uint32
    down: np.uint32
    across: np.uint32
    image: np.uint32
    col_remainders: np.uint32  # 1 or 2
    pairs: np.uint32
    NPQ: np.uint32
    PQ: Divisor
    Q: Divisor


class Axis(NamedTuple):
    """A remainder along an axis, all uint32, modulo 2**32: rows or columns of pixels."""

    taps: np.uint32
    tap: np.uint32  # the first, from the filter's first
    offset: np.uint32  # of its output in the windows
    pixels: np.uint32
    first: np.uint32  # pixel in memory


@cuda.jit(device=True)
def locate(pixel, pixels):
    """Return the image, row and column of a pixel, counted among those of the remainders."""
    n = fast_divide(pixel, pixels.PQ)
    pq = np.uint32(pixel - n * pixels.PQ.value)
    p = fast_divide(pq, pixels.Q)
    return n, p, np.uint32(pq - p * pixels.Q.value)


@cuda.jit(device=True)
def find_tile(turn, num_tiles, rows, cols, pixels):
    """Return the row, column and pair of this block's tile of a turn; the pair is past the last without one."""
    block, blocks = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    tile = np.uint32(turn * blocks + (blocks - np.uint32(1) - block if turn % 2 == 1 else block))
    if tile >= num_tiles:
        return np.uint32(0), np.uint32(0), pixels.pairs
    per_pair = np.uint32(rows * cols)
    pair = tile // per_pair
    row, col = tile_coordinates(np.uint32(tile - pair * per_pair), rows, cols)
    return row, col, pair


@cuda.jit(device=True)
def skip_stages(stage, parity, count):
    """Return the stage and parity of the ring `count` stages later."""
    later = np.uint32(stage + count)
    return np.int64(later % np.uint32(STAGES)), np.int64(parity + later // np.uint32(STAGES)) % 2


@cuda.jit(device=True)
def count_taps(pair, second_row, row_0, row_1, pixels):
    """Return the rows of taps of a pair, none past the last."""
    if pair >= pixels.pairs:
        return np.uint32(0)
    return row_1.taps if second_row else row_0.taps


@cuda.jit(device=True)
def store_box(map_0, map_1, map_2, map_3, pair, x_boxes, box, acc, m_block, acc0, pixel, c, warpgroup, pixels):
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
            n, p, q = locate(np.uint32(pixel), pixels)
            place, index = (n, p, q, c // 2), (warpgroup, box, 0, 0)
            if pair == 0:
                ptx.tma_store_pixels(map_0, place, x_boxes, index)
            elif pair == 1:
                ptx.tma_store_pixels(map_1, place, x_boxes, index)
            elif pair == 2:
                ptx.tma_store_pixels(map_2, place, x_boxes, index)
            else:
                ptx.tma_store_pixels(map_3, place, x_boxes, index)
        ptx.tma_store_commit()


@cuda.jit(device=True)
def store_two(x, pixel, c, pair, in_rows, in_cols, first, pixels):
    """Store the results of channels c and c + 1 of a pixel, if they exist; `first` is pixel 0 of the remainders."""
    if pixel < pixels.NPQ:
        n, p, q = locate(np.uint32(pixel), pixels)
        row = n * pixels.image + first + p * pixels.down + q * pixels.across
        if p < in_rows and q < in_cols:
            if c < x.shape[1]:
                x[row, c] = pair & 0xFFFF
            if c + 1 < x.shape[1]:
                x[row, c + 1] = pair >> 16


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def backward_data(y_map, w_map, map_0, map_1, map_2, map_3, x, pixels, row_0, row_1, col_0, col_1, rows, cols):
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
            ptx.mbarrier_init(empty, stage, TEAM)
        ptx.mbarrier_init_fence()
    elif warp == 1 and lane == 0:
        ptx.tma_prefetch(y_map)
        ptx.tma_prefetch(w_map)
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()  # from here on it accesses global memory
    stage, parity = 0, 0
    num_tiles = np.uint32(rows * cols * pixels.pairs)
    turns = np.uint32(num_tiles + np.uint32(cuda.gridDim.x) - np.uint32(1)) // np.uint32(cuda.gridDim.x)

    # -- producer: load windows and filters --
    if warp < 4:
        ptx.setmaxnreg_dec(PRODUCER_REGISTERS)
        if warp == 0 and lane == 0:
            for turn in range(turns):
                row, col, pair = find_tile(turn, num_tiles, rows, cols, pixels)
                second_row, second_col = pair // pixels.col_remainders == 1, pair % pixels.col_remainders == 1
                R = count_taps(pair, second_row, row_0, row_1, pixels)
                S = col_1.taps if second_col else col_0.taps
                first_tap = (row_1.tap if second_row else row_0.tap) + (col_1.tap if second_col else col_0.tap)
                down, across = (
                    row_1.offset if second_row else row_0.offset,
                    col_1.offset if second_col else col_0.offset,
                )
                n, p, q = locate(np.uint32(row * BM), pixels)
                corner_row, corner_col = np.int32(p - pixels.top), np.int32(q - pixels.left)
                for r in range(R):
                    for s in range(S):
                        tap = np.int32(first_tap + r * pixels.tap_down + s * pixels.tap_across)
                        offset = down + r * pixels.dilation_h, across + s * pixels.dilation_w
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
        box = 0  # of two, which alternate
        for turn in range(turns):
            row, col, pair = find_tile(turn, num_tiles, rows, cols, pixels)
            second_row, second_col = pair // pixels.col_remainders == 1, pair % pixels.col_remainders == 1
            R, S = count_taps(pair, second_row, row_0, row_1, pixels), col_1.taps if second_col else col_0.taps
            steps = np.uint32(R * S * pixels.chunks)
            if turn % TEAMS != warpgroup // TEAM:  # another team's tile
                stage, parity = skip_stages(stage, parity, steps)
                continue
            if TEAMS > 1 and turn > 0:  # a stage's barrier tells only two uses of it apart
                ptx.barrier_sync(ORDER + turn % TEAMS, CONSUMERS)
            for m_block in range(M_BLOCKS):
                for n in range(ACC_VALUES):
                    acc[m_block, n] = 0
            previous = -1  # the stage that the tensor cores may still read
            for _ in range(steps):
                ptx.mbarrier_wait(full, stage, parity)
                ptx.wgmma_fence()
                for step in range(0, BK, STEP):
                    for m_block in range(M_BLOCKS):
                        a = stage, (warpgroup % TEAM * M_BLOCKS + m_block) * WM, step
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
            if TEAMS > 1 and turn + 1 < turns:
                ptx.barrier_arrive(ORDER + (turn + 1) % TEAMS, CONSUMERS)
            ptx.wgmma_wait(0)
            if is_leader and previous >= 0:
                ptx.mbarrier_arrive(empty, previous)

            # -- store results --
            in_rows, in_cols = (
                row_1.pixels if second_row else row_0.pixels,
                col_1.pixels if second_col else col_0.pixels,
            )
            first = (row_1.first if second_row else row_0.first) + (col_1.first if second_col else col_0.first)
            for m_block in range(M_BLOCKS):
                top, left = row * BM + (warpgroup % TEAM * M_BLOCKS + m_block) * WM, col * BN
                if pair < pixels.pairs and IN_BOXES:
                    for acc0 in range(0, ACC_VALUES, BOX):
                        store_box(
                            map_0, map_1, map_2, map_3, pair,
                            x_boxes, box, acc, m_block, acc0, top, left + acc0 * 2, warpgroup, pixels,
                        )  # fmt: skip
                        box = 1 - box
                elif pair < pixels.pairs:
                    pixel = top + warp % 4 * 16 + lane // 4
                    for n in range(0, ACC_VALUES, 4):
                        c = left + n * 2 + lane % 4 * 2
                        two = ptx.pack2(acc[m_block, n], acc[m_block, n + 1], RESULT)
                        store_two(x, pixel, c, two, in_rows, in_cols, first, pixels)
                        two = ptx.pack2(acc[m_block, n + 2], acc[m_block, n + 3], RESULT)
                        store_two(x, pixel + 8, c, two, in_rows, in_cols, first, pixels)
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
    rows = remainders(problem.H, problem.R, problem.stride_h, problem.top, problem.dilation_h)
    cols = remainders(problem.W, problem.S, problem.stride_w, problem.left, problem.dilation_w)
    for row_pair in by_two(rows):
        for col_pair in by_two(cols):
            sequence.append(make_launch(x, w, y, problem, row_pair, col_pair, format, tiling))
    return sequence


def by_two(axis: list[Remainder]) -> list[list[Remainder]]:
    """Return remainders in pairs, the one with more taps first."""
    return [sorted(axis[i : i + 2], key=lambda one: -one.taps) for i in range(0, len(axis), 2)]


def make_launch(x, w, y, problem, rows: list[Remainder], cols: list[Remainder], format, tiling) -> Launch:
    """Return the launch for the pixels of one or two remainders along each axis."""
    N, C, H, W = problem.N, problem.C, problem.H, problem.W
    P, Q = (max(one.pixels for one in axis) for axis in (rows, cols))  # missing pixels are computed, not stored
    pairs, chunks, sms = (
        len(rows) * len(cols),
        ceil(y.shape[3] / FILTERS),
        cuda.get_current_device().MULTIPROCESSOR_COUNT,
    )
    if tiling is None:
        steps = sum(one.taps for one in rows) * sum(one.taps for one in cols) * chunks / pairs
        tiling = best_tiling(Product(pairs * N * P * Q, C, steps, problem.min_bytes(format)), sms)
    in_boxes = w.shape[3] == C
    targets = [view_pixels(x, problem, row, col) for row in rows for col in cols] if in_boxes else [y]
    stores = [make_store_map(as_words(target), P, Q) if in_boxes else make_store_map(as_words(y)) for target in targets]
    top, left = (max(one.before for one in axis) for axis in (rows, cols))
    check_reach(rows, top)
    check_reach(cols, left)
    maps = (
        make_window_map(as_words(y), tiling.pixels, (top, left), (P, Q)),
        ptx.TensorMap(as_words(reshape(w, problem.K, problem.R * problem.S, w.shape[3])), (FILTERS, 1, BOX)),
        *(stores[min(i, len(stores) - 1)] for i in range(MAX_PAIRS)),
    )
    rows_of_x = reshape(x, N * H * W, C)
    numbers = {"chunks": chunks, "top": top, "left": left, "col_remainders": len(cols), "pairs": pairs}
    pixels = make_pixels(problem, rows[0], cols[0], N, P, Q, numbers)
    axes = [make_axis(one, top, problem.R, problem.flipped, problem.S, W) for one in (rows[0], rows[-1])]
    axes += [make_axis(one, left, problem.S, problem.flipped, 1, 1) for one in (cols[0], cols[-1])]
    tiles = ceil(N * P * Q / tiling.pixels), ceil(C / tiling.filters)
    arguments = *maps, as_words(rows_of_x) if in_boxes else as_bits(rows_of_x), pixels, *axes, *tiles
    kernel = specialise_tiling(tiling, format, in_boxes)
    block = 32, 4 * (1 + tiling.warpgroups)
    return Launch(kernel, min(prod(tiles) * pairs, sms), block, arguments, tiling.shared_bytes)


def view_pixels(x, problem, row: Remainder, col: Remainder):
    """View the pixels of a pair of remainders as images."""
    size, C, W = x.dtype.itemsize, problem.C, problem.W
    strides = problem.H * W * C, problem.stride_h * W * C, problem.stride_w * C, 1
    return as_strided(
        x,
        (problem.N, row.pixels, col.pixels, C),
        tuple(stride * size for stride in strides),
        begin_byte=(row.first * W + col.first) * C * size,
    )


def make_window_map(y_words, pixels: int, before: tuple[int, int], windows: tuple[int, int]) -> ptx.PixelMap:
    """Return the TMA map of the outputs' gradient in words, with windows that begin at most `before` its first output.

    Raise `TooLarge` if TMA does not support these windows.
    """
    after = [count - size - first for count, size, first in zip(windows, y_words.shape[1:3], before)]
    try:
        return ptx.PixelMap(y_words, pixels, BK, *before, *after, 1, 1)
    except ValueError as error:
        raise TooLarge(str(error)) from None


def check_reach(axis: list[Remainder], before: int) -> None:
    """Raise `TooLarge` if a tap is farther from the beginning of its window than TMA counts."""
    reach = max(before - one.before + max(0, one.taps - 1) * one.dilation for one in axis)
    if reach > MAX_OFFSET:
        raise TooLarge(f"a window spans {reach + 1} outputs along an axis, and TMA takes {MAX_OFFSET + 1}")


def make_store_map(words, P: int = 1, Q: int = 1) -> ptx.PixelMap:
    """Return the TMA map of images in words, at least of P x Q pixels, for stores of 64 pixels."""
    missing = (max(0, count - size) for count, size in zip((P, Q), words.shape[1:3]))
    return ptx.PixelMap(words, WM, BOX, 0, 0, *missing, 1, 1)


def make_pixels(problem, row: Remainder, col: Remainder, N: int, P: int, Q: int, numbers: dict[str, int]) -> Pixels:
    """Return what pairs of remainders have in common; raise `TooLarge` if 32 bits do not count their pixels."""
    check_counts({"the pixels of a channel": max(problem.N * problem.H * problem.W, 4 * N * P * Q)})
    sign = 1 if problem.flipped else -1
    numbers |= {"dilation_h": row.dilation, "dilation_w": col.dilation}
    numbers |= {"tap_down": sign * row.tap_step * problem.S, "tap_across": sign * col.tap_step}
    numbers |= {"down": problem.stride_h * problem.W, "across": problem.stride_w, "image": problem.H * problem.W}
    divisors = {"PQ": make_divisor(P * Q), "Q": make_divisor(Q)}
    return Pixels(**_as_uint32(numbers), NPQ=np.uint32(N * P * Q), **divisors)


def make_axis(one: Remainder, before: int, taps: int, flipped: bool, tap_stride: int, pixel_stride: int) -> Axis:
    """Return a remainder along an axis whose taps and pixels are that far apart; windows begin `before` outputs."""
    tap = taps - 1 - one.last_tap if flipped else one.last_tap
    numbers = {"taps": one.taps, "tap": tap * tap_stride, "offset": before - one.before, "pixels": one.pixels}
    return Axis(**_as_uint32(numbers), first=np.uint32(one.first * pixel_stride))


def _as_uint32(numbers: dict[str, int]) -> dict[str, np.uint32]:
    return {name: np.uint32(number % 2**32) for name, number in numbers.items()}


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
        TEAMS=tiling.teams,
        PRODUCER_REGISTERS=tiling.registers[0],
        CONSUMER_REGISTERS=tiling.registers[1],
    )

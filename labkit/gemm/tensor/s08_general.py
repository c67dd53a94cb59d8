"""Any product: alpha, beta, batches; tiles as wide as fills the SMs in whole waves; launches that overlap.

The kernel behind `gemm.multiply`. A `Plan` cuts the product up. The columns of a tile may be any multiple of 8: 256 by
11008 outputs make 86 tiles of 128 x 256, and 46 of an H100's 132 SMs would rest, or 132 of 128 x 168, and none does. A
box of C has 64 columns of 16 bits all the same; the last of a tile may begin within the one before, and stores some
columns twice.

What `s07_split` does is here as well: parts along k, and operands that change places. Sums are multiplied by alpha, and
beta times what C held is added, before they are rounded.

The kernel begins early: while the launch before it still works, its blocks set up their barriers, and have the tensor
maps fetched; then they wait for it to end. That matters where a product takes 10 microseconds.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)                                copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)                                `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * 128 + 2 * WARPGROUPS * WM * 128  bytes of shared memory per block

and where SPLITS is more than 1, 2 * 4 * SPLITS bytes of workspace per output.

Limited by memory for few rows, by how soon the first tile is there for small squares, and by power for large ones.
Tried as well, at 1024 on an H100: two blocks of a cluster that share a tile by multicast, 0.83 of the speed, since a
cluster begins later, and an SM receives as many bytes as before.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.gemm.tensor.operands import DTYPES, RESULTS, as_words, check_operands
from labkit.gemm.tensor.order import place
from labkit.gemm.tensor.plans import Plan
from labkit.gemm.views import as_batch, matrix_of
from labkit.gemm.workspace import counters, workspace

FORMAT = RESULT = ptx.BF16
TF32 = ptx.TF32
BM, BN = 128, 256  # a block's part of the product: rows and columns of the instruction
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
SPLITS = 1
SWAPPED = False  # whether B's rows are the rows of the instruction
WM = 64  # rows of a warpgroup's part
SUMS = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
MULTIPLYING = 128 * WARPGROUPS  # threads
BOX = 32  # words of a row of C that one copy stores, 128 bytes
EACH = 2  # columns of C in a word
BOX_SUMS = BOX * EACH // 2  # of a thread
RIGHT_BYTE = STAGES * BM * BK * 4  # where the tiles of the right operand begin
C_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of C begin
SHARED_BYTES = C_BYTE + WARPGROUPS * 2 * WM * BOX * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(device=True)
def work(item, rows_of_tiles, cols_of_tiles):
    """Of an item of work: its part of k, its product of the batch, and the row and column of its tile."""
    part, item = np.uint32(item) % np.uint32(SPLITS), np.uint32(item) // np.uint32(SPLITS)
    tiles = np.uint32(rows_of_tiles * cols_of_tiles)
    batch = np.uint32(item) // tiles
    row, col = place(item - batch * tiles, rows_of_tiles, cols_of_tiles)
    return part, batch, row, col


@cuda.jit(device=True)
def blend(sums, alpha, beta, C, batch, row, col, rows, cols):
    """alpha times this thread's sums, plus beta times what C holds there.

    For sums outside of C, which nobody stores, the thread reads its first element once more: no load has a condition
    of its own, and so all are under way at once.
    """
    for n in range(SUMS):
        sums[n] *= alpha
    if beta != 0 and row < rows and col < cols:
        for half in range(2):
            y = row + half * 8 if row + half * 8 < rows else row
            for n in range(0, SUMS, 4):
                i = n + half * 2
                x = col + n * 2 if col + n * 2 < cols else col
                if SWAPPED:
                    sums[i] += beta * number(C[batch, x, y])
                    sums[i + 1] += beta * number(C[batch, x + 1 if x + 1 < cols else x, y])
                else:
                    if RESULT == TF32:
                        first, second = C[batch, y, x], C[batch, y, x + 1]
                    else:
                        first, second = ptx.unpack2(C[batch, y, x // 2], RESULT)
                    sums[i] += beta * first
                    sums[i + 1] += beta * second


@cuda.jit(device=True)
def number(element):
    """What an element of C stands for."""
    if RESULT == TF32:
        return element
    return ptx.unpack2(np.uint32(element), RESULT)[0]


@cuda.jit(device=True)
def store_swapped(sums, C, batch, row, col, rows, cols):
    """Stores the transpose of a tile, of which there is little."""
    for n in range(0, SUMS, 4):
        for half in range(2):
            y, x = row + half * 8, col + n * 2
            for i in range(2):
                if y < rows and x + i < cols:
                    value = sums[n + half * 2 + i]
                    if RESULT == TF32:
                        C[batch, x + i, y] = value
                    else:
                        C[batch, x + i, y] = ptx.pack2(value, value, RESULT) & 0xFFFF


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def general(
    left_map, right_map, C_map, C, rows, cols, rows_of_tiles, cols_of_tiles, steps, items, alpha, beta, parts, arrived
):
    left_tiles = ptx.shared_array(0, (STAGES, 1, BM, BK), np.uint32)
    right_tiles = ptx.shared_array(RIGHT_BYTE, (STAGES, 1, BN, BK), np.uint32)
    C_boxes = ptx.shared_array(C_BYTE, (WARPGROUPS, 2, WM, BOX), np.uint32)
    C_singles = ptx.shared_array(C_BYTE, (WARPGROUPS, 2, WM, BOX), np.float32)  # the same, for float32 results
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    last = cuda.shared.array(1, np.int32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, WARPGROUPS)
        ptx.mbarrier_init_fence()
    elif warp == 1 and lane == 0:
        ptx.tma_prefetch(left_map)
        ptx.tma_prefetch(right_map)
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()  # from here on global memory is touched
    stage, parity = 0, 0

    if warp < 4:
        ptx.setmaxnreg_dec(56)
        if warp == 0 and lane == 0:
            for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
                part, batch, row, col = work(item, rows_of_tiles, cols_of_tiles)
                top, left = row * BM, col * BN
                for step in range(steps * part // SPLITS, steps * (part + 1) // SPLITS):
                    ptx.mbarrier_wait(empty, stage, 1 - parity)
                    ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                    ptx.tma_load(left_tiles, (stage, 0, 0, 0), left_map, (batch, top, step * BK), full, stage)
                    ptx.tma_load(right_tiles, (stage, 0, 0, 0), right_map, (batch, left, step * BK), full, stage)
                    stage += 1
                    if stage == STAGES:
                        stage, parity = 0, 1 - parity
    else:
        ptx.setmaxnreg_inc(224)
        sums = cuda.local.array(SUMS, np.float32)
        group, thread = warp // 4 - 1, (warp - 4) * 32 + lane
        leads = warp % 4 == 0 and lane == 0
        box_row, box_piece = warp % 4 * 16 + lane % 16, lane // 16  # where this lane stores a row of 16 bytes
        box = 0  # of two, which take turns
        for item in range(cuda.blockIdx.x, items, cuda.gridDim.x):
            part, batch, row, col = work(item, rows_of_tiles, cols_of_tiles)
            top, left = row * BM + group * WM, col * BN
            begin, end = steps * part // SPLITS, steps * (part + 1) // SPLITS
            for n in range(SUMS):
                sums[n] = 0
            before = -1  # the stage that the tensor cores may still read
            for _ in range(begin, end):
                ptx.mbarrier_wait(full, stage, parity)
                ptx.wgmma_fence()
                for word in range(0, BK, STEP):
                    ptx.wgmma(
                        sums, 0, BN, left_tiles, (stage, 0, group * WM, word), right_tiles, (stage, 0, 0, word), FORMAT
                    )
                ptx.wgmma_commit()
                ptx.wgmma_wait(1)
                if leads and before >= 0:
                    ptx.mbarrier_arrive(empty, before)
                before = stage
                stage += 1
                if stage == STAGES:
                    stage, parity = 0, 1 - parity
            ptx.wgmma_wait(0)
            if leads and before >= 0:
                ptx.mbarrier_arrive(empty, before)

            if SPLITS > 1:
                where = item // SPLITS
                for n in range(SUMS):
                    parts[where, part, n, thread] = sums[n]
                cuda.threadfence()
                ptx.barrier_sync(WARPGROUPS + 1, MULTIPLYING)
                if thread == 0:
                    last[0] = cuda.atomic.inc(arrived, where, SPLITS - 1) == SPLITS - 1  # and it is 0 again
                ptx.barrier_sync(WARPGROUPS + 1, MULTIPLYING)
                if last[0] == 0:
                    continue
                cuda.threadfence()
                for n in range(SUMS):
                    sums[n] = 0
                for other in range(SPLITS):
                    for n in range(SUMS):
                        sums[n] += parts[where, other, n, thread]

            y, x = top + warp % 4 * 16 + lane // 4, left + lane % 4 * 2
            blend(sums, alpha, beta, C, batch, y, x, rows, cols)
            if SWAPPED:
                store_swapped(sums, C, batch, y, x, rows, cols)
            else:
                for start in range(0, SUMS, BOX_SUMS):
                    n = min(start, SUMS - BOX_SUMS)  # the last box may begin within the one before
                    if leads:
                        ptx.tma_store_wait(1)  # the box is free again
                    ptx.barrier_sync(group + 1, 128)
                    if RESULT == TF32:
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
                        ptx.tma_store(C_map, (batch, top, (left + n * 2) // EACH), C_boxes, (group, box, 0, 0))
                        ptx.tma_store_commit()
                    box = 1 - box
        if leads:
            ptx.tma_store_wait(0)


PLAN = Plan(BM, BN, STAGES)


def arguments(A, B, C):
    """What the kernel takes for C = A @ B.T."""
    return _arguments(A, B, C, PLAN, 1.0, 0.0, 0)


def geometry(M: int, N: int):
    """Grid and block for an M x N result: at most a block for each SM."""
    return _geometry(PLAN, *_tiles(PLAN, M, N), 1)


def launch(A, B, C, stream=0):
    """C = A @ B.T."""
    launch_as(A, B, C, PLAN, stream=stream)


def launch_as(A, B, C, plan, alpha=1.0, beta=0.0, stream=0):
    """C = alpha * A @ B.T + beta * C, cut up as a plan says; three matrices, or three batches of as many each.

    Raises
    ------
    TypeError
        No format of the tensor cores has such arrays.
    ValueError
        The shapes do not fit together, or rows do not begin at multiples of 16 bytes.
    """
    if len({tuple(X.shape[:-2]) for X in (A, B, C)}) != 1:
        raise ValueError("A, B and C are three matrices, or batches of as many each: repeat what is there once")
    number = check_operands(*(matrix_of(X, 0) for X in (A, B, C)), formats=tuple(DTYPES))
    taken = _arguments(A, B, C, plan, alpha, beta, stream)
    *batches, M, N = C.shape
    grid, block = _geometry(plan, *_tiles(plan, M, N), *(batches or (1,)))
    shared_bytes = (plan.stages * (plan.rows + plan.cols) + 2 * plan.rows) * BK * 4
    _with(number, plan)[grid, block, stream, shared_bytes](*taken)


def _tiles(plan, M, N) -> tuple[int, int]:
    """How many tiles there are, one below the other and side by side."""
    rows, cols = (N, M) if plan.swapped else (M, N)
    return -(-rows // plan.rows), -(-cols // plan.cols)


def _geometry(plan, rows_of_tiles, cols_of_tiles, batches):
    items = rows_of_tiles * cols_of_tiles * batches * plan.splits
    return min(items, cuda.get_current_device().MULTIPROCESSOR_COUNT), (32, 4 * (1 + plan.rows // WM))


def _arguments(A, B, C, plan, alpha, beta, stream):
    A, B, C = map(as_batch, (A, B, C))
    single = A.dtype == np.float32
    rows_of_tiles, cols_of_tiles = _tiles(plan, *C.shape[1:])
    tiles = rows_of_tiles * cols_of_tiles * C.shape[0]
    left, right = map(as_words, (B, A) if plan.swapped else (A, B))
    left_map = ptx.TensorMap(left, (1, plan.rows, BK), single)
    right_map = ptx.TensorMap(right, (1, plan.cols, BK), single)
    if plan.swapped:  # no copies of boxes to C
        C, C_map = C if single else C.view(np.uint16), left_map
    else:
        C = C if single else as_words(C)
        C_map = ptx.TensorMap(C, (1, WM, BOX))
    shared = tiles if plan.splits > 1 else 1  # tiles whose sums several blocks make
    parts = workspace("parts", (shared, plan.splits, WM * plan.cols // 128, 2 * plan.rows), np.float32, stream)
    sizes = left.shape[1], right.shape[1], rows_of_tiles, cols_of_tiles, -(-left.shape[2] // BK), tiles * plan.splits
    scale = np.float32(alpha), np.float32(beta)
    return left_map, right_map, C_map, C, *sizes, *scale, parts, counters(shared, stream)


@cache
def _with(number, plan):
    """The kernel for a format and a plan."""
    groups, each = plan.rows // WM, 1 if number == TF32 else 2
    return specialise(
        general,
        FORMAT=number,
        RESULT=RESULTS[number],
        BM=plan.rows,
        BN=plan.cols,
        STAGES=plan.stages,
        SPLITS=plan.splits,
        SWAPPED=plan.swapped,
        SUMS=WM * plan.cols // 128,
        WARPGROUPS=groups,
        MULTIPLYING=128 * groups,
        EACH=each,
        BOX_SUMS=BOX * each // 2,
        RIGHT_BYTE=plan.stages * plan.rows * BK * 4,
        C_BYTE=plan.stages * (plan.rows + plan.cols) * BK * 4,
        STAGE_BYTES=(plan.rows + plan.cols) * BK * 4,
    )

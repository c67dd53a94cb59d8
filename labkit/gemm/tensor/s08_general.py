"""Any product: alpha, beta, batches; tiles as wide as fills the SMs in whole waves; launches that overlap.

The kernel behind `gemm.multiply`. A `Plan` cuts the product up. The columns of a tile may be any multiple of 8: 256 by
11008 outputs make 86 tiles of 128 x 256, and 46 of an H100's 132 SMs would rest, or 132 of 128 x 168, and none does. A
box of C has 64 columns of 16 bits all the same; the last of a tile may begin within the one before, and stores some
columns twice.

What `s07_split` does is here as well: parts along k, and operands that change places. An operand of 16 bits may lie
MN-major, its memory running across k, as B's does where A @ B is asked for: its tile comes in boxes of 64 columns. Sums
are multiplied by alpha, and beta times what C held is added, before they are rounded.

The kernel begins early: while the launch before it still works, its blocks set up their barriers, and have the tensor
maps fetched; then they wait for it to end. That matters where a product takes 10 microseconds.

Costs, for 16-bit formats, operands that run along k, and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)                                copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)                                `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * 128 + 2 * WARPGROUPS * WM * 128  bytes of shared memory per block

and where SPLITS is more than 1, 2 * 4 * SPLITS bytes of workspace per output.

Limited by memory for few rows, by how soon the first tile is there for small squares, and by power for large ones.
Tried as well, at 1024 on an H100: two blocks of a cluster that share a tile by multicast, 0.83 of the speed, since a
cluster begins later, and an SM receives as many bytes as before.
"""

from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

from labkit import cuda, formats, ptx, specialise
from labkit.arrays.views import as_batch, as_bits, matrix_of, turned
from labkit.arrays.workspace import counters, workspace
from labkit.gemm.tensor.operands import as_words, check_operands
from labkit.gemm.tensor.order import place
from labkit.gemm.tensor.plans import MN_ROWS, Plan, check_plan, most_stages
from labkit.ladder import Launch

FORMATS = formats.BF16, formats.FP16, formats.E4M3, formats.TF32
FORMAT = RESULT = ptx.BF16
TF32 = formats.FP32.number
BM, BN = 128, 256  # a block's part of the product: rows and columns of the instruction
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
SPLITS = 1
SWAPPED = False  # whether B's rows are the rows of the instruction
K_MAJOR, MN_MAJOR = ptx.K_MAJOR, ptx.MN_MAJOR
LEFT_MAJOR = RIGHT_MAJOR = K_MAJOR  # whether an operand's memory runs along k, or along its rows in the tile
MN_DEPTH = 64  # along k, of a box that runs along the rows
WM = 64  # rows of a warpgroup's part
SUMS = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
MULTIPLYING = 128 * WARPGROUPS  # threads
BOX = 32  # words of a row of C that one copy stores, 128 bytes
EACH = 2  # columns of C in a word
BOX_SUMS = BOX * EACH // 2  # of a thread
LEFT_SHAPE = STAGES, 1, BM, BK  # of shared memory: by stages, boxes of which the operand's tile is made, and rows
RIGHT_SHAPE = STAGES, 1, BN, BK
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
def load(tiles, stage, tensor_map, major, batch, first, step, full):
    """Begins to fetch a stage of an operand: its rows from the first of the tile on, at a step along k."""
    if major == K_MAJOR:
        ptx.tma_load(tiles, (stage, 0, 0, 0), tensor_map, (batch, first, step * BK), full, stage)
    else:
        for box in range(tiles.shape[1]):
            begin = batch, step * MN_DEPTH, (first + box * MN_ROWS) // 2
            ptx.tma_load(tiles, (stage, box, 0, 0), tensor_map, begin, full, stage)


@cuda.jit(device=True)
def part_of(stage, major, row, word):
    """Where in shared memory the part of an operand begins that an instruction takes, from a row and a word on."""
    if major == K_MAJOR:
        return stage, 0, row, word
    return stage, row // MN_ROWS, 2 * word, 0


@cuda.jit(device=True)
def blend(sums, alpha, beta, C, batch, row, col, rows, cols):
    """alpha times this thread's sums, plus beta times what C holds there.

    For columns outside of C, whose sums nobody stores, the thread reads its first one once more: no load has a
    condition of its own, and so all of a row are under way at once; those of both its rows would take too many
    registers.
    """
    for n in range(SUMS):
        sums[n] *= alpha
    if beta != 0:
        for half in range(2):
            y = row + half * 8
            if y < rows and col < cols:
                for i in range(half * 2, SUMS, 4):
                    x = col + i // 4 * 8
                    x = x if x < cols else col
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
            cuda.syncwarp()


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
    left_tiles = ptx.shared_array(0, LEFT_SHAPE, np.uint32)
    right_tiles = ptx.shared_array(RIGHT_BYTE, RIGHT_SHAPE, np.uint32)
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
                    load(left_tiles, stage, left_map, LEFT_MAJOR, batch, top, step, full)
                    load(right_tiles, stage, right_map, RIGHT_MAJOR, batch, left, step, full)
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
                    a = part_of(stage, LEFT_MAJOR, group * WM, word)
                    b = part_of(stage, RIGHT_MAJOR, 0, word)
                    ptx.wgmma_major(sums, 0, BN, left_tiles, a, LEFT_MAJOR, right_tiles, b, RIGHT_MAJOR, FORMAT)
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


class Form(NamedTuple):
    """What a kernel is compiled for."""

    number: int  # of the operands' format
    plan: Plan
    left_major: int
    right_major: int

    @classmethod
    def of(cls, A, B, number, plan) -> "Form":
        """Of a product of arrays; with fewer stages than planned where boxes are wider than a tile."""
        left, right = (B, A) if plan.swapped else (A, B)
        form = cls(number, plan, _major(left), _major(right))
        _, boxes, rows, _ = form.right_shape
        return form._replace(plan=plan._replace(stages=min(plan.stages, most_stages(plan.rows, boxes * rows))))

    @property
    def left_shape(self) -> tuple[int, int, int, int]:
        return _in_shared(self.plan, self.plan.rows, self.left_major)

    @property
    def right_shape(self) -> tuple[int, int, int, int]:
        return _in_shared(self.plan, self.plan.cols, self.right_major)

    @property
    def tile_bytes(self) -> tuple[int, int]:
        """Of all stages: of the left operand, and of the right one."""
        return prod(self.left_shape) * 4, prod(self.right_shape) * 4

    @property
    def shared_bytes(self) -> int:
        return sum(self.tile_bytes) + 2 * self.plan.rows * BOX * 4


def _major(X) -> int:
    """How an operand's memory runs, along k or along its rows."""
    return K_MAJOR if X.strides[-1] == X.dtype.itemsize else MN_MAJOR


def _in_shared(plan, rows, major):
    """The shape of an operand's tiles in shared memory."""
    return (plan.stages, 1, rows, BK) if major == K_MAJOR else (plan.stages, -(-rows // MN_ROWS), MN_DEPTH, BK)


def arguments(A, B, C):
    """What the kernel takes for C = A @ B.T."""
    return _arguments(A, B, C, Form(FORMAT, PLAN, K_MAJOR, K_MAJOR), 1.0, 0.0, 0)


def geometry(M: int, N: int):
    """Grid and block for an M x N result: at most a block for each SM."""
    return _geometry(PLAN, *_tiles(PLAN, M, N), 1)


def launches(A, B, C, format):
    """C = A @ B.T."""
    form = Form(format.number, PLAN, K_MAJOR, K_MAJOR)
    grid, block = geometry(*C.shape)
    return [Launch(_compiled_for(form), grid, block, _arguments(A, B, C, form, 1.0, 0.0, 0), form.shared_bytes)]


def launch_as(A, B, C, plan, alpha=1.0, beta=0.0, stream=0):
    """C = alpha * A @ B.T + beta * C, cut up as a plan says; three matrices, or three batches of as many each.

    Rows of A and B, of 16 bits, may also be columns in memory: neighbours along k lie apart, those along M or N do not.

    Raises
    ------
    TypeError
        No format of the tensor cores has such arrays.
    ValueError
        The shapes do not fit together, rows do not begin at multiples of 16 bytes, or the plan is none.
    """
    if len({tuple(X.shape[:-2]) for X in (A, B, C)}) != 1 or len(C.shape) > 3 or 0 in C.shape:
        raise ValueError("A, B and C are three matrices, or batches of as many each: repeat what is there once")
    check_plan(plan)
    format = next(one for one in FORMATS if one.dtype == A.dtype)
    check_operands(*(matrix_of(X, 0) for X in (A, B, C)), format, any_major=True)
    form = Form.of(A, B, format.number, plan)
    taken = _arguments(A, B, C, form, alpha, beta, stream)
    *batches, M, N = C.shape
    grid, block = _geometry(plan, *_tiles(plan, M, N), *(batches or (1,)))
    _compiled_for(form)[grid, block, stream, form.shared_bytes](*taken)


def _tiles(plan, M, N) -> tuple[int, int]:
    """How many tiles there are, one below the other and side by side."""
    rows, cols = (N, M) if plan.swapped else (M, N)
    return -(-rows // plan.rows), -(-cols // plan.cols)


def _geometry(plan, rows_of_tiles, cols_of_tiles, batches):
    items = rows_of_tiles * cols_of_tiles * batches * plan.splits
    return min(items, cuda.get_current_device().MULTIPROCESSOR_COUNT), (32, 4 * (1 + plan.rows // WM))


def _arguments(A, B, C, form, alpha, beta, stream):
    A, B, C, plan = *map(as_batch, (A, B, C)), form.plan
    rows_of_tiles, cols_of_tiles = _tiles(plan, *C.shape[1:])
    tiles = rows_of_tiles * cols_of_tiles * C.shape[0]
    left, right = (B, A) if plan.swapped else (A, B)
    left_map, right_map = _map(left, plan.rows, form.left_major), _map(right, plan.cols, form.right_major)
    single = C.dtype == np.float32
    if plan.swapped:  # no copies of boxes to C
        C, C_map = C if single else as_bits(C), left_map
    else:
        C = C if single else as_words(C)
        C_map = ptx.TensorMap(C, (1, WM, BOX))
    shared = tiles if plan.splits > 1 else 1  # tiles whose sums several blocks make
    parts = workspace("parts", (shared, plan.splits, WM * plan.cols // 128, 2 * plan.rows), np.float32, stream)
    steps = -(-max(left.shape[2], right.shape[2]) * A.dtype.itemsize // (BK * 4))
    sizes = left.shape[1], right.shape[1], rows_of_tiles, cols_of_tiles, steps, tiles * plan.splits
    scale = np.float32(alpha), np.float32(beta)
    return left_map, right_map, C_map, C, *sizes, *scale, parts, counters(shared, stream)


def _map(X, rows, major):
    """The tensor map of an operand, whose tile has so many of its rows."""
    if major == MN_MAJOR:
        return ptx.TensorMap(as_words(turned(X)), (1, MN_DEPTH, BK))
    return ptx.TensorMap(as_words(X), (1, rows, BK), to_tf32=X.dtype == np.float32)


@cache
def _compiled_for(form):
    plan, groups, each = form.plan, form.plan.rows // WM, 1 if form.number == ptx.TF32 else 2
    left_bytes, right_bytes = form.tile_bytes
    return specialise(
        general,
        FORMAT=form.number,
        RESULT=next(one for one in FORMATS if one.number == form.number).result.number,
        BM=plan.rows,
        BN=plan.cols,
        STAGES=plan.stages,
        SPLITS=plan.splits,
        SWAPPED=plan.swapped,
        LEFT_MAJOR=form.left_major,
        RIGHT_MAJOR=form.right_major,
        LEFT_SHAPE=form.left_shape,
        RIGHT_SHAPE=form.right_shape,
        SUMS=WM * plan.cols // 128,
        WARPGROUPS=groups,
        MULTIPLYING=128 * groups,
        EACH=each,
        BOX_SUMS=BOX * each // 2,
        RIGHT_BYTE=left_bytes,
        C_BYTE=left_bytes + right_bytes,
        STAGE_BYTES=(left_bytes + right_bytes) // plan.stages,
    )

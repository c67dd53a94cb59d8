"""Persistent blocks: each computes several tiles of C, and stores one while the copies for the next are in flight.

The grid has one block per SM. The producer thread runs ahead into the next tile of C, so that the ring is full when the
consumers begin it. Results are stored through shared memory: `stmatrix` writes some columns at a time, swizzled, and
TMA stores them to global memory, in rows of 128 bytes. This step also takes float32 operands, of which the tensor cores
read the upper 19 bits, TF32. The result is float32 then, and plain stores replace `stmatrix`, which moves pairs of
16-bit elements.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)                            copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)                            `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4 + 2 * BOXES * WM * 128    bytes of shared memory per block

Limited by power: repeated for seconds, it draws the 700 W of an H100, whose clock falls from 1,980 to 1,350 MHz. At
that clock it does 91% of what the tensor cores can do.
"""

import numpy as np

from labkit import cuda, formats, ptx
from labkit.arrays.views import as_words
from labkit.gemm.tensor.operands import check_operands, specialise_format
from labkit.ladder import Launch
from labkit.parts.tile_order import tile_coordinates

FORMATS = formats.BF16, formats.FP16, formats.E4M3, formats.TF32
FORMAT = RESULT = ptx.BF16  # of A and B, and of C; `launches` replaces them
FP32 = formats.FP32.number
BM, BN = 128, 256  # a block's part of C
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
WM = 64  # rows of a warpgroup's part of C
NUM_ACC = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
BOX = 32  # words of a row of C that one copy stores, 128 bytes
BOXES = 2  # that a warpgroup stores at a time
PIECES = BOXES * BOX // 4  # of 16 bytes, in their rows
B_BYTE = STAGES * BM * BK * 4  # where the tiles of B begin
C_BYTE = STAGES * (BM + BN) * BK * 4  # where the boxes of C begin
SHARED_BYTES = C_BYTE + WARPGROUPS * BOXES * WM * BOX * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def persistent(A_map, B_map, C_map, M, N, K):
    A_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    B_tiles = ptx.shared_array(B_BYTE, (STAGES, BN, BK), np.uint32)
    C_boxes = ptx.shared_array(C_BYTE, (WARPGROUPS, BOXES, WM, BOX), np.uint32)
    C_singles = ptx.shared_array(C_BYTE, (WARPGROUPS, BOXES, WM, BOX), np.float32)  # the same, for float32 results
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
    rows, cols, tiles = -(-M // BM), -(-N // BN), -(-K // BK)

    # -- producer: load A and B tiles --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            stages_used = 0
            for output_tile in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
                row, col = tile_coordinates(output_tile, rows, cols)
                for tile in range(tiles):
                    stage, phase = stages_used % STAGES, stages_used // STAGES
                    ptx.mbarrier_wait(empty, stage, (phase + 1) % 2)  # passes at once in the first phase
                    ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                    ptx.tma_load(A_tiles, (stage, 0, 0), A_map, (row * BM, tile * BK), full, stage)
                    ptx.tma_load(B_tiles, (stage, 0, 0), B_map, (col * BN, tile * BK), full, stage)
                    stages_used += 1
    # -- consumers: acc += A @ B.T --
    else:
        ptx.setmaxnreg_inc(232)
        acc = cuda.local.array(NUM_ACC, np.float32)
        group = warp // 4 - 1
        leads = warp % 4 == 0 and lane == 0
        box_row, box_piece = warp % 4 * 16 + lane % 16, lane // 16  # of the 16 bytes this lane stores
        words = 2 if RESULT == FP32 else 1  # of C, for two columns
        stages_used = 0
        for output_tile in range(cuda.blockIdx.x, rows * cols, cuda.gridDim.x):
            row, col = tile_coordinates(output_tile, rows, cols)
            for n in range(NUM_ACC):
                acc[n] = 0
            for tile in range(tiles):
                stage, phase = stages_used % STAGES, stages_used // STAGES
                ptx.mbarrier_wait(full, stage, phase % 2)
                ptx.wgmma_fence()
                for step in range(0, BK, STEP):
                    ptx.wgmma(acc, 0, BN, A_tiles, (stage, group * WM, step), B_tiles, (stage, 0, step), FORMAT)
                ptx.wgmma_commit()
                ptx.wgmma_wait(1)
                if leads and tile > 0:
                    ptx.mbarrier_arrive(empty, (stages_used - 1) % STAGES)
                stages_used += 1
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty, (stages_used - 1) % STAGES)

            # -- store C --
            for first in range(0, BN // 8 * words, PIECES):
                if leads:
                    ptx.tma_store_wait(0)  # the boxes are free again
                ptx.barrier_sync(group + 1, 128)  # a barrier of this warpgroup
                if RESULT == FP32:
                    for piece in range(0, PIECES, 2):
                        n = (first + piece) * 2
                        for half in range(2):
                            y = warp % 4 * 16 + half * 8 + lane // 4
                            word = (piece % 8 + lane % 4 // 2 ^ y % 8) * 4 + lane % 2 * 2  # swizzled
                            ptx.store2(
                                C_singles, (group, piece // 8, y, word), acc[n + half * 2], acc[n + half * 2 + 1]
                            )
                else:
                    for piece in range(0, PIECES, 2):
                        n = (first + piece) * 4
                        ptx.stmatrix4(
                            C_boxes,
                            (group, piece // 8, box_row, (piece % 8 + box_piece ^ box_row % 8) * 4),
                            ptx.pack2(acc[n], acc[n + 1], RESULT),
                            ptx.pack2(acc[n + 2], acc[n + 3], RESULT),
                            ptx.pack2(acc[n + 4], acc[n + 5], RESULT),
                            ptx.pack2(acc[n + 6], acc[n + 7], RESULT),
                        )
                ptx.fence_async()
                ptx.barrier_sync(group + 1, 128)  # a barrier of this warpgroup
                if leads:
                    for box in range(BOXES):
                        word = col * BN // 2 * words + first * 4 + box * BOX
                        ptx.tma_store(C_map, (row * BM + group * WM, word), C_boxes, (group, box, 0, 0))
                    ptx.tma_store_commit()
        if leads:
            ptx.tma_store_wait(0)


def geometry(M: int, N: int):
    """Grid and block for an M x N result: at most one block per SM."""
    parts = -(-N // BN) * -(-M // BM)
    return min(parts, cuda.get_current_device().MULTIPROCESSOR_COUNT), (32, WARPS)


def launches(A, B, C, format):
    """C = A @ B.T; float32 is rounded to TF32 by the copies."""
    check_operands(A, B, C, format)
    (M, N), single = C.shape, format.itemsize == 4
    A, B, C = as_words(A), as_words(B), as_words(C)
    maps = ptx.TensorMap(A, (BM, BK), single), ptx.TensorMap(B, (BN, BK), single), ptx.TensorMap(C, (WM, BOX))
    return [Launch(specialise_format(persistent, format), *geometry(M, N), (*maps, M, N, A.shape[1]), SHARED_BYTES)]

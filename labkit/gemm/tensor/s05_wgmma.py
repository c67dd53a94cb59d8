"""A warpgroup multiplies 64 x 256 in one instruction, and the tensor cores read shared memory themselves.

`wgmma` reads A and B from shared memory, through descriptors of a tile's address and swizzle. No fragments pass through
registers; a thread only holds its 128 accumulators. The instruction is asynchronous: `wgmma_fence` before the first of
a group, `wgmma_commit` after the last, `wgmma_wait` before any access to the accumulators or the tiles. Two warpgroups
multiply, the upper and the lower half of A's tile by the same tile of B. Each keeps one group in flight while it waits
for the next tile, so it releases a stage only when the next group is in flight.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)          `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4     bytes of shared memory per block

Limited by prologue and epilogue: while a block stores its part of C, the tensor cores and the ring are idle.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words
from labkit.gemm.tensor.edges import store_word
from labkit.gemm.tensor.operands import check_operands, specialise_format
from labkit.ladder import Launch
from labkit.parts.tile_order import tile_coordinates

FORMAT = RESULT = ptx.BF16  # of A and B, and of C; `launches` replaces them
BM, BN = 128, 256  # a block's part of C
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
WM = 64  # rows of a warpgroup's part of C
NUM_ACC = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
B_BYTE = STAGES * BM * BK * 4  # where the tiles of B begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def wgmma(A_map, B_map, C, K):
    A_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    B_tiles = ptx.shared_array(B_BYTE, (STAGES, BN, BK), np.uint32)
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
    tile_row, tile_col = tile_coordinates(np.uint32(cuda.blockIdx.x), -(-C.shape[0] // BM), -(-C.shape[1] * 2 // BN))
    top, left = tile_row * BM, tile_col * BN
    tiles = -(-K // BK)

    # -- producer: load A and B tiles --
    if warp < 4:
        ptx.setmaxnreg_dec(40)
        if warp == 0 and lane == 0:
            for tile in range(tiles):
                stage, phase = tile % STAGES, tile // STAGES
                ptx.mbarrier_wait(empty, stage, (phase + 1) % 2)  # passes at once in the first phase
                ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                ptx.tma_load(A_tiles, (stage, 0, 0), A_map, (top, tile * BK), full, stage)
                ptx.tma_load(B_tiles, (stage, 0, 0), B_map, (left, tile * BK), full, stage)
    # -- consumers: acc += A @ B.T --
    else:
        ptx.setmaxnreg_inc(232)
        acc = cuda.local.array(NUM_ACC, np.float32)
        y = (warp // 4 - 1) * WM
        leads = warp % 4 == 0 and lane == 0
        for n in range(NUM_ACC):
            acc[n] = 0
        for tile in range(tiles):
            stage, phase = tile % STAGES, tile // STAGES
            ptx.mbarrier_wait(full, stage, phase % 2)
            ptx.wgmma_fence()
            for step in range(0, BK, STEP):
                ptx.wgmma(acc, 0, BN, A_tiles, (stage, y, step), B_tiles, (stage, 0, step), FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(1)
            if leads and tile > 0:
                ptx.mbarrier_arrive(empty, (tile - 1) % STAGES)
        ptx.wgmma_wait(0)

        # -- store C --
        row, word = top + y + warp % 4 * 16 + lane // 4, left // 2 + lane % 4
        for n in range(0, NUM_ACC, 4):
            store_word(C, row, word + n, ptx.pack2(acc[n], acc[n + 1], RESULT))
            store_word(C, row + 8, word + n, ptx.pack2(acc[n + 2], acc[n + 3], RESULT))


def geometry(M: int, N: int):
    """Grid and block for an M x N result."""
    return -(-N // BN) * -(-M // BM), (32, WARPS)


def launches(A, B, C, format):
    """C = A @ B.T."""
    check_operands(A, B, C, format)
    grid, block = geometry(*C.shape)
    A, B, C = as_words(A), as_words(B), as_words(C)
    arguments = ptx.TensorMap(A, (BM, BK)), ptx.TensorMap(B, (BN, BK)), C, A.shape[1]
    return [Launch(specialise_format(wgmma, format), grid, block, arguments, SHARED_BYTES)]

"""TMA fills the ring: one thread issues copies of whole tiles, and barriers in shared memory synchronise the warps.

One thread of a producer warpgroup (four warps) issues all copies. The Tensor Memory Accelerator (TMA) computes the
addresses, swizzles the tiles, and writes zeros where a tile is outside of the matrix. Each stage has two barriers.
Consumer warps wait at `full`, where TMA counts the bytes that have arrived. The producer waits at `empty`, where each
consumer warp arrives after it has read its last fragment. So no barrier of the whole block is left. The producer
warpgroup releases registers that it does not need, and the consumers take them.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)          copies per output, of a whole tile
    K * (1 / WM + 1 / WN) / 8       `ldmatrix` per output and lane
    STAGES * (BM + BN) * BK * 4     bytes of shared memory per block
    0                               bank conflicts per block

Limited by `mma`, which does not reach the peak of Hopper's tensor cores. `ldmatrix` takes 1.38 wavefronts per cycle of
these, which alone would allow 718 TFLOP/s on an H100.
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
WM, WN = 64, 64  # a warp's part of C
MI, NI = WM // 16, WN // 8  # its fragments
WARPS_X = BN // WN
WARPS = BM // WM * WARPS_X  # that multiply
WARPGROUP = 4
B_BYTE = STAGES * BM * BK * 4  # where the tiles of B begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(launch_bounds=(32 * (WARPGROUP + WARPS), 1))
def copy_engine(A_map, B_map, C, K):
    A_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    B_tiles = ptx.shared_array(B_BYTE, (STAGES, BN, BK), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- initialise barriers --
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, WARPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    tile_row, tile_col = tile_coordinates(np.uint32(cuda.blockIdx.x), -(-C.shape[0] // BM), -(-C.shape[1] * 2 // BN))
    top, left = tile_row * BM, tile_col * BN
    tiles = -(-K // BK)

    # -- producer: load A and B tiles --
    if warp < WARPGROUP:
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
        acc = cuda.local.array((MI, NI, 4), np.float32)
        a = cuda.local.array((MI, 4), np.uint32)
        b = cuda.local.array((NI, 2), np.uint32)
        y, x = (warp - WARPGROUP) // WARPS_X * WM, (warp - WARPGROUP) % WARPS_X * WN
        g, t = lane // 4, lane % 4
        a_row, a_piece = lane % 16, lane // 16  # row and 16-byte piece that this lane addresses
        b_row, b_piece = lane // 16 * 8 + lane % 8, lane // 8 % 2
        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    acc[i, j, n] = 0
        for tile in range(tiles):
            stage, phase = tile % STAGES, tile // STAGES
            ptx.mbarrier_wait(full, stage, phase % 2)
            for step in range(0, BK, STEP):
                for i in range(MI):
                    word = (step // 4 + a_piece ^ a_row % 8) * 4  # swizzled
                    a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(A_tiles, (stage, y + i * 16 + a_row, word))
                for j in range(0, NI, 2):
                    word = (step // 4 + b_piece ^ b_row % 8) * 4  # swizzled
                    b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1] = ptx.ldmatrix4(
                        B_tiles, (stage, x + j * 8 + b_row, word)
                    )
                for i in range(MI):
                    for j in range(NI):
                        ptx.mma(acc, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b[j, 0], b[j, 1]), FORMAT)
            if lane == 0:
                ptx.mbarrier_arrive(empty, stage)

        # -- store C --
        for i in range(MI):
            for j in range(NI):
                row, word = top + y + i * 16 + g, (left + x + j * 8) // 2 + t
                store_word(C, row, word, ptx.pack2(acc[i, j, 0], acc[i, j, 1], RESULT))
                store_word(C, row + 8, word, ptx.pack2(acc[i, j, 2], acc[i, j, 3], RESULT))


def geometry(M: int, N: int):
    """Grid and block for an M x N result."""
    return -(-N // BN) * -(-M // BM), (32, WARPGROUP + WARPS)


def launches(A, B, C, format):
    """C = A @ B.T."""
    check_operands(A, B, C, format)
    grid, block = geometry(*C.shape)
    A, B, C = as_words(A), as_words(B), as_words(C)
    arguments = ptx.TensorMap(A, (BM, BK)), ptx.TensorMap(B, (BN, BK)), C, A.shape[1]
    return [Launch(specialise_format(copy_engine, format), grid, block, arguments, SHARED_BYTES)]

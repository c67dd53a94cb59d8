"""Copies run ahead of the tensor cores: `cp.async` fills a ring of stages while older ones are multiplied.

`cp.async` copies 16 bytes from global to shared memory without a register, and the thread does not wait. A block keeps
STAGES tiles of A and of B in a ring: while it multiplies one, the copies of the next STAGES - 1 are in flight. Blocks
take the tiles of C, now 128 x 256, in groups of rows, so that concurrent blocks share rows and columns in L2.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 8       copies per output, of 16 bytes
    K * (1 / WM + 1 / WN) / 8       `ldmatrix` per output and lane
    STAGES * (BM + BN) * BK * 4     bytes of shared memory per block
    0                               bank conflicts per block

Limited by overhead around the tensor cores: each thread computes addresses for its copies, and all warps wait at a
barrier in every step.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words
from labkit.gemm.tensor.edges import copy_rows, store_word
from labkit.gemm.tensor.operands import check_operands, specialise_format
from labkit.ladder import Launch
from labkit.parts.tile_order import tile_coordinates

FORMAT = RESULT = ptx.BF16  # of A and B, and of C; `launches` replaces them
BM, BN = 128, 256  # a block's part of C
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 4
AHEAD = STAGES - 1  # tiles whose copies are in flight
PENDING = STAGES - 2  # of these, after the wait for the oldest
WM, WN = 64, 64  # a warp's part of C
MI, NI = WM // 16, WN // 8  # its fragments
WARPS_X = BN // WN
WARPS = BM // WM * WARPS_X
THREADS = 32 * WARPS
B_BYTE = STAGES * BM * BK * 4  # where the tiles of B begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4


@cuda.jit
def pipelined(A, B, C):
    A_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    B_tiles = ptx.shared_array(B_BYTE, (STAGES, BN, BK), np.uint32)
    acc = cuda.local.array((MI, NI, 4), np.float32)
    a = cuda.local.array((MI, 4), np.uint32)
    b = cuda.local.array((NI, 2), np.uint32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    tile_row, tile_col = tile_coordinates(np.uint32(cuda.blockIdx.x), -(-A.shape[0] // BM), -(-B.shape[0] // BN))
    top, left = tile_row * BM, tile_col * BN
    y, x = warp // WARPS_X * WM, warp % WARPS_X * WN
    g, t = lane // 4, lane % 4
    thread = warp * 32 + lane
    a_row, a_piece = lane % 16, lane // 16  # row and 16-byte piece that this lane addresses
    b_row, b_piece = lane // 16 * 8 + lane % 8, lane // 8 % 2
    tiles = -(-A.shape[1] // BK)

    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                acc[i, j, n] = 0
    for tile in range(AHEAD):
        copy_rows(A_tiles, tile, A, top, tile * BK, thread, THREADS)
        copy_rows(B_tiles, tile, B, left, tile * BK, thread, THREADS)
        ptx.cp_async_commit()
    for tile in range(tiles):
        ptx.cp_async_wait(PENDING)
        cuda.syncthreads()
        stage, ahead = tile % STAGES, (tile + AHEAD) % STAGES
        if tile + AHEAD < tiles:
            copy_rows(A_tiles, ahead, A, top, (tile + AHEAD) * BK, thread, THREADS)
            copy_rows(B_tiles, ahead, B, left, (tile + AHEAD) * BK, thread, THREADS)
        ptx.cp_async_commit()
        for step in range(0, BK, STEP):
            for i in range(MI):
                word = (step // 4 + a_piece ^ a_row % 8) * 4  # swizzled
                a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(A_tiles, (stage, y + i * 16 + a_row, word))
            for j in range(0, NI, 2):
                word = (step // 4 + b_piece ^ b_row % 8) * 4  # swizzled
                b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1] = ptx.ldmatrix4(B_tiles, (stage, x + j * 8 + b_row, word))
            for i in range(MI):
                for j in range(NI):
                    ptx.mma(acc, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b[j, 0], b[j, 1]), FORMAT)

    for i in range(MI):
        for j in range(NI):
            row, word = top + y + i * 16 + g, (left + x + j * 8) // 2 + t
            store_word(C, row, word, ptx.pack2(acc[i, j, 0], acc[i, j, 1], RESULT))
            store_word(C, row + 8, word, ptx.pack2(acc[i, j, 2], acc[i, j, 3], RESULT))


def geometry(M: int, N: int):
    """Grid and block for an M x N result."""
    return -(-N // BN) * -(-M // BM), (32, WARPS)


def launches(A, B, C, format):
    """C = A @ B.T."""
    check_operands(A, B, C, format)
    grid, block = geometry(*C.shape)
    words = as_words(A), as_words(B), as_words(C)
    return [Launch(specialise_format(pipelined, format), grid, block, words, SHARED_BYTES)]

"""One `ldmatrix` loads a whole fragment, and tiles are swizzled so that it is free of bank conflicts.

`ldmatrix` takes the address of a row of 16 bytes from each lane, and gives each lane the words of its fragment: four
matrices of 8 x 8 16-bit elements at once. Eight rows are 128 bytes, one wavefront, if they are in different banks. So
the 16-byte vector p of row r is stored at position p ^ (r % 8), by writers and readers alike.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 8       global loads per output, of 16 bytes
    K * (1 / WM + 1 / WN) / 8       `ldmatrix` per output and lane
    (BM + BN) * BK * 4              bytes of shared memory per block
    0                               bank conflicts per block

Limited by latency: a block loads a tile, waits for it, then multiplies, while memory is idle.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.arrays.views import as_words
from labkit.gemm.tensor.edges import load_four, store_word
from labkit.gemm.tensor.operands import check_operands, specialise_format
from labkit.ladder import Launch

FORMAT = RESULT = ptx.BF16  # of A and B, and of C; `launches` replaces them
BM, BN = 128, 128  # a block's part of C
BK = 32  # words of k that a block takes at a time, 128 bytes
STEP = 8  # words of k that an instruction takes
WM, WN = 64, 32  # a warp's part of C
MI, NI = WM // 16, WN // 8  # its fragments
WARPS_X = BN // WN
WARPS = BM // WM * WARPS_X
ROWS = 32 * WARPS // 8  # rows of a tile that the block copies at once, 16 bytes per thread


@cuda.jit
def ldmatrix(A, B, C):
    A_tile = cuda.shared.array((BM, BK), np.uint32, alignment=16)
    B_tile = cuda.shared.array((BN, BK), np.uint32, alignment=16)
    acc = cuda.local.array((MI, NI, 4), np.float32)
    a = cuda.local.array((MI, 4), np.uint32)
    b = cuda.local.array((NI, 2), np.uint32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    top, left = np.uint32(cuda.blockIdx.y) * BM, np.uint32(cuda.blockIdx.x) * BN
    y, x = warp // WARPS_X * WM, warp % WARPS_X * WN
    g, t = lane // 4, lane % 4
    thread = warp * 32 + lane
    copy_row, copy_word = thread // 8, thread % 8 * 4
    swizzled_word = (thread % 8 ^ copy_row % 8) * 4
    a_row, a_piece = lane % 16, lane // 16  # row and 16-byte piece that this lane addresses
    b_row, b_piece = lane // 16 * 8 + lane % 8, lane // 8 % 2

    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                acc[i, j, n] = 0
    for k in range(0, A.shape[1], BK):
        for i in range(BM // ROWS):
            row = copy_row + i * ROWS
            w0, w1, w2, w3 = load_four(A, top + row, k + copy_word)
            ptx.store4(A_tile, (row, swizzled_word), w0, w1, w2, w3)
        for i in range(BN // ROWS):
            row = copy_row + i * ROWS
            w0, w1, w2, w3 = load_four(B, left + row, k + copy_word)
            ptx.store4(B_tile, (row, swizzled_word), w0, w1, w2, w3)
        cuda.syncthreads()
        for step in range(0, BK, STEP):
            for i in range(MI):
                at = y + i * 16 + a_row, (step // 4 + a_piece ^ a_row % 8) * 4
                a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(A_tile, at)
            for j in range(0, NI, 2):
                at = x + j * 8 + b_row, (step // 4 + b_piece ^ b_row % 8) * 4
                b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1] = ptx.ldmatrix4(B_tile, at)
            for i in range(MI):
                for j in range(NI):
                    ptx.mma(acc, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b[j, 0], b[j, 1]), FORMAT)
        cuda.syncthreads()

    for i in range(MI):
        for j in range(NI):
            row, word = top + y + i * 16 + g, (left + x + j * 8) // 2 + t
            store_word(C, row, word, ptx.pack2(acc[i, j, 0], acc[i, j, 1], RESULT))
            store_word(C, row + 8, word, ptx.pack2(acc[i, j, 2], acc[i, j, 3], RESULT))


def geometry(M: int, N: int):
    """Grid and block for an M x N result: x counts columns."""
    return (-(-N // BN), -(-M // BM)), (32, WARPS)


def launches(A, B, C, format):
    """C = A @ B.T."""
    check_operands(A, B, C, format)
    return [Launch(specialise_format(ldmatrix, format), *geometry(*C.shape), (as_words(A), as_words(B), as_words(C)))]

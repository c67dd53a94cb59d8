"""A warp multiplies 16 x 16 by 16 x 8 in one instruction: the tensor cores, fed from shared memory word by word.

The lanes of a warp hold the operands together. Each has a few words of A, B and the accumulators, its *fragment*. Lane
4 g + t holds words t and t + 4 of rows g and g + 8 of A; words t and t + 4 of row g of B, which is column g of the
product; and rows g and g + 8, columns 2 t and 2 t + 1 of the accumulators. A word has two 16-bit elements or four 8-bit
ones. Otherwise this is `register_tile`: tiles of A and B in shared memory, a warp's part of C in registers.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K * (1 / BM + 1 / BN) / 8       global loads per output, of 16 bytes
    K * (1 / WM + 1 / WN) / 2       shared loads per output, of 4 bytes
    (BM + BN) * BK * 4              bytes of shared memory per block
    2 * K * 2 / (BK * 4)            barriers per block

Limited by these shared loads: a row of a tile is 128 bytes, so all rows begin in the same bank, and a load of four
words from each of eight rows takes eight wavefronts.
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
def mma(A, B, C):
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

    for i in range(MI):
        for j in range(NI):
            for n in range(4):
                acc[i, j, n] = 0
    for k in range(0, A.shape[1], BK):
        for i in range(BM // ROWS):
            row = copy_row + i * ROWS
            w0, w1, w2, w3 = load_four(A, top + row, k + copy_word)
            ptx.store4(A_tile, (row, copy_word), w0, w1, w2, w3)
        for i in range(BN // ROWS):
            row = copy_row + i * ROWS
            w0, w1, w2, w3 = load_four(B, left + row, k + copy_word)
            ptx.store4(B_tile, (row, copy_word), w0, w1, w2, w3)
        cuda.syncthreads()
        for step in range(0, BK, STEP):
            for i in range(MI):
                row = y + i * 16 + g
                a[i, 0], a[i, 1] = A_tile[row, step + t], A_tile[row + 8, step + t]
                a[i, 2], a[i, 3] = A_tile[row, step + t + 4], A_tile[row + 8, step + t + 4]
            for j in range(NI):
                row = x + j * 8 + g
                b[j, 0], b[j, 1] = B_tile[row, step + t], B_tile[row, step + t + 4]
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
    return [Launch(specialise_format(mma, format), *geometry(*C.shape), (as_words(A), as_words(B), as_words(C)))]

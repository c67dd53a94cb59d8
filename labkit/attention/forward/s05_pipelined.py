"""Copies run ahead: `cp.async` brings the next keys and values while these are multiplied.

There are two tiles of keys and of values in shared memory. The copies of the next ones begin before the first product
of these, and the block waits for them behind the second one. One barrier is enough: whoever is past it has done with
the tiles that come to be overwritten.

Costs, of a head whose queries and keys are multiples of the tile, all of them seen:

    queries * HEAD / 8                              copies of Q, of 16 bytes
    2 * queries * keys * HEAD / BM / 8              copies of K and V, of 16 bytes
    (BM + 2 * STAGES * BN) * HEAD * 2               bytes of shared memory per block
    0                                               bank conflicts per block

Limited by what surrounds the tensor cores' work: a warp computes its softmax while it multiplies nothing, and
`mma.sync` is fed through registers.
"""

from functools import cache
from math import inf, log

import numpy as np

from labkit import cuda, ptx
from labkit.attention.blocks import place_from_the_end, within_limits
from labkit.attention.operands import matrices, scale_of
from labkit.attention.words import copy_tile, in_format
from labkit.ladder import Launch

FORMAT = ptx.BF16
FLIP = 0  # bits that turn the signs of a word of Q
RISE = np.float32(8)  # of a maximum, as an exponent of 2, above which O is rescaled
MI = 2  # fragments of 16 rows of a warp
WARPS = 4
STAGES = 2  # tiles of keys, and of values
BM, BN = 16 * MI * WARPS, 64  # queries and keys of a tile
HEAD = 64  # columns of a tile: head_dim and zeros
WORDS = HEAD // 2
STEPS = HEAD // 16  # of k in Q K^T
NI, NO = BN // 8, HEAD // 8  # fragments of 8 columns of scores and of O
THREADS = 32 * WARPS
K_BYTE = BM * HEAD * 2
V_BYTE = K_BYTE + STAGES * BN * HEAD * 2
SHARED_BYTES = V_BYTE + STAGES * BN * HEAD * 2
LN_2 = np.float32(0.6931471805599453)
TILES = {64: (2, 64), 128: (2, 64), 192: (1, 32), 256: (1, 32)}  # MI and BN by HEAD: what registers hold


@cuda.jit(launch_bounds=THREADS)
def pipelined(Q, K, V, O, lse, apart, keys, group, band, scale):
    Q_tile = ptx.shared_array(0, (1, BM, WORDS), np.uint32)
    K_tiles = ptx.shared_array(K_BYTE, (STAGES, BN, WORDS), np.uint32)
    V_tiles = ptx.shared_array(V_BYTE, (STAGES, BN, WORDS), np.uint32)
    scores = cuda.local.array((MI, NI, 4), np.float32)
    sums = cuda.local.array((MI, NO, 4), np.float32)
    origin = cuda.local.array((MI, 2), np.float32)
    shrunk = cuda.local.array((MI, 2), np.float32)
    total = cuda.local.array((MI, 2), np.float32)
    a = cuda.local.array((MI, 4), np.uint32)
    queries, thread = np.int32(lse.shape[2]), np.uint32(cuda.threadIdx.x)
    tile, head, batch = place_from_the_end(-(-queries // BM), lse.shape[1])  # where it is causal these take longest
    top = np.int32(tile * BM)
    lane, y = np.uint32(thread % 32), np.uint32(thread // 32 * (16 * MI))
    g, t = np.uint32(lane // 4), np.uint32(lane % 4)
    a_row, a_piece = np.uint32(lane % 16), np.uint32(lane // 16)  # where this lane's row of a matrix begins
    b_row, b_piece = np.uint32(lane // 16 * 8 + lane % 8), np.uint32(lane // 8 % 2)
    q_row = np.int32(batch * apart[0][0] + head * apart[0][1])
    k_row = np.int32(batch * apart[1][0] + head // group * apart[1][1])
    v_row = np.int32(batch * apart[2][0] + head // group * apart[2][1])
    o_row = np.int32(batch * apart[3][0] + head * apart[3][1])
    lowest, highest = band

    for i in range(MI):
        for r in range(2):
            origin[i, r], total[i, r] = -inf, 0
        for j in range(NO):
            for n in range(4):
                sums[i, j, n] = 0
    bottom = np.int32(min(top + BM, queries) - 1)
    first, behind = np.int32(max(0, (top + lowest) // BN * BN)), np.int32(min(keys, bottom + highest + 1))
    copy_tile(Q_tile, 0, Q, q_row, apart[0][2], top, queries, thread, THREADS)
    if first < behind:
        copy_tile(K_tiles, 0, K, k_row, apart[1][2], first, keys, thread, THREADS)
        copy_tile(V_tiles, 0, V, v_row, apart[2][2], first, keys, thread, THREADS)
    ptx.cp_async_commit()
    stage = np.uint32(0)
    for left in range(first, behind, BN):
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # these tiles are there for all, and all have done with those before
        if left + BN < behind:
            copy_tile(K_tiles, 1 - stage, K, k_row, apart[1][2], left + BN, keys, thread, THREADS)
            copy_tile(V_tiles, 1 - stage, V, v_row, apart[2][2], left + BN, keys, thread, THREADS)
        ptx.cp_async_commit()

        for i in range(MI):
            for j in range(NI):
                for n in range(4):
                    scores[i, j, n] = 0
        for step in range(STEPS):
            for i in range(MI):
                at = 0, np.uint32(y + i * 16 + a_row), np.uint32((step * 2 + a_piece ^ a_row % 8) * 4)
                a[i, 0], a[i, 1], a[i, 2], a[i, 3] = ptx.ldmatrix4(Q_tile, at)
                for n in range(4):
                    a[i, n] ^= np.uint32(FLIP)
            for j in range(0, NI, 2):
                at = stage, np.uint32(j * 8 + b_row), np.uint32((step * 2 + b_piece ^ b_row % 8) * 4)
                b0, b1, b2, b3 = ptx.ldmatrix4(K_tiles, at)
                for i in range(MI):
                    ptx.mma(scores, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                    ptx.mma(scores, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)
        if left < bottom + lowest or left + BN - 1 > top + highest or left + BN > keys:
            for i in range(MI):
                for r in range(2):
                    row = top + y + i * 16 + r * 8 + g
                    start, end = np.int32(row + lowest), np.int32(min(row + highest, keys - 1))
                    for j in range(NI):
                        for n in range(2):
                            col = np.int32(left + j * 8 + t * 2 + n)
                            if col < start or col > end:
                                scores[i, j, 2 * r + n] = -inf

        least = np.float32(1)
        for i in range(MI):
            for r in range(2):
                most = np.float32(-inf)
                for j in range(NI):
                    most = max(most, max(scores[i, j, 2 * r], scores[i, j, 2 * r + 1]))
                most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, 1))
                most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, 2)) * scale
                moved = most if most - origin[i, r] > RISE else origin[i, r]
                base = np.float32(0) if moved == np.float32(-inf) else moved
                shrunk[i, r] = ptx.exp2(origin[i, r] - base)
                least = min(least, shrunk[i, r])
                origin[i, r] = moved
                total[i, r] *= shrunk[i, r]
                for j in range(NI):
                    scores[i, j, 2 * r] = ptx.exp2(scores[i, j, 2 * r] * scale - base)
                    scores[i, j, 2 * r + 1] = ptx.exp2(scores[i, j, 2 * r + 1] * scale - base)
                    total[i, r] += scores[i, j, 2 * r] + scores[i, j, 2 * r + 1]
        if cuda.any_sync(0xFFFFFFFF, least < np.float32(1)):
            for i in range(MI):
                for j in range(NO):
                    for n in range(4):
                        sums[i, j, n] *= shrunk[i, n // 2]

        for step in range(NI // 2):
            for i in range(MI):
                for n in range(2):
                    j = step * 2 + n
                    a[i, 2 * n] = ptx.pack2(scores[i, j, 0], scores[i, j, 1], FORMAT)
                    a[i, 2 * n + 1] = ptx.pack2(scores[i, j, 2], scores[i, j, 3], FORMAT)
            for j in range(0, NO, 2):
                at = stage, np.uint32(step * 16 + a_row), np.uint32((j + a_piece ^ a_row % 8) * 4)
                b0, b1, b2, b3 = ptx.ldmatrix4_transposed(V_tiles, at)
                for i in range(MI):
                    ptx.mma(sums, (i, j, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b0, b1), FORMAT)
                    ptx.mma(sums, (i, j + 1, 0), (a[i, 0], a[i, 1], a[i, 2], a[i, 3]), (b2, b3), FORMAT)
        stage = np.uint32(1 - stage)

    for i in range(MI):
        for r in range(2):
            row = np.int32(top + y + i * 16 + g + r * 8)
            total[i, r] += cuda.shfl_xor_sync(0xFFFFFFFF, total[i, r], 1)
            total[i, r] += cuda.shfl_xor_sync(0xFFFFFFFF, total[i, r], 2)
            share = np.float32(0) if total[i, r] == np.float32(0) else np.float32(1) / total[i, r]
            if row < queries:
                at = np.uint32(o_row + row * apart[3][2])
                for j in range(NO):
                    word = np.uint32(j * 4 + t)
                    if word < O.shape[1]:
                        O[at, word] = ptx.pack2(sums[i, j, 2 * r] * share, sums[i, j, 2 * r + 1] * share, FORMAT)
                if t == 0:
                    lse[batch, head, row] = origin[i, r] * LN_2 + log(total[i, r])


@cache
def constants(head_dim: int) -> dict[str, int]:
    """Of the kernel, and of its launch, for a head_dim."""
    head = -(-head_dim // 64) * 64
    fragments, bn = TILES[head]
    bm = 16 * fragments * WARPS
    found = {"MI": fragments, "BM": bm, "BN": bn, "NI": bn // 8, "HEAD": head, "NO": head // 8}
    found |= {"WORDS": head // 2, "STEPS": head // 16, "K_BYTE": bm * head * 2, "V_BYTE": (bm + STAGES * bn) * head * 2}
    return found | {"SHARED_BYTES": (bm + 2 * STAGES * bn) * head * 2}


def launches(Q, K, V, O, lse, problem, format):
    """O and log-sum-exp."""
    problem.check(Q, K, V, O, lse, dtype=format.dtype)
    operands, apart = matrices(problem, Q, K, V, O, words=True)
    known = dict(constants(problem.head_dim))
    shared_bytes = known.pop("SHARED_BYTES")
    turns, scale = scale_of(problem)
    kernel = in_format(pipelined, format, FLIP=0x80008000 if turns else 0, **known)
    sizes = np.int32(problem.keys), np.int32(problem.group), tuple(map(np.int32, problem.band)), scale
    grid = -(-problem.queries // known["BM"]), problem.heads, problem.batch
    return [Launch(*within_limits(kernel, grid), THREADS, (*operands, lse, apart, *sizes), shared_bytes)]

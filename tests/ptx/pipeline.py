"""A GEMM in bfloat16 by two warps: copies through a ring of stages, `ldmatrix` and `mma`.

The constants in capitals break it: without the commits, the waits or the barrier, or with a wait for too few groups;
with copies ahead of the barrier, to the stage that others still read.
"""

import numpy as np

import labkit
from labkit import cuda, ptx

FORMAT = ptx.BF16
STAGES = 3
BM, BN, BK = 32, 32, 32  # of a block's tiles; B is stored by columns, as N x K
SWIZZLES = True
WARP_M, WARP_N = 16, 32
COMMITS = WAITS = MEETS = COPIES_BEHIND = True
PENDING = STAGES - 2


@cuda.jit(device=True)
def swizzled(row, chunk):
    """Where a row's 16-byte piece lies: eight rows of one column of pieces lie in different banks."""
    return 8 * (chunk ^ (row // 2 % 4)) if SWIZZLES else 8 * chunk


@cuda.jit(device=True)
def copy_tiles(a_tile, b_tile, A, B, row0, col0, stage, k0):
    t = cuda.threadIdx.x
    for i in range(2):
        row, chunk = (t + 64 * i) // 4, (t + 64 * i) % 4
        to = swizzled(row, chunk)
        k = k0 + 8 * chunk
        valid_a = max(0, min(16, 2 * (A.shape[1] - k))) if row0 + row < A.shape[0] else 0
        valid_b = max(0, min(16, 2 * (B.shape[1] - k))) if col0 + row < B.shape[0] else 0
        ptx.cp_async(a_tile, (stage, row, to), A, (row0 + row, k), 16, valid_a)
        ptx.cp_async(b_tile, (stage, row, to), B, (col0 + row, k), 16, valid_b)


@cuda.jit
def gemm(A, B, C):
    a_tile = cuda.shared.array((STAGES, BM, BK), np.uint16, alignment=128)
    b_tile = cuda.shared.array((STAGES, BN, BK), np.uint16, alignment=128)
    acc = cuda.local.array((4, 4), np.float32)
    for n in range(4):
        for i in range(4):
            acc[n, i] = 0
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    steps = (A.shape[1] + BK - 1) // BK
    for s in range(STAGES - 1):
        if s < steps:
            copy_tiles(a_tile, b_tile, A, B, row0, col0, s, s * BK)
        if COMMITS:
            ptx.cp_async_commit()
    for step in range(steps):
        stage, ahead = step % STAGES, step + STAGES - 1
        if not COPIES_BEHIND and ahead < steps:
            copy_tiles(a_tile, b_tile, A, B, row0, col0, ahead % STAGES, ahead * BK)
        if WAITS:
            ptx.cp_async_wait(PENDING)
        if MEETS:
            cuda.syncthreads()
        for half in range(2):
            row = WARP_M * warp + lane % 16
            a = ptx.ldmatrix4(a_tile, (stage, row, swizzled(row, 2 * half + lane // 16)))
            for n in range(2):
                row = 16 * n + lane % 8 + lane // 16 * 8
                b = ptx.ldmatrix4(b_tile, (stage, row, swizzled(row, 2 * half + lane // 8 % 2)))
                ptx.mma(acc, (2 * n, 0), a, (b[0], b[1]), FORMAT)
                ptx.mma(acc, (2 * n + 1, 0), a, (b[2], b[3]), FORMAT)
        if COPIES_BEHIND and ahead < steps:
            copy_tiles(a_tile, b_tile, A, B, row0, col0, ahead % STAGES, ahead * BK)
        if COMMITS:
            ptx.cp_async_commit()
    for n in range(4):
        for i in range(4):
            row = row0 + WARP_M * warp + lane // 4 + 8 * (i // 2)
            col = col0 + 8 * n + 2 * (lane % 4) + i % 2
            if row < C.shape[0] and col < C.shape[1]:
                C[row, col] = acc[n, i]


def bits(values):
    """float32 as the bits of bfloat16, rounded toward zero."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def values(codes):
    return (codes.astype(np.uint32) << 16).view(np.float32)


def operands(m, n, k, seed=0):
    rng = np.random.default_rng(seed)
    return bits(rng.standard_normal((m, k))), bits(rng.standard_normal((n, k))), np.zeros((m, n), np.float32)


def run(kernel, m, n, k, **options):
    """The trace of a product, and its relative Frobenius error against float64."""
    A, B, C = operands(m, n, k)
    trace = labkit.simulate(kernel, (-(-n // BN), -(-m // BM)), 64, A, B, C, **options)
    exact = values(A).astype(np.float64) @ values(B).astype(np.float64).T
    return trace, np.linalg.norm(trace.outputs[2] - exact) / np.linalg.norm(exact)

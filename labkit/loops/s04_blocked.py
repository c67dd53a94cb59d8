"""Each loop is split in two: the outer three choose a tile of A, B and C, the inner three multiply tiles.

Three tiles that fit a cache together are read from memory once and then used TILE times.

`j` is unsigned: in numba a signed index may count from the end, and testing for that would prevent vectorisation.

Costs, where three tiles of TILE x TILE fit a cache:

    M*N*K / TILE    elements of A and of B, each, loaded from beyond that cache

Limited by one core's arithmetic, far below a CPU's peak until registers are tiled in the same way; GPUs do both, with
dedicated memory.
"""

import numpy as np
from numba import njit

from labkit.ladder import Launch
from labkit.loops.operands import check_operands

TILE = 256


@njit(cache=True)
def blocked(A, B, C):
    M, K = A.shape
    N = B.shape[1]
    for i in range(M):
        for j in range(N):
            C[i, j] = np.float32(0)
    for i0 in range(0, M, TILE):
        for k0 in range(0, K, TILE):
            for j0 in range(0, N, TILE):
                for i in range(i0, min(i0 + TILE, M)):
                    for k in range(k0, min(k0 + TILE, K)):
                        for j in range(np.uint64(j0), np.uint64(min(j0 + TILE, N))):
                            C[i, j] += A[i, k] * B[k, j]


def launches(A, B, C):
    """C = A @ B."""
    check_operands(A, B, C)
    return [Launch(blocked, (), (), (A, B, C))]

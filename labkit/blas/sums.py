"""Sums over the threads of a warp and of a block, always in the same order: two runs give the same bits."""

from labkit import cuda

WARP = 32


@cuda.jit(device=True)
def warp_sum(value):
    """The sum over the lanes of a warp, in lane 0: each step adds the value of the lane half as far away."""
    away = WARP // 2
    while away > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, away)
        away //= 2
    return value


@cuda.jit(device=True)
def block_sum(value, of_warps):
    """The sum over a block, in thread 0. `of_warps` is a shared array of an element a warp; all threads must call."""
    own = warp_sum(value)
    t = cuda.threadIdx.x
    if t % WARP == 0:
        of_warps[t // WARP] = own
    cuda.syncthreads()
    total = value - value  # a zero of its type
    if t == 0:
        for warp in range(cuda.blockDim.x // WARP):
            total += of_warps[warp]
    return total

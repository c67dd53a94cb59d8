"""nrm2: the Euclidean norm of x, which overflows or underflows only where the norm itself does.

The square of 1e20 overflows a float32, the square of 1e-30 underflows. So each thread keeps three sums of squares: of
large numbers times a small power of two, of small numbers times a large one, and of the others unscaled. Powers of two
scale without rounding. The last block adds the sums of all blocks in float64, which can hold every such square.

Three sums: Blue, A Portable Fortran Program to Find the Euclidean Norm of a Vector, ACM TOMS 4 (1978). Limits and
scales: Anderson, Algorithm 978: Safe Scaling in the Level 1 BLAS, ACM TOMS 44 (2017). With these a float32 holds the
sum of 2**24 squares of any size: a block's, in vectors of up to 2**24 * BLOCKS elements (35 GB).

Costs, for n elements:

    n * 4                   bytes read

Limited by DRAM bandwidth. An infinity gives infinity, a NaN gives NaN.

Parts: `load_four` of `labkit.parts.fours`, whose ALIGNED the launch sets by `specialise_alignment`; `block_sum`,
`is_last_block` of `labkit.parts.sums`.
"""

from math import sqrt

import numpy as np

from labkit import cuda
from labkit.blas.problem import Nrm2, check_vectors
from labkit.ladder import Launch
from labkit.parts.fours import load_four
from labkit.parts.sums import block_sum, is_last_block
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment

PROBLEM = Nrm2
THREADS = 256
WARPS = THREADS // 32
VECTORS = 8  # loads of 16 bytes in flight per thread
CHUNK = 4 * VECTORS * THREADS  # elements per block and iteration
BLOCKS = 528  # four per SM of an H100: a single full wave
LARGE, LARGE_SCALE = np.float32(2.0**52), np.float32(2.0**-76)  # values above LARGE are scaled before they are squared
SMALL, SMALL_SCALE = np.float32(2.0**-63), np.float32(2.0**75)  # values below SMALL too
# 1 / scale**2: the value of 1 in the sum of scaled squares
LARGE_UNIT, SMALL_UNIT = np.float64(2.0**152), np.float64(2.0**-150)


@cuda.jit(device=True)
def add_square(value, large, middle, small):
    """Add the square of a value to one of the three sums; a NaN is added to the middle one."""
    zero, size = np.float32(0), abs(value)
    is_large, is_small = size > LARGE, size < SMALL
    scaled = value * (LARGE_SCALE if is_large else (SMALL_SCALE if is_small else np.float32(1)))
    square = scaled * scaled
    large += square if is_large else zero
    middle += zero if is_large or is_small else square
    small += square if is_small else zero
    return large, middle, small


@cuda.jit
def nrm2(x, partials, arrived, out):
    values = cuda.local.array((VECTORS, 4), np.float32)
    warp_sums = cuda.shared.array((3, WARPS), np.float32)
    warp_totals = cuda.shared.array(WARPS, np.float64)
    t = cuda.threadIdx.x
    whole = x.size // CHUNK * CHUNK
    large = middle = small = np.float32(0)
    for start in range(cuda.blockIdx.x * CHUNK, whole, cuda.gridDim.x * CHUNK):
        for vector in range(VECTORS):
            i = start + 4 * (vector * THREADS + t)
            values[vector, 0], values[vector, 1], values[vector, 2], values[vector, 3] = load_four(x, i)
        for vector in range(VECTORS):
            for e in range(4):
                large, middle, small = add_square(values[vector, e], large, middle, small)
    for i in range(whole + cuda.grid(1), x.size, cuda.gridsize(1)):
        large, middle, small = add_square(x[i], large, middle, small)

    large = block_sum(large, warp_sums[0])
    middle = block_sum(middle, warp_sums[1])
    small = block_sum(small, warp_sums[2])
    if t == 0:
        partials[0, cuda.blockIdx.x] = large
        partials[1, cuda.blockIdx.x] = middle
        partials[2, cuda.blockIdx.x] = small
    if is_last_block(arrived, 0, cuda.gridDim.x):  # `arrived`: 0 before and after each launch
        total = 0.0
        for block in range(t, cuda.gridDim.x, THREADS):
            total += partials[0, block] * LARGE_UNIT + partials[1, block] + partials[2, block] * SMALL_UNIT
        total = block_sum(total, warp_totals)
        if t == 0:
            out[0] = sqrt(total)


def launches(x, out, workspace):
    """out[0] = Euclidean norm of x."""
    n = check_vectors(x=x)
    check_vectors(out=out)
    partials_and_counter = workspace.array("partials", (3, BLOCKS), np.float32), workspace.counters(1)
    kernel = specialise_alignment(nrm2, aligned=can_load_vectors(x))
    return [Launch(kernel, min(BLOCKS, -(-n // CHUNK)), THREADS, (x, *partials_and_counter, out))]

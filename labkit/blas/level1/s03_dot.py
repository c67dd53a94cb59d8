"""dot: the sum of x[i] * y[i].

Each block takes every gridDim-th chunk of both vectors, and each thread has 2 * VECTORS loads of 16 bytes in flight at
a time. The block stores its sum in `partials`, and the last block to do so adds these, which saves a second
launch. The order of the additions depends only on the length: the same vectors give the same bits on every GPU and in
every run, unlike atomic additions.

Costs, for n elements:

    2 * n * 4               bytes read
    2 * n                   FLOPs: 1/4 FLOP/byte

Limited by DRAM bandwidth.

Parts: `load_four` of `labkit.parts.fours`, whose ALIGNED the launch sets by `specialise_alignment`; `block_sum`,
`is_last_block` of `labkit.parts.sums`.
"""

import numpy as np

from labkit import cuda
from labkit.blas.problem import Dot, check_vectors
from labkit.ladder import Launch
from labkit.parts.fours import load_four
from labkit.parts.sums import block_sum, is_last_block
from labkit.parts.vector_widths import can_load_vectors, specialise_alignment

PROBLEM = Dot
THREADS = 256
WARPS = THREADS // 32
VECTORS = 4  # loads of 16 bytes in flight per thread and vector
CHUNK = 4 * VECTORS * THREADS  # elements per block and iteration
BLOCKS = 528  # four per SM of an H100: a single full wave


@cuda.jit
def dot(x, y, partials, arrived, out):
    x_values = cuda.local.array((VECTORS, 4), np.float32)
    y_values = cuda.local.array((VECTORS, 4), np.float32)
    warp_sums = cuda.shared.array(WARPS, np.float32)
    t = cuda.threadIdx.x
    whole = x.size // CHUNK * CHUNK
    total = np.float32(0)
    for start in range(cuda.blockIdx.x * CHUNK, whole, cuda.gridDim.x * CHUNK):
        for vector in range(VECTORS):
            i = start + 4 * (vector * THREADS + t)
            x_values[vector, 0], x_values[vector, 1], x_values[vector, 2], x_values[vector, 3] = load_four(x, i)
            y_values[vector, 0], y_values[vector, 1], y_values[vector, 2], y_values[vector, 3] = load_four(y, i)
        for vector in range(VECTORS):
            for e in range(4):
                total += x_values[vector, e] * y_values[vector, e]
    for i in range(whole + cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] * y[i]

    total = block_sum(total, warp_sums)
    if t == 0:
        partials[cuda.blockIdx.x] = total
    if is_last_block(arrived, 0, cuda.gridDim.x):  # `arrived`: 0 before and after each launch
        total = np.float32(0)
        for block in range(t, cuda.gridDim.x, THREADS):
            total += partials[block]
        total = block_sum(total, warp_sums)
        if t == 0:
            out[0] = total


def launches(x, y, out, workspace):
    """out[0] = dot product of x and y."""
    n = check_vectors(x=x, y=y)
    check_vectors(out=out)
    partials_and_counter = workspace.array("partials", (BLOCKS,), np.float32), workspace.counters(1)
    kernel = specialise_alignment(dot, aligned=can_load_vectors(x, y))
    return [Launch(kernel, min(BLOCKS, -(-n // CHUNK)), THREADS, (x, y, *partials_and_counter, out))]

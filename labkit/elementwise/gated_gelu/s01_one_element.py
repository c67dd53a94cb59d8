"""One thread per element: three accesses of 4 or 2 bytes per thread, contiguous in a warp.

Costs, in passes over memory: gate and up are read once, y is written once. Limit: few bytes in flight per thread. In 16
bits one load of a warp requests 64 bytes. `s02_vectors` has 32 bytes in flight per thread and operand.
"""

import math
from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_bits
from labkit.formats import FP32
from labkit.ladder import Launch

IS_SINGLE, FORMAT = True, ptx.BF16  # whether elements are float32; else the format of their bits
THREADS = 256
HALF, ROOT = np.float32(0.5), np.float32(1 / math.sqrt(2))


@cuda.jit(launch_bounds=THREADS)
def one_element(gate, up, y, columns):
    element = np.uint32(cuda.blockIdx.x * THREADS + cuda.threadIdx.x)
    row, col = np.uint32(element // columns), np.uint32(element % columns)
    if row < np.uint32(y.shape[0]):
        if IS_SINGLE:
            g, u = gate[row, col], up[row, col]
        else:
            g = ptx.unpack2(np.uint32(gate[row, col]), FORMAT)[0]
            u = ptx.unpack2(np.uint32(up[row, col]), FORMAT)[0]
        value = HALF * g * (np.float32(1) + math.erf(g * ROOT)) * u
        if IS_SINGLE:
            y[row, col] = value
        else:
            y[row, col] = ptx.pack2(value, value, FORMAT) & 0xFFFF


@cache
def kernel_for(format):
    """Return the kernel for elements of a format."""
    return one_element if format == FP32 else specialise(one_element, IS_SINGLE=False, FORMAT=format.number)


def launches(gate, up, y, problem, format=FP32):
    """Return the launch that computes y."""
    problem.check(gate, up, y, dtype=format.dtype)
    if format != FP32:
        gate, up, y = map(as_bits, (gate, up, y))
    blocks = -(-problem.rows * problem.columns // THREADS)
    return [Launch(kernel_for(format), blocks, THREADS, (gate, up, y, np.uint32(problem.columns)))] if blocks else []

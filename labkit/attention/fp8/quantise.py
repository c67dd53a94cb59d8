"""Kernels that make e4m3 numbers and scales of Q, K and V: a block for the positions that share a scale.

Each block reads its numbers twice: for the largest, and, then from the L1 cache, for their codes.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_words, reshape
from labkit.attention.fp8.problem import BLOCK, GROUP, LEAST
from labkit.formats import E4M3_MAX, FP32, Format
from labkit.ladder import Launch

IS_FLOAT32, FORMAT = False, ptx.BF16  # whether X holds float32; else the format of pairs in words
E4M3 = ptx.E4M3
THREADS = 256
WARPS = THREADS // 32
MAX_CODE_VALUE = np.float32(E4M3_MAX)
ALL_LANES = 0xFFFFFFFF  # mask of a shuffle


@cuda.jit(device=True)
def load_four(X, row, col):
    """Load four neighbours of a row of float32, or of 16-bit numbers, two per word."""
    if IS_FLOAT32:
        return ptx.load4(X, (row, col))
    low, high = ptx.load2(X, (row, col // 2))
    a, b = ptx.unpack2(low, FORMAT)
    c, d = ptx.unpack2(high, FORMAT)
    return a, b, c, d


@cuda.jit(device=True)
def block_scale(X, row0, num_rows, width, thread):
    """Scale of the rows of X from row0 on, such that their largest number becomes 448."""
    warp_max = cuda.shared.array(WARPS, np.float32)
    max_abs = np.float32(0)
    for n in range(thread * 4, num_rows * width, THREADS * 4):
        a, b, c, d = load_four(X, row0 + n // width, n % width)
        max_abs = max(max_abs, max(max(abs(a), abs(b)), max(abs(c), abs(d))))
    for step in range(5):
        max_abs = max(max_abs, cuda.shfl_xor_sync(ALL_LANES, max_abs, 1 << step))
    if thread % 32 == 0:
        warp_max[thread // 32] = max_abs
    cuda.syncthreads()
    for warp in range(WARPS):
        max_abs = max(max_abs, warp_max[warp])
    return max_abs / MAX_CODE_VALUE if max_abs >= LEAST else np.float32(1)


@cuda.jit
def quantise_rows(X, codes, scales, length, blocks):
    """Quantise Q or K: four neighbours of a row are a word of codes."""
    thread = np.uint32(cuda.threadIdx.x)
    plane, block = np.uint32(cuda.blockIdx.x // blocks), np.uint32(cuda.blockIdx.x % blocks)
    num_rows, width = np.uint32(min(BLOCK, length - block * BLOCK)), np.uint32(codes.shape[1] * 4)
    row0 = np.uint32(plane * length + block * BLOCK)
    scale = block_scale(X, row0, num_rows, width, thread)
    if thread == 0:
        scales[plane, block] = scale
    for n in range(thread * 4, num_rows * width, THREADS * 4):
        a, b, c, d = load_four(X, row0 + n // width, n % width)
        codes[row0 + n // width, n % width // 4] = ptx.pack4(a / scale, b / scale, c / scale, d / scale, E4M3)


@cuda.jit
def quantise_columns(X, codes, scales, length, blocks, width):
    """Quantise V: a thread has four columns of 16 keys, and stores the 16 codes of each in one row."""
    values = cuda.local.array((GROUP, 4), np.float32)
    thread = np.uint32(cuda.threadIdx.x)
    plane, block = np.uint32(cuda.blockIdx.x // blocks), np.uint32(cuda.blockIdx.x % blocks)
    num_keys = np.uint32(min(BLOCK, length - block * BLOCK))
    row0 = np.uint32(plane * length + block * BLOCK)
    scale = block_scale(X, row0, num_keys, width, thread)
    if thread == 0:
        scales[plane, block] = scale
    quarters = np.uint32(width // 4)
    for n in range(thread, (num_keys + GROUP - 1) // GROUP * quarters, THREADS):
        first_key, col = np.uint32(n // quarters * GROUP), np.uint32(n % quarters * 4)
        for key in range(GROUP):
            a = b = c = d = np.float32(0)
            if first_key + key < num_keys:
                a, b, c, d = load_four(X, row0 + first_key + key, col)
            values[key, 0], values[key, 1], values[key, 2], values[key, 3] = a / scale, b / scale, c / scale, d / scale
        for i in range(4):
            w0 = ptx.pack4(values[0, i], values[1, i], values[8, i], values[9, i], E4M3)
            w1 = ptx.pack4(values[2, i], values[3, i], values[10, i], values[11, i], E4M3)
            w2 = ptx.pack4(values[4, i], values[5, i], values[12, i], values[13, i], E4M3)
            w3 = ptx.pack4(values[6, i], values[7, i], values[14, i], values[15, i], E4M3)
            ptx.store4(codes, (plane * width + col + i, (block * BLOCK + first_key) // 4), w0, w1, w2, w3)


@cache
def _in_format(kernel, format: Format):
    return specialise(kernel, IS_FLOAT32=True) if format == FP32 else specialise(kernel, FORMAT=format.number)


def launch(X, codes, scales, format: Format, transposed: bool = False) -> Launch:
    """Launch for one of Q, K and V in a format, BHSD and in C order; `transposed` for V."""
    batch, heads, length, width = X.shape
    blocks = scales.shape[2]
    rows = reshape(X, batch * heads * length, width)
    words = as_words(reshape(codes, batch * heads * codes.shape[2], codes.shape[3]))
    sizes = (length, blocks, width) if transposed else (length, blocks)
    kernel = _in_format(quantise_columns if transposed else quantise_rows, format)
    arrays = rows if format == FP32 else as_words(rows), words, reshape(scales, batch * heads, blocks)
    return Launch(kernel, batch * heads * blocks, THREADS, (*arrays, *map(np.uint32, sizes)))

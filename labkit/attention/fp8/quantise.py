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
MOST = np.float32(E4M3_MAX)
ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def load_four(X, row, col):
    """Return four neighbours of a row of float32, or of 16-bit numbers, two in a word."""
    if IS_FLOAT32:
        return ptx.load4(X, (row, col))
    low, high = ptx.load2(X, (row, col // 2))
    a, b = ptx.unpack2(low, FORMAT)
    c, d = ptx.unpack2(high, FORMAT)
    return a, b, c, d


@cuda.jit(device=True)
def scale_of_block(X, top, count, width, thread):
    """What 1 stands for in rows of X, from row `top` on, so that the largest number becomes 448."""
    of_warps = cuda.shared.array(WARPS, np.float32)
    most = np.float32(0)
    for n in range(thread * 4, count * width, THREADS * 4):
        a, b, c, d = load_four(X, top + n // width, n % width)
        most = max(most, max(max(abs(a), abs(b)), max(abs(c), abs(d))))
    for step in range(5):
        most = max(most, cuda.shfl_xor_sync(ALL, most, 1 << step))
    if thread % 32 == 0:
        of_warps[thread // 32] = most
    cuda.syncthreads()
    for warp in range(WARPS):
        most = max(most, of_warps[warp])
    return most / MOST if most >= LEAST else np.float32(1)


@cuda.jit
def rows(X, codes, scales, length, blocks):
    """Q or K: four neighbours of a row are a word of codes."""
    thread = np.uint32(cuda.threadIdx.x)
    plane, block = np.uint32(cuda.blockIdx.x // blocks), np.uint32(cuda.blockIdx.x % blocks)
    count, width = np.uint32(min(BLOCK, length - block * BLOCK)), np.uint32(codes.shape[1] * 4)
    top = np.uint32(plane * length + block * BLOCK)
    scale = scale_of_block(X, top, count, width, thread)
    if thread == 0:
        scales[plane, block] = scale
    for n in range(thread * 4, count * width, THREADS * 4):
        a, b, c, d = load_four(X, top + n // width, n % width)
        codes[top + n // width, n % width // 4] = ptx.pack4(a / scale, b / scale, c / scale, d / scale, E4M3)


@cuda.jit
def columns(X, codes, scales, length, blocks, width):
    """V: a thread takes four columns of 16 keys, and writes of each the 16 codes that lie in a row."""
    values = cuda.local.array((GROUP, 4), np.float32)
    thread = np.uint32(cuda.threadIdx.x)
    plane, block = np.uint32(cuda.blockIdx.x // blocks), np.uint32(cuda.blockIdx.x % blocks)
    count = np.uint32(min(BLOCK, length - block * BLOCK))
    top = np.uint32(plane * length + block * BLOCK)
    scale = scale_of_block(X, top, count, width, thread)
    if thread == 0:
        scales[plane, block] = scale
    quarters = np.uint32(width // 4)
    for n in range(thread, (count + GROUP - 1) // GROUP * quarters, THREADS):
        first, col = np.uint32(n // quarters * GROUP), np.uint32(n % quarters * 4)
        for key in range(GROUP):
            a = b = c = d = np.float32(0)
            if first + key < count:
                a, b, c, d = load_four(X, top + first + key, col)
            values[key, 0], values[key, 1], values[key, 2], values[key, 3] = a / scale, b / scale, c / scale, d / scale
        for i in range(4):
            w0 = ptx.pack4(values[0, i], values[1, i], values[8, i], values[9, i], E4M3)
            w1 = ptx.pack4(values[2, i], values[3, i], values[10, i], values[11, i], E4M3)
            w2 = ptx.pack4(values[4, i], values[5, i], values[12, i], values[13, i], E4M3)
            w3 = ptx.pack4(values[6, i], values[7, i], values[14, i], values[15, i], E4M3)
            ptx.store4(codes, (plane * width + col + i, (block * BLOCK + first) // 4), w0, w1, w2, w3)


@cache
def _in_format(kernel, format: Format):
    return specialise(kernel, IS_FLOAT32=True) if format == FP32 else specialise(kernel, FORMAT=format.number)


def launch(X, codes, scales, format: Format, transposed: bool = False) -> Launch:
    """One of Q, K and V in a format, BHSD and in C order; `transposed` for V."""
    batch, heads, length, width = X.shape
    blocks = scales.shape[2]
    numbers = reshape(X, batch * heads * length, width)
    numbers = numbers if format == FP32 else as_words(numbers)
    words = as_words(reshape(codes, batch * heads * codes.shape[2], codes.shape[3]))
    given = numbers, words, reshape(scales, batch * heads, blocks), np.uint32(length), np.uint32(blocks)
    more = (np.uint32(width),) if transposed else ()
    return Launch(_in_format(columns if transposed else rows, format), batch * heads * blocks, THREADS, (*given, *more))

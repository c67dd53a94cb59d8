"""C = alpha * (sum of the parts of a product) + beta * added, for float32 parts along k.

Each thread adds four neighbours of a row, in a fixed order of the parts. Where there are few elements, several warps
share the parts of one, and add their sums in shared memory.

Costs: each part and C once. Limited by the latency of a launch and of two loads.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_batch, as_bits, as_strided
from labkit.formats import FP32, Format
from labkit.gemm.early import await_previous, is_early, previous_launch
from labkit.ladder import Launch

RESULT = ptx.BF16  # format of the result; `specialise_kernel` replaces it
WARPS = 8  # of a block
SHARES = 1  # of the parts of an element, one per warp
BLOCKS = 256  # fewer leave SMs idle

START_CYCLES = 3500  # of a launch, on an H100; fitted to measured times
BYTES_PER_CYCLE = 1800  # of parts in L2


class Sizes(NamedTuple):
    """Numbers of parts, of rows of all matrices and of one, and of groups of four columns."""

    parts: np.uint32
    all_rows: np.uint32
    rows: np.uint32
    fours: np.uint32


@cuda.jit(device=True)
def decode_element(bits):
    """Convert an element of the result, given as bits, to float32."""
    return ptx.unpack2(np.uint32(bits), RESULT)[0]


@cuda.jit(device=True)
def encode_element(value):
    """Round a float32 to the result's format and return its bits."""
    return ptx.pack2(value, value, RESULT) & 0xFFFF


@cuda.jit(device=True)
def identity(value):
    return value


@cuda.jit
def add_parts(parts, added, C, sizes, alpha, beta):
    sums = cuda.shared.array((WARPS, 32, 4), np.float32, alignment=16)
    total = cuda.local.array(4, np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    item = np.uint32(np.uint32(cuda.blockIdx.x) * (WARPS // SHARES) + warp // SHARES) * np.uint32(32) + lane
    line, col = np.uint32(item // sizes.fours), np.uint32(item % sizes.fours * 4)
    for e in range(4):
        total[e] = 0
    await_previous()
    if line < sizes.all_rows:
        for part in range(warp % SHARES, sizes.parts, SHARES):
            a, b, c, d = ptx.load4(parts, (np.uint32(part), line, col))
            total[0], total[1], total[2], total[3] = total[0] + a, total[1] + b, total[2] + c, total[3] + d
    if SHARES > 1:
        ptx.store4(sums, (warp, lane, 0), total[0], total[1], total[2], total[3])
        cuda.syncthreads()
        for e in range(4):
            total[e] = 0
        for share in range(SHARES):
            a, b, c, d = ptx.load4(sums, (warp // SHARES * SHARES + share, lane, 0))
            total[0], total[1], total[2], total[3] = total[0] + a, total[1] + b, total[2] + c, total[3] + d
    if line < sizes.all_rows and warp % SHARES == 0:
        z, row = line // sizes.rows, line % sizes.rows
        for e in range(4):
            x = col + np.uint32(e)
            if x < C.shape[2]:
                value = alpha * total[e]
                if beta != 0:  # else it may hold NaN
                    value += beta * decode_element(added[z, row, x])
                C[z, row, x] = encode_element(value)


@cache
def specialise_kernel(format: Format, shares: int, early: bool):
    """Return the kernel for a result's format, warps that share an element's parts, and early launches."""
    replaced = {"SHARES": shares}
    if format == FP32:
        replaced |= {"decode_element": identity, "encode_element": identity}
    else:
        replaced["RESULT"] = format.number
    if early:
        replaced["await_previous"] = previous_launch
    return specialise(cuda.jit(early=early)(add_parts.py_func), **replaced)


def add_parts_launch(parts, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """Return the launch of C = alpha * sum + beta * added; `parts` is P x batches x rows x whole groups of four."""
    if format != FP32:
        added, C = as_bits(added), as_bits(C)
    added, C = as_batch(added), as_batch(C)
    count, batches, rows, cols = parts.shape
    items = batches * rows * cols // 4
    shares = next(n for n in (1, 2, 4, 8) if n == WARPS or n * items >= BLOCKS * 32 * WARPS or 2 * n > count)
    sizes = Sizes(*map(np.uint32, (count, batches * rows, rows, cols // 4)))
    arguments = as_strided(parts, (count, batches * rows, cols)), added, C, sizes, np.float32(alpha), np.float32(beta)
    blocks = -(-items * shares // (32 * WARPS))
    return Launch(specialise_kernel(format, shares, is_early()), blocks, (32, WARPS), arguments)


def add_parts_cycles(parts: int, elements: int) -> float:
    """Estimate the cycles of the launch, and of writing the parts."""
    return START_CYCLES + 2 * FP32.itemsize * parts * elements / BYTES_PER_CYCLE

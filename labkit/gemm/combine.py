"""C = alpha * product + beta * added, for kernels that only write products, or parts of them along k.

`added` is C itself or an array of its shape.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_batch, as_bits, as_strided
from labkit.arrays.workspace import Workspace
from labkit.formats import FP32, Format
from labkit.ladder import Launch

RESULT = ptx.BF16  # format of the result; `combine_kernel` replaces it
COLUMNS, WARPS = 32, 8  # of a block
SHARES = 1  # of the parts of an element, one per warp
ROWS = WARPS // SHARES  # of a block's tile, one element per lane
START_CYCLES = 3500  # of a launch, of an H100's SM; fitted to measured times
PART_BYTES_PER_CYCLE = 1800  # of float32 parts in L2
MANY_PARTS = 16  # which several warps add


@cuda.jit(device=True)
def decode_element(bits):
    """Convert an element, given as bits, to float32."""
    return ptx.unpack2(np.uint32(bits), RESULT)[0]


@cuda.jit(device=True)
def decode_part(bits):
    """Convert an element of a part, given as bits, to float32."""
    return ptx.unpack2(np.uint32(bits), RESULT)[0]


@cuda.jit(device=True)
def encode_element(value):
    """Round a float32 to the result's format and return its bits."""
    return ptx.pack2(value, value, RESULT) & 0xFFFF


@cuda.jit(device=True)
def identity(value):
    return value


@cuda.jit
def combine(parts, added, C, alpha, beta):
    sums = cuda.shared.array((WARPS, COLUMNS), np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row_tiles, col_tiles = -(-C.shape[1] // ROWS), -(-C.shape[2] // COLUMNS)
    tile = cuda.blockIdx.x
    z = tile // (row_tiles * col_tiles)
    row = tile // col_tiles % row_tiles * ROWS + warp // SHARES
    col = tile % col_tiles * COLUMNS + lane
    value = np.float32(0)
    if row < C.shape[1] and row < parts.shape[2] and col < parts.shape[3]:
        for p in range(warp % SHARES, parts.shape[0], SHARES):
            value += decode_part(parts[p, z, row, col])
    if SHARES > 1:
        sums[warp, lane] = value
        cuda.syncthreads()
        value = np.float32(0)
        for share in range(SHARES):
            value += sums[warp // SHARES * SHARES + share, lane]
    if warp % SHARES == 0 and row < C.shape[1] and col < C.shape[2]:
        value *= alpha
        if beta != 0:  # else it may hold NaN
            value += beta * decode_element(added[z, row, col])
        C[z, row, col] = encode_element(value)


@cache
def combine_kernel(format: Format, part_format: Format, shares: int = 1):
    """Return the kernel for results and parts in two formats, and warps that share the parts of an element."""
    replaced = {"SHARES": shares, "ROWS": WARPS // shares}
    if part_format == FP32:
        replaced["decode_part"] = identity
    if format == FP32:
        return specialise(combine, decode_element=identity, encode_element=identity, **replaced)
    return specialise(combine, RESULT=format.number, **replaced)


def combine_product(product, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """Return the launch of C = alpha * product + beta * added, all in one format, summed in float32.

    The product may be larger than C; missing elements are zero.
    """
    product = as_batch(product)
    parts = as_strided(product, shape=(1, *product.shape), strides=(0, *product.strides))
    return combine_parts(parts, added, C, alpha, beta, format)


def combine_parts(parts, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """Return the launch of `combine_product` for parts of a product, along the first of four axes.

    The parts hold the format or float32. They are added in a fixed order.
    """
    part_format = FP32 if parts.dtype == FP32.dtype else format
    if part_format != FP32:
        parts = as_bits(parts)
    if format != FP32:
        added, C = as_bits(added), as_bits(C)
    added, C = as_batch(added), as_batch(C)
    batches, rows, cols = C.shape
    shares = WARPS if parts.shape[0] >= MANY_PARTS else 1
    blocks = batches * -(-rows * shares // WARPS) * -(-cols // COLUMNS)
    arguments = parts, added, C, np.float32(alpha), np.float32(beta)
    return Launch(combine_kernel(format, part_format, shares), blocks, (COLUMNS, WARPS), arguments)


def scale_added(added, C, beta: float, format: Format, workspace: Workspace) -> Launch:
    """Return the launch of C = beta * added."""
    element = workspace.array("product", (1,), C.dtype)
    no_parts = as_strided(element, shape=(1, 1, 0, 0), strides=(C.dtype.itemsize,) * 4)  # of no rows and columns
    return combine_parts(no_parts, added, C, alpha=0, beta=beta, format=format)


def combine_cycles(parts: int, elements: int) -> float:
    """Estimate the cycles of the launch of `combine_parts`, and of writing the parts."""
    return START_CYCLES + 2 * FP32.itemsize * parts * elements / PART_BYTES_PER_CYCLE

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
COLUMNS, ROWS = 32, 8  # of a block's tile, one element per thread


@cuda.jit(device=True)
def decode_element(bits):
    """Convert an element, given as bits, to float32."""
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
    row_tiles, col_tiles = -(-C.shape[1] // ROWS), -(-C.shape[2] // COLUMNS)
    tile = cuda.blockIdx.x
    z = tile // (row_tiles * col_tiles)
    row = tile // col_tiles % row_tiles * ROWS + cuda.threadIdx.y
    col = tile % col_tiles * COLUMNS + cuda.threadIdx.x
    if row < C.shape[1] and col < C.shape[2]:
        value = np.float32(0)
        if row < parts.shape[2] and col < parts.shape[3]:
            for p in range(parts.shape[0]):
                value += decode_element(parts[p, z, row, col])
            value *= alpha
        if beta != 0:  # else it may hold NaN
            value += beta * decode_element(added[z, row, col])
        C[z, row, col] = encode_element(value)


@cache
def combine_kernel(format: Format):
    """Return the kernel for results in a format."""
    if format == FP32:
        return specialise(combine, decode_element=identity, encode_element=identity)
    return specialise(combine, RESULT=format.number)


def combine_product(product, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """Return the launch of C = alpha * product + beta * added, all in one format, summed in float32.

    The product may be larger than C; missing elements are zero.
    """
    product = as_batch(product)
    parts = as_strided(product, shape=(1, *product.shape), strides=(0, *product.strides))
    return combine_parts(parts, added, C, alpha, beta, format)


def combine_parts(parts, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """Return the launch of `combine_product` for parts of a product, along the first of four axes, added in order."""
    if format != FP32:
        parts, added, C = map(as_bits, (parts, added, C))
    added, C = as_batch(added), as_batch(C)
    batches, rows, cols = C.shape
    blocks = batches * -(-rows // ROWS) * -(-cols // COLUMNS)
    arguments = parts, added, C, np.float32(alpha), np.float32(beta)
    return Launch(combine_kernel(format), blocks, (COLUMNS, ROWS), arguments)


def scale_added(added, C, beta: float, format: Format, workspace: Workspace) -> Launch:
    """Return the launch of C = beta * added."""
    element = workspace.array("product", (1,), C.dtype)
    no_parts = as_strided(element, shape=(1, 1, 0, 0), strides=(C.dtype.itemsize,) * 4)  # of no rows and columns
    return combine_parts(no_parts, added, C, alpha=0, beta=beta, format=format)

"""C = alpha * product + beta * added, for kernels that write products alone, or parts of them that are to be added up.

What is added is what C holds, or an array of its shape.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_batch, as_bits, as_strided
from labkit.arrays.workspace import Workspace
from labkit.formats import FP32, Format
from labkit.ladder import Launch

RESULT = ptx.BF16
COLUMNS, ROWS = 32, 8  # of a block's part, an element a thread


@cuda.jit(device=True)
def number(bits):
    """The float32 that the bits of an element stand for."""
    return ptx.unpack2(np.uint32(bits), RESULT)[0]


@cuda.jit(device=True)
def element(value):
    """The bits of the nearest number that an element can hold."""
    return ptx.pack2(value, value, RESULT) & 0xFFFF


@cuda.jit(device=True)
def itself(value):
    return value


@cuda.jit
def combine(parts, added, C, alpha, beta):
    down, across = -(-C.shape[1] // ROWS), -(-C.shape[2] // COLUMNS)
    part = cuda.blockIdx.x
    z = part // (down * across)
    row = part // across % down * ROWS + cuda.threadIdx.y
    col = part % across * COLUMNS + cuda.threadIdx.x
    if row < C.shape[1] and col < C.shape[2]:
        value = np.float32(0)
        if row < parts.shape[2] and col < parts.shape[3]:
            for p in range(parts.shape[0]):
                value += number(parts[p, z, row, col])
            value *= alpha
        if beta != 0:  # else what it holds does not matter
            value += beta * number(added[z, row, col])
        C[z, row, col] = element(value)


@cache
def for_results(format: Format):
    """The kernel for results in a format."""
    if format == FP32:
        return specialise(combine, number=itself, element=itself)
    return specialise(combine, RESULT=format.number)


def combined(product, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """C = alpha * product + beta * added, for each element; all hold the format, and sums are float32.

    The product may be larger than C, and what it lacks is zero.
    """
    product = as_batch(product)
    return add_up(as_strided(product, (1, *product.shape), (0, *product.strides)), added, C, alpha, beta, format)


def add_up(parts, added, C, alpha: float, beta: float, format: Format) -> Launch:
    """As `combined`, of a product whose parts, along the first of four axes, are added in their order."""
    if format != FP32:
        parts, added, C = map(as_bits, (parts, added, C))
    added, C = as_batch(added), as_batch(C)
    batches, rows, cols = C.shape
    blocks = batches * -(-rows // ROWS) * -(-cols // COLUMNS)
    return Launch(for_results(format), blocks, (COLUMNS, ROWS), (parts, added, C, np.float32(alpha), np.float32(beta)))


def scaled(added, C, beta: float, format: Format, workspace: Workspace) -> Launch:
    """C = beta * added."""
    nothing = as_strided(workspace.array("product", (1,), C.dtype), (1, 1, 0, 0), (C.dtype.itemsize,) * 4)
    return add_up(nothing, added, C, 0, beta, format)

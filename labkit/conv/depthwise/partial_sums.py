"""Second launch of a gradient of filters: it adds the parts in a fixed order, so every run gives the same bits."""

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.conv.depthwise.vectors import from_float32
from labkit.formats import Format
from labkit.ladder import Launch

LANES, ROWS = 32, 16  # of a block: elements, and threads that share the parts of one
ELEMENT, FORMAT = np.float32, ptx.BF16  # of the result; of 16-bit numbers


@cuda.jit
def add_parts(parts, out):
    """out = the sum of the parts."""
    sums = cuda.shared.array((ROWS, LANES), np.float32)
    lane, row = cuda.threadIdx.x, cuda.threadIdx.y
    i = cuda.blockIdx.x * LANES + lane
    acc = np.float32(0)
    if i < out.size:
        for part in range(row, parts.shape[0], ROWS):
            acc += parts[part, i]
    sums[row, lane] = acc
    cuda.syncthreads()
    if row == 0 and i < out.size:
        for other in range(1, ROWS):
            acc += sums[other, lane]
        out[i] = from_float32(acc)


def sum_parts(parts, out, format: Format) -> Launch:
    """Return the launch of out = the sum of the rows of `parts`, in a format."""
    element = np.float32 if format.itemsize == 4 else np.uint16
    kernel = specialise(add_parts, ELEMENT=element, FORMAT=format.number)
    return Launch(kernel, -(-parts.shape[1] // LANES), (LANES, ROWS), (parts, out))

"""Maximum and sum in one read: where a value above the maximum comes, what was summed before it is rescaled.

Each thread keeps a maximum and a sum of its own. At the end those of a warp, and then those of the warps, are merged
by the same rescaling. (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3.)

Costs, in passes over memory, each of them the matrix read or written once:

    3       online: read twice, written
    3       passes in all

Two exponentials a value in place of one, of which one is always exp(0). Limited by loads of 4 bytes, each of which has
to be added before the next. `s03_on_chip` reads a row once.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch
from labkit.softmax.online import LEAST, add_value, exp, merge_block, merge_warp

FORMATS = (FP32,)
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
THREADS = WARP * WARPS


@cuda.jit(launch_bounds=THREADS)
def online(x, y):
    of_warps = cuda.shared.array((2, WARPS), np.float32)
    row, t, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    maximum, total = LEAST, np.float32(0)
    for i in range(t, columns, THREADS):
        maximum, total = add_value(maximum, total, x[row, i])
    maximum, total = merge_warp(maximum, total)
    maximum, total = merge_block(maximum, total, of_warps)
    for i in range(t, columns, THREADS):
        y[row, i] = exp(x[row, i] - maximum) / total


def launches(x, y, problem):
    """y of each row."""
    problem.check(x, y)
    return [Launch(online, problem.rows, THREADS, (x, y))]

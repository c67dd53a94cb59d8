"""Kernels that several tests launch."""

import numpy as np

from labkit import cuda

TILE = 16


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit
def cube(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * square(x[i])


@cuda.jit
def reverse(x, out):
    s = cuda.shared.array(0, np.float32)
    i = cuda.threadIdx.x
    s[i] = x[i]
    cuda.syncthreads()
    out[i] = s[x.size - 1 - i]


@cuda.jit
def racy(out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    s[i] = i
    out[i] = s[63 - i]


@cuda.jit
def label_tiles(out):
    i = cuda.grid(1)
    out[i] = i // TILE


PARTS = 2
HALF = TILE // PARTS
QUARTER = HALF // PARTS


@cuda.jit
def label_quarters(out):
    i = cuda.grid(1)
    out[i] = i // QUARTER


@cuda.jit(device=True)
def my_quarter():
    return cuda.threadIdx.x // QUARTER


@cuda.jit
def label_quarters_by_function(out):
    i = cuda.grid(1)
    out[i] = my_quarter()


@cuda.jit(device=True)
def my_tile():
    return cuda.threadIdx.x // TILE


@cuda.jit
def label_tiles_by_function(out):
    i = cuda.grid(1)
    out[i] = my_tile()


@cuda.jit
def square_tile(out):
    s = cuda.shared.array((TILE, TILE), np.float32)
    i = cuda.threadIdx.x
    s[0, i] = 1
    cuda.syncthreads()
    out[i] = s[0, TILE - 1 - i]


def tiles_in(length):
    return length // TILE

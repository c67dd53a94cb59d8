"""Products of vectors and of a matrix with a vector, with neighbouring threads along rows and along columns.

A launch has a function that makes its arguments; `per_element` launches a thread per element of its number.
"""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import BLOCK_THREADS, Launch, normal, per_element, zeros

THREADS = BLOCK_THREADS
ELEMENTS = 1 << 18
SIDE = 1024


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def dot(x, y, out):
    partial = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] * y[i]
    partial[t] = total
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def matvec_by_row(A, x, out):
    row = cuda.grid(1)
    if row < A.shape[0]:
        total = np.float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * x[k]
        out[row] = total


@cuda.jit
def matvec_by_column(A, x, out):
    col = cuda.grid(1)
    if col < A.shape[1]:
        total = np.float32(0)
        for k in range(A.shape[0]):
            total += A[k, col] * x[k]
        out[col] = total


def _square():
    return normal(SIDE, SIDE), normal(SIDE), zeros(SIDE)


LAUNCHES = (
    per_element(axpy, ELEMENTS, lambda: (np.float32(3), normal(ELEMENTS), zeros(ELEMENTS))),
    Launch(dot, 128, THREADS, lambda: (normal(ELEMENTS), normal(ELEMENTS), zeros(1)), problem=str(ELEMENTS)),
    per_element(matvec_by_row, SIDE, _square, problem=f"{SIDE}x{SIDE}"),
    per_element(matvec_by_column, SIDE, _square, problem=f"{SIDE}x{SIDE}"),
)

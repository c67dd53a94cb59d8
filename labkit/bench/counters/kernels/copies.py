"""Copies: neighbouring, strided, shifted and random accesses, of elements from 8 to 64 bits."""

import numpy as np

from labkit import cuda
from labkit.bench.counters.kernels.launch import integers, normal, per_element, zeros

SMALL = 1 << 18
LARGE = 1 << 24  # 64 MiB of float32: more than the L2 of an H100


@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]


@cuda.jit
def strided_copy(x, out, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * stride]


@cuda.jit
def strided_store(x, out, stride):
    i = cuda.grid(1)
    if i < x.size:
        out[i * stride] = x[i]


@cuda.jit
def shifted_copy(x, out, shift):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i + shift]


@cuda.jit
def gather(x, index, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[index[i]]


@cuda.jit
def scatter(x, index, out):
    i = cuda.grid(1)
    if i < x.size:
        out[index[i]] = x[i]


def _strided(stride, elements=SMALL):
    name = f"copy with stride {stride}"
    return per_element(strided_copy, elements, lambda: (normal(elements * stride), zeros(elements), stride), name=name)


def _shifted(shift):
    name = f"copy shifted by {shift}"
    return per_element(shifted_copy, SMALL, lambda: (normal(SMALL + 32), zeros(SMALL), shift), name=name)


def _typed(dtype):
    x = integers(SMALL, 100, np.int8).astype(dtype)
    return per_element(copy, SMALL, lambda: (x.copy(), zeros(SMALL, dtype=dtype)), name=f"copy {dtype}")


def _order(elements):
    return np.random.default_rng(0).permutation(elements).astype(np.int32)


def _gather_from_few():
    return normal(1000), _order(SMALL) % 1000, zeros(SMALL)


LAUNCHES = (
    per_element(copy, SMALL, lambda: (normal(SMALL), zeros(SMALL))),
    per_element(copy, LARGE, lambda: (normal(LARGE), zeros(LARGE))),
    *map(_strided, (2, 8, 33)),
    _strided(8, LARGE // 4),
    _strided(33, LARGE // 2),
    per_element(strided_store, SMALL, lambda: (normal(SMALL), zeros(8 * SMALL), 8), name="store with stride 8"),
    *map(_shifted, (1, 8, 17, 31)),
    per_element(gather, SMALL, lambda: (normal(SMALL), _order(SMALL), zeros(SMALL))),
    per_element(gather, SMALL, _gather_from_few, problem="from 1000", name="gather from few"),
    per_element(scatter, SMALL, lambda: (normal(SMALL), _order(SMALL), zeros(SMALL))),
    *map(_typed, ("int8", "int16", "float64")),
)

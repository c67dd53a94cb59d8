"""Four neighbouring pixels of a plane at a time, as float32 whatever an array holds.

A kernel that calls `load4` and `store4` of `labkit.ptx` for matrices is given to `suited`: these take four by one
instruction. Where rows do not begin at multiples of four elements, as planes of 7 x 7 pixels, the kernel's copy takes
them one by one; where arrays hold the bits of bfloat16, its copy converts them.
"""

from functools import lru_cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import address_of
from labkit.formats import BF16
from labkit.rebinding import names_of

FORMAT = ptx.BF16
HALF = np.uint32(16)
LOW = np.uint32(0xFFFF)


@cuda.jit(device=True)
def load_one_by_one(planes, index):
    plane, i = index
    last = planes.shape[1] - 1
    second, third, fourth = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    return planes[plane, i], planes[plane, second], planes[plane, third], planes[plane, fourth]


@cuda.jit(device=True)
def store_one_by_one(planes, index, a, b, c, d):
    plane, i = index
    planes[plane, i] = a
    if i + 1 < planes.shape[1]:
        planes[plane, i + 1] = b
    if i + 2 < planes.shape[1]:
        planes[plane, i + 2] = c
    if i + 3 < planes.shape[1]:
        planes[plane, i + 3] = d


@cuda.jit(device=True)
def numbers(a, b, c, d):
    """What four of bfloat16 stand for."""
    first, second = ptx.unpack2(np.uint32(a) | np.uint32(b) << HALF, FORMAT)
    third, fourth = ptx.unpack2(np.uint32(c) | np.uint32(d) << HALF, FORMAT)
    return first, second, third, fourth


@cuda.jit(device=True)
def bits(a, b, c, d):
    """Four float32 rounded to bfloat16."""
    low, high = ptx.pack2(a, b, FORMAT), ptx.pack2(c, d, FORMAT)
    return np.uint16(low & LOW), np.uint16(low >> HALF), np.uint16(high & LOW), np.uint16(high >> HALF)


@cuda.jit(device=True)
def load_bits(planes, index):
    plane, i = index
    a, b, c, d = ptx.load4(planes, (plane, i))
    return numbers(a, b, c, d)


@cuda.jit(device=True)
def store_bits(planes, index, a, b, c, d):
    plane, i = index
    p, q, r, s = bits(a, b, c, d)
    ptx.store4(planes, (plane, i), p, q, r, s)


@cuda.jit(device=True)
def load_bits_one_by_one(planes, index):
    a, b, c, d = load_one_by_one(planes, index)
    return numbers(a, b, c, d)


@cuda.jit(device=True)
def store_bits_one_by_one(planes, index, a, b, c, d):
    p, q, r, s = bits(a, b, c, d)
    store_one_by_one(planes, index, p, q, r, s)


WAYS = {  # by whether arrays hold bits, and whether rows begin at multiples of four elements
    (False, False): {"load4": load_one_by_one, "store4": store_one_by_one},
    (True, True): {"load4": load_bits, "store4": store_bits},
    (True, False): {"load4": load_bits_one_by_one, "store4": store_bits_one_by_one},
}


def suited(kernel, *matrices):
    """The kernel itself, or its copy that takes all these matrices as they lie and what they hold."""
    are_bits = matrices[0].dtype == BF16.dtype
    return _copy(kernel, are_bits, all(map(has_rows_in_fours, matrices)))


def has_rows_in_fours(X) -> bool:
    """Whether each row of a matrix in C order begins at a multiple of four elements."""
    return not any(n % (4 * X.dtype.itemsize) for n in (address_of(X), X.strides[0]))


@lru_cache(1024)  # kernels: some have copies for each size of images
def _copy(kernel, are_bits, in_fours):
    used = names_of(kernel.py_func)
    ways = WAYS.get((are_bits, in_fours), {})
    return specialise(kernel, **{name: way for name, way in ways.items() if name in used}) if ways else kernel

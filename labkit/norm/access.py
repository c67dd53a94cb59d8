"""Four neighbouring pixels of a plane at a time: by one instruction of 16 bytes, or one by one where planes do not
begin at multiples of 16 bytes, as those of 7 x 7 pixels.

A kernel that calls `load4` and `store4` of `labkit.ptx` for matrices whose rows are planes is given to `suited`.
"""

from functools import cache

from labkit import cuda, specialise
from labkit.arrays.addresses import has_rows_at_pieces
from labkit.rebinding import names_of


@cuda.jit(device=True)
def load4(planes, index):
    plane, i = index
    last = planes.shape[1] - 1
    second, third, fourth = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    return planes[plane, i], planes[plane, second], planes[plane, third], planes[plane, fourth]


@cuda.jit(device=True)
def store4(planes, index, a, b, c, d):
    plane, i = index
    planes[plane, i] = a
    if i + 1 < planes.shape[1]:
        planes[plane, i + 1] = b
    if i + 2 < planes.shape[1]:
        planes[plane, i + 2] = c
    if i + 3 < planes.shape[1]:
        planes[plane, i + 3] = d


PLAIN = {"load4": load4, "store4": store4}


def suited(kernel, *matrices):
    """The kernel itself if rows of these matrices begin at multiples of 16 bytes, or its copy with plain accesses."""
    return kernel if all(map(has_rows_at_pieces, matrices)) else plain(kernel)


@cache
def plain(kernel):
    """The kernel's copy with plain accesses."""
    used = names_of(kernel.py_func)
    return specialise(kernel, **{name: access for name, access in PLAIN.items() if name in used})

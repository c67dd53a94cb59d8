"""Four neighbouring elements at a time: by one instruction of 16 bytes where the arrays allow it, else one by one.

A kernel that calls `load4` and `store4` of `labkit.ptx` needs arrays in C order whose rows begin at multiples of 16
bytes. For any others (a slice such as `x[1:]`, every second element, rows of 101 numbers, some of the columns) `suited`
gives a copy of the kernel in which both are plain accesses. Such a warp touches the same sectors, in four instructions.
"""

from functools import cache

from labkit import cuda, specialise
from labkit.arrays.addresses import has_rows_at_pieces, lies_in_order
from labkit.rebinding import names_of


@cuda.jit(device=True)
def load4(array, index):
    last = array.shape[0] - 1
    return array[index], array[min(index + 1, last)], array[min(index + 2, last)], array[min(index + 3, last)]


@cuda.jit(device=True)
def store4(array, index, a, b, c, d):
    array[index], array[index + 1], array[index + 2], array[index + 3] = a, b, c, d


PLAIN = {"load4": load4, "store4": store4}


def suited(kernel, *arrays):
    """The kernel itself if all these arrays can be reached 16 bytes at a time, else its copy with plain accesses."""
    return kernel if all(map(_in_vectors_throughout, arrays)) else plain(kernel)


@cache
def plain(kernel):
    """The kernel's copy with plain accesses."""
    used = names_of(kernel.py_func)
    return specialise(kernel, **{name: access for name, access in PLAIN.items() if name in used})


def _in_vectors_throughout(array):
    # numba's types tell no row of a matrix whose rows lie apart from a vector whose elements do
    return has_rows_at_pieces(array) and lies_in_order(array)

"""Host code of `vectors` and `fours`: which accesses arrays allow, and the kernel's copy for them."""

from functools import cache, lru_cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.addresses import VECTOR_BYTES, address_of, has_aligned_rows, has_c_order
from labkit.arrays.views import as_words
from labkit.formats import BF16


def in_vectors(*arrays) -> bool:
    """Return whether all arrays are in C order, and their rows begin at multiples of 16 bytes."""
    # numba's types tell no row of a matrix whose rows lie apart from a vector whose elements do
    return all(has_aligned_rows(X) and has_c_order(X) for X in arrays)


def has_rows_in_fours(X) -> bool:
    """Return whether each row of a matrix in C order begins at a multiple of four elements."""
    return not any(n % (4 * X.dtype.itemsize) for n in (address_of(X), X.strides[0]))


def width_of_four(*matrices) -> int:
    """Return the elements per access: four where all rows begin at multiples of four elements, else one."""
    return 4 if all(map(has_rows_in_fours, matrices)) else 1


def vector_width(*arrays) -> int:
    """Return the elements per access of the first of these matrices: 16 bytes where all arrays allow it, else one.

    They do where rows begin at multiples of 16 bytes; vectors that are loaded with them begin there too.
    """
    at_once = VECTOR_BYTES // arrays[0].dtype.itemsize
    aligned = arrays[0].shape[-1] % at_once == 0 and not any(address_of(X) % VECTOR_BYTES for X in arrays)
    return at_once if aligned else 1


def kernel_view(X, width: int):
    """Return a matrix as kernels take it for a `vector_width`: eight bfloat16 are four words."""
    return as_words(X) if X.dtype == BF16.dtype and width > 1 else X


@cache
def specialise_vectors(kernel, dtype, width: int, bounds: int | tuple[int, int], cluster: int = 1, **constants):
    """Return the kernel's copy for rows of a type, vectors of a width, and the size of its blocks and clusters.

    Parameters
    ----------
    kernel
        It uses functions of `labkit.parts.vectors`, and has the constant `WIDTH`.
    dtype
        Type of the rows as the caller has them.
    width
        Elements of a vector, from `vector_width` or `width_of_four`.
    bounds
        Threads of a block, or these and blocks of an SM. They bound the registers of a thread.
    cluster
        Blocks of a cluster.
    constants
        Other constants of the kernel.
    """
    bounded = cuda.jit(launch_bounds=bounds, cluster=cluster)(kernel.py_func)
    return specialise(bounded, WIDTH=width, ELEMENT=element_of(dtype, width), **constants)


def element_of(dtype, width: int) -> type:
    """Return the element type in which kernels see rows of a type: eight bfloat16 are words of two."""
    return np.uint32 if dtype == BF16.dtype and width == 8 else dtype.type


def specialise_fours(kernel, *matrices):
    """Return the kernel, which takes vectors of four, or its copy for what these matrices hold and where rows begin."""
    return _of_fours(kernel, matrices[0].dtype, all(map(has_rows_in_fours, matrices)))


@lru_cache(1024)  # kernels: some have copies for each size of images
def _of_fours(kernel, dtype, aligned):
    return kernel if aligned and dtype == np.float32 else specialise(kernel, ELEMENT=dtype.type, ALIGNED=aligned)


@cache
def specialise_alignment(kernel, aligned: bool, **constants):
    """Return the kernel's copy that has these constants, for arrays that are `in_vectors` or are not."""
    return specialise(kernel, **constants) if aligned else specialise(kernel, ALIGNED=False, **constants)

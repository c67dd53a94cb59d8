"""Host code of `vectors` and `fours`: the widest accesses that arrays allow, and the kernel specialised for them."""

from functools import cache, lru_cache

import numpy as np

from labkit import cuda, specialise
from labkit.arrays.addresses import VECTOR_BYTES, address_of, has_aligned_rows, has_c_order
from labkit.arrays.views import as_bits, as_words
from labkit.formats import FP16


def can_load_vectors(*arrays) -> bool:
    """Return whether all arrays are in C order, and their rows begin at multiples of 16 bytes."""
    # numba gives a row of a strided matrix the same type as a strided vector
    return all(has_aligned_rows(X) and has_c_order(X) for X in arrays)


def is_aligned_to_fours(X) -> bool:
    """Return whether each row of a matrix in C order begins at a multiple of four elements."""
    return not any(n % (4 * X.dtype.itemsize) for n in (address_of(X), X.strides[0]))


def width_up_to_four(*matrices) -> int:
    """Return the elements per access: four where all rows begin at multiples of four elements, else one."""
    return 4 if all(map(is_aligned_to_fours, matrices)) else 1


def inner_width(*arrays) -> int:
    """Return the elements per access inside of a row, whose ends need not be aligned: four, if all arrays are."""
    return 4 if not any(address_of(X) % (4 * arrays[0].dtype.itemsize) for X in arrays) else 1


def vector_width(*arrays) -> int:
    """Return the elements per access of the first matrix: 16 bytes if all rows are aligned, else four or one."""
    if any(address_of(X) % VECTOR_BYTES for X in arrays):
        return 1
    widths = VECTOR_BYTES // arrays[0].dtype.itemsize, 4
    return next((width for width in widths if arrays[0].shape[-1] % width == 0), 1)


def word_view(X, width: int):
    """View a matrix of 16-bit elements as words of two for vectors of eight, else as bits; return float32 as it is."""
    if X.dtype.itemsize > 2:
        return X
    return as_words(X) if width == 8 else as_bits(X)


@cache
def specialise_vectors(kernel, dtype, width: int, bounds: int | tuple[int, int], cluster: int = 1, **constants):
    """Return the kernel specialised for rows of a type, vectors of a width, and sizes of blocks and clusters.

    Parameters
    ----------
    kernel
        Uses functions of `labkit.parts.vectors` and has the constant `WIDTH`.
    dtype
        Element type of the caller's arrays.
    width
        Elements of a vector, from `vector_width` or `width_up_to_four`.
    bounds
        Threads per block, or (threads per block, blocks per SM); they bound the registers of a thread.
    cluster
        Blocks per cluster.
    constants
        Other constants of the kernel.
    """
    bounded = cuda.jit(launch_bounds=bounds, cluster=cluster)(kernel.py_func)
    return specialise(bounded, **element_constants(dtype, width), **constants)


def element_constants(dtype, width: int) -> dict:
    """Return the constants with which a kernel accesses rows of a type by vectors of a width."""
    constants = {"WIDTH": width, "ELEMENT": vector_element(dtype, width)}
    return constants | {"FORMAT": FP16.number} if dtype == FP16.dtype else constants


def vector_element(dtype, width: int) -> type:
    """Return the element type that kernels see: words of two 16-bit elements for vectors of eight, else their bits."""
    if dtype.itemsize > 2:
        return dtype.type
    return np.uint32 if width == 8 else np.uint16


def specialise_type_and_alignment(kernel, *matrices, dtype=None):
    """Return a kernel that uses `labkit.parts.fours`, with the constants that fit all matrices.

    `dtype` is the type of the caller's arrays, where matrices have their bits.
    """
    return _specialise_element(kernel, dtype or matrices[0].dtype, all(map(is_aligned_to_fours, matrices)))


@lru_cache(1024)  # kernels; some have a copy per image size
def _specialise_element(kernel, dtype, aligned):
    if aligned and dtype == np.float32:
        return kernel
    constants = element_constants(dtype, 4)
    del constants["WIDTH"]
    return specialise(kernel, ALIGNED=aligned, **constants)


@cache
def specialise_alignment(kernel, *, aligned: bool, **constants):
    """Return the kernel with these constants, and `aligned` as `ALIGNED` of `labkit.parts.fours`, which it uses."""
    return specialise(kernel, **constants) if aligned else specialise(kernel, ALIGNED=False, **constants)

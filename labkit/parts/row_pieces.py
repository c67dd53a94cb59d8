"""How a thread takes pieces of a row: neighbours that 16 bytes hold, as float32 whatever the row holds.

A kernel that calls these functions is made for four float32 at once. `suited` gives its copy for eight of bfloat16,
whose bits it sees as pairs in 32-bit words (`seen`), and for one element at a time where rows do not begin at multiples
of 16 bytes. `own` is an array of the thread, of a row for each of its pieces.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.addresses import PIECE_BYTES, address_of
from labkit.arrays.views import as_words
from labkit.formats import BF16
from labkit.rebinding import names_of

FORMAT = ptx.BF16
LOW = np.uint32(0xFFFF)


@cuda.jit(device=True)
def load(x, row, i, own, k):
    """Reads the piece at column i of a row into `own[k]`."""
    own[k, 0], own[k, 1], own[k, 2], own[k, 3] = ptx.load4(x, (row, i))


@cuda.jit(device=True)
def store(y, row, i, own, k):
    """Writes `own[k]` to the piece at column i of a row."""
    ptx.store4(y, (row, i), own[k, 0], own[k, 1], own[k, 2], own[k, 3])


@cuda.jit(device=True)
def begin(kept, place, x, row, i):
    """Begins the copy of a piece to element `place` of shared memory; `ptx.cp_async_wait` waits for it."""
    ptx.cp_async(kept, place, x, (row, i), 16, 16)


@cuda.jit(device=True)
def take(kept, place, own, k):
    """Reads the piece that was copied to `place` into `own[k]`."""
    own[k, 0], own[k, 1], own[k, 2], own[k, 3] = ptx.load4(kept, place)


@cuda.jit(device=True)
def load_numbers(vector, i, own, k):
    """Reads as many float32 as a piece has elements into `own[k]`."""
    own[k, 0], own[k, 1], own[k, 2], own[k, 3] = ptx.load4(vector, i)


@cuda.jit(device=True)
def store_numbers(matrix, row, i, own, k):
    """Writes `own[k]`, as many float32 as a piece has elements, to a row of a matrix of float32."""
    ptx.store4(matrix, (row, i), own[k, 0], own[k, 1], own[k, 2], own[k, 3])


@cuda.jit(device=True)
def load_one(x, row, i, own, k):
    own[k, 0] = x[row, i]


@cuda.jit(device=True)
def store_one(y, row, i, own, k):
    y[row, i] = own[k, 0]


@cuda.jit(device=True)
def begin_one(kept, place, x, row, i):
    ptx.cp_async(kept, place, x, (row, i), 4, 4)


@cuda.jit(device=True)
def take_one(kept, place, own, k):
    own[k, 0] = kept[place]


@cuda.jit(device=True)
def load_one_number(vector, i, own, k):
    own[k, 0] = vector[i]


@cuda.jit(device=True)
def store_one_number(matrix, row, i, own, k):
    matrix[row, i] = own[k, 0]


@cuda.jit(device=True)
def load_words(x, row, i, own, k):
    a, b, c, d = ptx.load4(x, (row, i // 2))
    own[k, 0], own[k, 1] = ptx.unpack2(a, FORMAT)
    own[k, 2], own[k, 3] = ptx.unpack2(b, FORMAT)
    own[k, 4], own[k, 5] = ptx.unpack2(c, FORMAT)
    own[k, 6], own[k, 7] = ptx.unpack2(d, FORMAT)


@cuda.jit(device=True)
def store_words(y, row, i, own, k):
    a, b = ptx.pack2(own[k, 0], own[k, 1], FORMAT), ptx.pack2(own[k, 2], own[k, 3], FORMAT)
    c, d = ptx.pack2(own[k, 4], own[k, 5], FORMAT), ptx.pack2(own[k, 6], own[k, 7], FORMAT)
    ptx.store4(y, (row, i // 2), a, b, c, d)


@cuda.jit(device=True)
def begin_words(kept, place, x, row, i):
    ptx.cp_async(kept, place // 2, x, (row, i // 2), 16, 16)


@cuda.jit(device=True)
def take_words(kept, place, own, k):
    a, b, c, d = ptx.load4(kept, place // 2)
    own[k, 0], own[k, 1] = ptx.unpack2(a, FORMAT)
    own[k, 2], own[k, 3] = ptx.unpack2(b, FORMAT)
    own[k, 4], own[k, 5] = ptx.unpack2(c, FORMAT)
    own[k, 6], own[k, 7] = ptx.unpack2(d, FORMAT)


@cuda.jit(device=True)
def load_eight_numbers(vector, i, own, k):
    own[k, 0], own[k, 1], own[k, 2], own[k, 3] = ptx.load4(vector, i)
    own[k, 4], own[k, 5], own[k, 6], own[k, 7] = ptx.load4(vector, i + np.uint32(4))


@cuda.jit(device=True)
def store_eight_numbers(matrix, row, i, own, k):
    ptx.store4(matrix, (row, i), own[k, 0], own[k, 1], own[k, 2], own[k, 3])
    ptx.store4(matrix, (row, i + np.uint32(4)), own[k, 4], own[k, 5], own[k, 6], own[k, 7])


@cuda.jit(device=True)
def load_bits(x, row, i, own, k):
    own[k, 0], _ = ptx.unpack2(np.uint32(x[row, i]), FORMAT)


@cuda.jit(device=True)
def store_bits(y, row, i, own, k):
    y[row, i] = np.uint16(ptx.pack2(own[k, 0], own[k, 0], FORMAT) & LOW)


@cuda.jit(device=True)
def begin_bits(kept, place, x, row, i):
    kept[place] = x[row, i]  # there is no copy of two bytes


@cuda.jit(device=True)
def take_bits(kept, place, own, k):
    own[k, 0], _ = ptx.unpack2(np.uint32(kept[place]), FORMAT)


WAYS = {  # by what a row holds as kernels see it, and how many neighbours are taken at once
    (np.float32, 4): (load, store, begin, take, load_numbers, store_numbers),
    (np.float32, 1): (load_one, store_one, begin_one, take_one, load_one_number, store_one_number),
    (np.uint32, 8): (load_words, store_words, begin_words, take_words, load_eight_numbers, store_eight_numbers),
    (np.uint16, 1): (load_bits, store_bits, begin_bits, take_bits, load_one_number, store_one_number),
}
NAMES = "load", "store", "begin", "take", "load_numbers", "store_numbers"


def width(*arrays) -> int:
    """How many neighbours a thread takes at once, of the first of these matrices: 16 bytes where all allow it, else 1.

    They do where rows begin at multiples of 16 bytes; vectors that are taken along begin there too.
    """
    at_once = PIECE_BYTES // arrays[0].dtype.itemsize
    in_pieces = arrays[0].shape[-1] % at_once == 0 and not any(address_of(X) % PIECE_BYTES for X in arrays)
    return at_once if in_pieces else 1


def seen(X, width: int):
    """A matrix as kernels see it: eight of bfloat16 are four words."""
    return as_words(X) if X.dtype == BF16.dtype and width > 1 else X


@cache
def suited(kernel, dtype, width: int, bounds: int | tuple[int, int], cluster: int = 1, **constants):
    """The kernel's copy for rows of a type, so many neighbours at once, and blocks and clusters of some size.

    Parameters
    ----------
    kernel
        It has the constant `WIDTH`, and may have `ELEMENT`, which is what a shared array holds.
    dtype
        Of the rows as the caller has them.
    width
        As `width` finds it.
    bounds
        Threads of a block, or these and blocks of an SM: they bound the registers of a thread.
    cluster
        Blocks of a cluster.
    constants
        Others of the kernel's constants.
    """
    element = np.dtype(np.uint32 if dtype == BF16.dtype and width > 1 else dtype).type
    bounded = cuda.jit(launch_bounds=bounds, cluster=cluster)(kernel.py_func)
    used = names_of(kernel.py_func)
    known = dict(zip(NAMES, WAYS[element, width])) | {"WIDTH": width, "ELEMENT": element}
    return specialise(bounded, **{name: value for name, value in known.items() if name in used}, **constants)

"""How a thread copies neighbours of a plane into shared memory, takes them from there, and gives what became of them.

A kernel that calls `begin`, `take`, `put`, `give` and `fetch` is made for four float32 at once. `suited` gives its copy
for planes that do not begin at multiples of four elements, such as those of 7 x 7 pixels, of which it takes one at a
time, and for bits of bfloat16, which stay as they are in shared memory.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.formats import BF16
from labkit.norm.access import bits, has_rows_in_fours, numbers
from labkit.rebinding import names_of

FORMAT = ptx.BF16
LOW = np.uint32(0xFFFF)


@cuda.jit(device=True)
def begin(kept, place, planes, index):
    """Begins the copy of neighbours to `kept[place]`; the thread waits for it by `ptx.cp_async_wait`."""
    plane, i = index
    ptx.cp_async(kept, place, planes, (plane, i), 16, 16)


@cuda.jit(device=True)
def take(kept, place, own):
    """The neighbours at `kept[place]` as float32, into an array of the thread."""
    own[0], own[1], own[2], own[3] = ptx.load4(kept, place)


@cuda.jit(device=True)
def put(kept, place, own):
    """Puts neighbours of the thread to `kept[place]`."""
    ptx.store4(kept, place, own[0], own[1], own[2], own[3])


@cuda.jit(device=True)
def give(planes, index, own):
    """Writes the neighbours to a plane."""
    plane, i = index
    ptx.store4(planes, (plane, i), own[0], own[1], own[2], own[3])


@cuda.jit(device=True)
def fetch(planes, index, own):
    """The neighbours of a plane as float32, into an array of the thread."""
    plane, i = index
    own[0], own[1], own[2], own[3] = ptx.load4(planes, (plane, i))


@cuda.jit(device=True)
def begin_one(kept, place, planes, index):
    plane, i = index
    ptx.cp_async(kept, place, planes, (plane, i), 4, 4)


@cuda.jit(device=True)
def take_one(kept, place, own):
    own[0] = kept[place]


@cuda.jit(device=True)
def put_one(kept, place, own):
    kept[place] = own[0]


@cuda.jit(device=True)
def give_one(planes, index, own):
    plane, i = index
    planes[plane, i] = own[0]


@cuda.jit(device=True)
def fetch_one(planes, index, own):
    plane, i = index
    own[0] = planes[plane, i]


@cuda.jit(device=True)
def begin_bits(kept, place, planes, index):
    plane, i = index
    ptx.cp_async(kept, place, planes, (plane, i), 8, 8)


@cuda.jit(device=True)
def take_bits(kept, place, own):
    a, b, c, d = ptx.load4(kept, place)
    own[0], own[1], own[2], own[3] = numbers(a, b, c, d)


@cuda.jit(device=True)
def put_bits(kept, place, own):
    a, b, c, d = bits(own[0], own[1], own[2], own[3])
    ptx.store4(kept, place, a, b, c, d)


@cuda.jit(device=True)
def give_bits(planes, index, own):
    plane, i = index
    a, b, c, d = bits(own[0], own[1], own[2], own[3])
    ptx.store4(planes, (plane, i), a, b, c, d)


@cuda.jit(device=True)
def fetch_bits(planes, index, own):
    plane, i = index
    a, b, c, d = ptx.load4(planes, (plane, i))
    own[0], own[1], own[2], own[3] = numbers(a, b, c, d)


@cuda.jit(device=True)
def begin_one_of_bits(kept, place, planes, index):
    plane, i = index
    kept[place] = planes[plane, i]  # there is no copy of two bytes


@cuda.jit(device=True)
def take_one_of_bits(kept, place, own):
    own[0], _ = ptx.unpack2(np.uint32(kept[place]), FORMAT)


@cuda.jit(device=True)
def put_one_of_bits(kept, place, own):
    kept[place] = np.uint16(ptx.pack2(own[0], own[0], FORMAT) & LOW)


@cuda.jit(device=True)
def give_one_of_bits(planes, index, own):
    plane, i = index
    planes[plane, i] = np.uint16(ptx.pack2(own[0], own[0], FORMAT) & LOW)


@cuda.jit(device=True)
def fetch_one_of_bits(planes, index, own):
    plane, i = index
    own[0], _ = ptx.unpack2(np.uint32(planes[plane, i]), FORMAT)


NAMES = "begin", "take", "put", "give", "fetch"
WAYS = {  # by whether arrays hold bits, and how many neighbours are taken at once
    (False, 4): (begin, take, put, give, fetch),
    (False, 1): (begin_one, take_one, put_one, give_one, fetch_one),
    (True, 4): (begin_bits, take_bits, put_bits, give_bits, fetch_bits),
    (True, 1): (begin_one_of_bits, take_one_of_bits, put_one_of_bits, give_one_of_bits, fetch_one_of_bits),
}


def width(*matrices) -> int:
    """How many neighbours a thread takes at once: four where all rows of these matrices begin at multiples of that."""
    return 4 if all(map(has_rows_in_fours, matrices)) else 1


def ways_of(kernel, dtype, width: int) -> dict:
    """What stands for the functions of this file that a kernel calls, by their names."""
    used = names_of(kernel.py_func)
    ways = zip(NAMES, WAYS[dtype == BF16.dtype, width], strict=True)
    return {name: way for name, way in ways if name in used}


@cache
def suited(kernel, dtype, width: int, cluster: int, threads: int):
    """The kernel's copy for images of a type, so many neighbours at once, clusters of so many blocks, and blocks of so
    many threads, to each of which it leaves enough registers.

    It has the constants `WIDTH`, `ELEMENT` and `CLUSTER`.
    """
    in_clusters = cuda.jit(cluster=cluster, launch_bounds=threads)(kernel.py_func)
    return specialise(in_clusters, WIDTH=width, ELEMENT=dtype.type, CLUSTER=cluster, **ways_of(kernel, dtype, width))

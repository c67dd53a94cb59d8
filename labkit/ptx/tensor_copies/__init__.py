"""Copies of whole tiles by the Tensor Memory Accelerator (TMA): one thread asks, the copy engine does it.

A `TensorMap` describes an array in global memory and the box of it that one copy moves. In shared memory the rows of
a box, 128 bytes each, lie one after the other, and the 16-byte pieces of a row are *swizzled*: piece p of row r lies
where piece p ^ (r % 8) would. So eight rows of one column lie in different banks. Tiles begin at multiples of 1024
bytes. What a box has outside of the array is zeros; a store leaves it out. (PTX ISA, "Tensors"; CUDA driver API,
cuTensorMapEncodeTiled; compute capability 9.0.)
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.tensor_copies import on_lanes
from labkit.simulator.instruction import Plain
from labkit.simulator.tensor_maps import BoxedArray

__all__ = [
    "TensorMap",
    "tma_load",
    "tma_load_multicast",
    "tma_prefetch",
    "tma_store",
    "tma_store_commit",
    "tma_store_wait",
]

HOPPER = (9, 0)


class TensorMap(BoxedArray):
    """An array in global memory and the box of it that one copy moves; an argument of a kernel.

    In the outputs of `labkit.simulate` the array stands in its place.

    Parameters
    ----------
    array
        A device array, or without a GPU a NumPy array; its rows begin at multiples of 16 bytes.
    box
        How many elements a box has along each axis, at most 256; 128 bytes along the last.
    to_tf32
        Whether loads round float32 elements to TF32, to the nearest; the tensor cores themselves cut them off.

    Raises
    ------
    TypeError
        The array is none, or holds what the copy engine does not move, or the box is no tuple of whole numbers.
    ValueError
        The array or the box is none that the copy engine takes.
    """

    def __init__(self, array, box: tuple[int, ...], to_tf32: bool = False):
        super().__init__(array, box, to_tf32)

    @property
    def _numba_type_(self):
        from labkit.ptx.tensor_copies.on_gpu import TensorMapType

        return TensorMapType(len(self.box))


@instruction(on_lanes.LoadCall(), needs=HOPPER)
def tma_load(tile, index, tensor_map, place, barriers, i):
    """One thread begins the copy of a box to a shared array; it counts its bytes on `barriers[i]` when it is done.

    Parameters
    ----------
    tile, index
        The shared array, and where in it the box goes.
    tensor_map
        A `TensorMap`, an argument of the kernel.
    place
        Where the box begins in the array, an index for each axis: (row, column) of a matrix.
    barriers, i
        The mbarrier, whose phase expects the box's bytes: `mbarrier_expect`.
    """


@instruction(on_lanes.LoadCall(multicast=True), needs=HOPPER)
def tma_load_multicast(tile, index, tensor_map, place, barriers, i, ctas):
    """As `tma_load`, to the same place in each block of the cluster whose bit is set in `ctas`; each has its own
    barrier, of the same index, on which the bytes are counted."""


@instruction(on_lanes.Prefetch(), needs=HOPPER)
def tma_prefetch(tensor_map):
    """Begins to fetch the map itself, so that the first copy by it need not wait for that."""


@instruction(on_lanes.StoreCall(), needs=HOPPER)
def tma_store(tensor_map, place, tile, index):
    """One thread begins the copy of a box from a shared array; `fence_async` by the writers comes before."""


@instruction(Plain(on_lanes.commit), needs=HOPPER)
def tma_store_commit():
    """Makes a group of the stores that this thread began since the last commit."""


@instruction(on_lanes.StoreWait(), needs=HOPPER)
def tma_store_wait(pending):
    """Waits until at most `pending` of this thread's groups still read shared memory; fixed at compile time."""

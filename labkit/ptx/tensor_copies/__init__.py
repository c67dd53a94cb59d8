"""Copies of whole tiles by the Tensor Memory Accelerator (TMA): one thread asks, the copy engine does it.

A `TensorMap` describes an array in global memory and the box of it that one copy moves. In shared memory the rows of
a box, 128 bytes each, lie one after the other, and the 16-byte pieces of a row are *swizzled*: piece p of row r lies
where piece p ^ (r % 8) would. So eight rows of one column lie in different banks. Rows of 64 or 32 bytes lie two or
four to a line of 128, and all pieces of line l are swizzled alike: by l % 4, or l % 2. Tiles begin at multiples of 1024
bytes. What a box has outside of the array is zeros; a store leaves it out. (PTX ISA, "Tensors"; CUDA driver API,
cuTensorMapEncodeTiled; compute capability 9.0.)

A `PixelMap` describes images instead, and how the windows of a convolution lie on them. The rows of a tile are then
pixels: of windows that follow one another, each the one at the same place in its window. ("im2col mode" in the PTX ISA;
cuTensorMapEncodeIm2col.)

Without a map the engine moves elements that lie one after the other, as `tma_add` does.
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.tensor_copies import on_lanes
from labkit.ptx.tensor_copies.on_lanes import TENSOR_COPIES
from labkit.simulator.instruction import Plain
from labkit.simulator.tensor_maps import BoxedArray, WindowedImages

__all__ = [
    "PixelMap",
    "TensorMap",
    "tma_add",
    "tma_load",
    "tma_load_multicast",
    "tma_load_pixels",
    "tma_load_pixels_multicast",
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
        How many elements a box has along each axis, at most 256; 32, 64 or 128 bytes along the last.
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
        from labkit.ptx.tensor_copies.map_types import TensorMapType

        return TensorMapType(len(self.box))


class PixelMap(WindowedImages):
    """Images in global memory and the windows of a convolution on them; an argument of a kernel.

    The windows of an image follow one another in the order of the convolution's outputs. The corner of window (p, q)
    lies at row `p * stride_h - top` and column `q * stride_w - left`; after the last q of a row of windows comes the
    first of the next row, and after the last row of an image the first of the next image. There are as many as the
    convolution has outputs: `(H + top + bottom - (R - 1) * dilation_h - 1) // stride_h + 1` of them down, and across
    alike. To the copy engine they are the corners of a box, from row -top to before row
    `H + bottom - (R - 1) * dilation_h`, over which it walks in steps of the strides; at the end of a row it goes back
    to the box's left side, at the end of an image to its top. The place of a pixel in its window moves all of the box.

    Pixels outside of their image are zeros, as are those beyond the last image and the channels beyond the last; a
    barrier counts their bytes as well. In the outputs of `labkit.simulate` the images stand in the map's place.

    Parameters
    ----------
    images
        A device array of shape N x H x W x C, or without a GPU a NumPy array; its rows, of C elements, begin at
        multiples of 16 bytes.
    pixels
        How many windows have a pixel in one copy, at most 1024: the rows of a tile.
    channels
        How many of a pixel's elements a copy brings: 128 bytes.
    top, left, bottom, right
        How far windows reach beyond the image on each side: the padding.
    R, S
        The height and the width of a window, in pixels of the filter.
    stride_h, stride_w
        From one window to the next, down and across, 1 to 8.
    dilation_h, dilation_w
        From one pixel of a window to the next, down and across.
    to_tf32
        Whether loads round float32 elements to TF32, to the nearest; the tensor cores themselves cut them off.

    Raises
    ------
    TypeError
        The images are no array, or hold what the copy engine does not move, or a size is no whole number.
    ValueError
        The images or the windows are none that the copy engine takes.
    """

    def __init__(
        self, images, pixels: int, channels: int, top: int, left: int, bottom: int, right: int, R: int, S: int,
        stride_h: int = 1, stride_w: int = 1, dilation_h: int = 1, dilation_w: int = 1, to_tf32: bool = False,
    ):  # fmt: skip
        padding = top, left, bottom, right
        steps, dilation = (stride_h, stride_w), (dilation_h, dilation_w)
        super().__init__(images, pixels, channels, padding, (R, S), steps, dilation, to_tf32)

    @property
    def _numba_type_(self):
        from labkit.ptx.tensor_copies.map_types import PixelMapType

        return PixelMapType()


@instruction(on_lanes.LoadCall(), needs=HOPPER, family=TENSOR_COPIES)
def tma_load(tile, index, tensor_map, place, barriers, i):
    """One thread begins the copy of a box to a shared array; it counts its bytes on `barriers[i]` when it is done.

    Parameters
    ----------
    tile, index
        The shared array, and where in it the box goes.
    tensor_map
        A `TensorMap`, an argument of the kernel.
    place
        Where the box begins in the array, an index for each axis: (row, column) of a matrix. The last one is a
        multiple of 16 bytes; a box may reach, or lie, outside of the array.
    barriers, i
        The mbarrier, whose phase expects the box's bytes: `mbarrier_expect`.
    """


@instruction(on_lanes.LoadCall(multicast=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_load_multicast(tile, index, tensor_map, place, barriers, i, ctas):
    """As `tma_load`, to the same place in each block of the cluster whose bit is set in `ctas`; each has its own
    barrier, of the same index, on which the bytes are counted."""


@instruction(on_lanes.LoadCall(of_pixels=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_load_pixels(tile, index, pixel_map, place, offset, barriers, i):
    """One thread begins the copy of a pixel of each of the windows from one on to a shared array, as `tma_load`.

    Parameters
    ----------
    tile, index
        The shared array, and where in it the tile goes.
    pixel_map
        A `PixelMap`, an argument of the kernel.
    place
        (n, h, w, c): the image of the first window, the row and the column of its corner in the image, which is that of
        a window there, and the first channel.
    offset
        (r * dilation_h, s * dilation_w): where in each window the pixel lies, down and across, from 0 to 255.
    barriers, i
        The mbarrier, whose phase expects the bytes of the whole tile: 128 for each pixel.
    """


@instruction(on_lanes.LoadCall(of_pixels=True, multicast=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_load_pixels_multicast(tile, index, pixel_map, place, offset, barriers, i, ctas):
    """As `tma_load_pixels`, to each block of the cluster whose bit is set in `ctas`, as `tma_load_multicast`."""


@instruction(on_lanes.Prefetch(), needs=HOPPER)
def tma_prefetch(tensor_map):
    """Begins to fetch the map itself, so that the first copy by it need not wait for that."""


@instruction(on_lanes.StoreCall(), needs=HOPPER, family=TENSOR_COPIES)
def tma_store(tensor_map, place, tile, index):
    """One thread begins the copy of a box from a shared array; `fence_async` by the writers comes before."""


@instruction(on_lanes.AddCall(), needs=HOPPER, family=TENSOR_COPIES)
def tma_add(array, index, tile, tile_index, count):
    """One thread begins to add elements of a shared array to a global one; `fence_async` by the writers comes before.

    Each element changes at once, as by an atomic, in an order that nobody knows; later launches find the sums. The
    thread commits it and waits for it as for a store. (PTX ISA, "cp.reduce.async.bulk".)

    Parameters
    ----------
    array, index
        The global array, of float32, and where in it the sums begin, along the last axis.
    tile, tile_index
        The shared array, and where in it the numbers begin.
    count
        How many there are, a multiple of 4, fixed when the kernel is compiled; both places lie at multiples of 16
        bytes.
    """


@instruction(Plain(on_lanes.commit), needs=HOPPER, family=TENSOR_COPIES)
def tma_store_commit():
    """Makes a group of the stores and additions that this thread began since the last commit."""


@instruction(on_lanes.StoreWait(), needs=HOPPER, family=TENSOR_COPIES)
def tma_store_wait(pending):
    """Waits until at most `pending` of this thread's groups still read shared memory; fixed at compile time."""

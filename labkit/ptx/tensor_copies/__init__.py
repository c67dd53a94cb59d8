"""Copies of whole tiles by the Tensor Memory Accelerator (TMA), issued by one thread.

A `TensorMap` describes an array in global memory and the box of it that one copy moves. In shared memory the rows of a
box, 128 bytes each, are contiguous, and their 16-byte vectors are *swizzled*: vector p of row r is stored at position
p ^ (r % 8). So eight rows of one column are in different banks. Rows of 64 or 32 bytes share a line of 128 bytes by
twos or fours, and line l is swizzled by l % 4 or l % 2. Tiles begin at multiples of 1024 bytes. Elements of a box
outside of the array are loaded as zeros and not stored. (PTX ISA, "Tensors"; CUDA driver API, cuTensorMapEncodeTiled;
compute capability 9.0.)

A `PixelMap` describes images and the windows of a convolution on them. The rows of a tile are then pixels of
consecutive windows, at the same offset in each. ("im2col mode" in the PTX ISA; cuTensorMapEncodeIm2col.)

Without a map TMA moves contiguous elements, as `tma_add` does.
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
    "tma_store_pixels",
    "tma_store_wait",
]

HOPPER = (9, 0)


class TensorMap(BoxedArray):
    """An array in global memory and the box of it that one copy moves; an argument of a kernel.

    The outputs of `labkit.simulate` have the array instead.

    Parameters
    ----------
    array
        Device array, or NumPy array without a GPU; its rows begin at multiples of 16 bytes.
    box
        Elements of a box along each axis, at most 256; 32, 64 or 128 bytes along the last.
    to_tf32
        Whether loads round float32 elements to the nearest TF32, which the tensor cores would truncate.

    Raises
    ------
    TypeError
        `array` is not an array or has an unsupported type, or the box is not a tuple of integers.
    ValueError
        The shape or alignment of the array, or the box, is not supported.
    """

    def __init__(self, array, box: tuple[int, ...], to_tf32: bool = False):
        super().__init__(array, box, to_tf32)

    @property
    def _numba_type_(self):
        from labkit.ptx.tensor_copies.map_types import TensorMapType

        return TensorMapType(len(self.box))


class PixelMap(WindowedImages):
    """Images in global memory and the windows of a convolution on them; an argument of a kernel.

    Windows are in the order of the convolution's outputs. The corner of window (p, q) is at row `p * stride_h - top`
    and column `q * stride_w - left`; the next row of windows follows the last q, the next image the last row. There are
    `(H + top + bottom - (R - 1) * dilation_h - 1) // stride_h + 1` rows of windows, and columns likewise. TMA treats
    them as the corners of a box, from row -top to before row `H + bottom - (R - 1) * dilation_h`, over which it moves
    by the strides; at the end of a row it returns to the box's left side, at the end of an image to its top. A pixel's
    offset in its window shifts the whole box.

    Pixels outside of their image, images past the last and channels past the last are zeros, whose bytes a barrier
    counts as well. The outputs of `labkit.simulate` have the images instead of the map.

    Parameters
    ----------
    images
        Device array of shape N x H x W x C, or NumPy array without a GPU; its rows, of C elements, begin at multiples
        of 16 bytes.
    pixels
        Pixels per copy, one per window, at most 1024: the rows of a tile.
    channels
        Elements of a pixel per copy: 128 bytes.
    top, left, bottom, right
        Padding of the image on each side.
    R, S
        Height and width of a window, in pixels of the filter.
    stride_h, stride_w
        Vertical and horizontal distance of windows, 1 to 8.
    dilation_h, dilation_w
        Vertical and horizontal distance of a window's pixels.
    to_tf32
        Whether loads round float32 elements to the nearest TF32, which the tensor cores would truncate.

    Raises
    ------
    TypeError
        `images` is not an array or has an unsupported type, or a size is not an integer.
    ValueError
        The shape or alignment of the images, or the windows, are not supported.
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
    """Begin the copy of a box to a shared array, by one thread; its bytes are counted on `barriers[i]` when done.

    Parameters
    ----------
    tile, index
        Shared array, and index of the tile.
    tensor_map
        A `TensorMap`, an argument of the kernel.
    place
        Coordinates of the box in the array, one per axis: (row, column) of a matrix. The last one is a multiple of 16
        bytes; a box may be partly or entirely outside of the array.
    barriers, i
        The mbarrier, whose phase expects the box's bytes: `mbarrier_expect`.
    """


@instruction(on_lanes.LoadCall(multicast=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_load_multicast(tile, index, tensor_map, place, barriers, i, ctas):
    """Begin a `tma_load` to the same place in each block of the cluster whose bit is set in `ctas`.

    The bytes are counted on each block's own barrier of the same index.
    """


@instruction(on_lanes.LoadCall(of_pixels=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_load_pixels(tile, index, pixel_map, place, offset, barriers, i):
    """Begin the copy of one pixel of each of consecutive windows to a shared array, by one thread; see `tma_load`.

    Parameters
    ----------
    tile, index
        Shared array, and index of the tile.
    pixel_map
        A `PixelMap`, an argument of the kernel.
    place
        (n, h, w, c): image of the first window, row and column of its corner, which must be a window's corner, and
        first channel.
    offset
        (r * dilation_h, s * dilation_w): vertical and horizontal offset of the pixel in each window, 0 to 255.
    barriers, i
        The mbarrier, whose phase expects the bytes of the whole tile: 128 per pixel.
    """


@instruction(on_lanes.LoadCall(of_pixels=True, multicast=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_load_pixels_multicast(tile, index, pixel_map, place, offset, barriers, i, ctas):
    """Begin a `tma_load_pixels` to each block of the cluster whose bit is set in `ctas`; see `tma_load_multicast`."""


@instruction(on_lanes.Prefetch(), needs=HOPPER)
def tma_prefetch(tensor_map):
    """Prefetch a map, so that its first copy need not wait for it."""


@instruction(on_lanes.StoreCall(), needs=HOPPER, family=TENSOR_COPIES)
def tma_store(tensor_map, place, tile, index):
    """Begin the copy of a box from a shared array, by one thread, after a `fence_async` by the writers."""


@instruction(on_lanes.StoreCall(of_pixels=True), needs=HOPPER, family=TENSOR_COPIES)
def tma_store_pixels(pixel_map, place, tile, index):
    """Begin the copy of one pixel of each of consecutive windows from a shared array, by one thread; see `tma_store`.

    `place` is that of the first window's corner, which is also its pixel: (n, h, w, c), as for `tma_load_pixels`.
    """


@instruction(on_lanes.AddCall(), needs=HOPPER, family=TENSOR_COPIES)
def tma_add(array, index, tile, tile_index, count):
    """Begin to add elements of a shared array to a global one, by one thread, after a `fence_async` by the writers.

    Each element is updated atomically, in undefined order; later launches see the sums. The thread commits and waits as
    for a store. (PTX ISA, "cp.reduce.async.bulk".)

    Parameters
    ----------
    array, index
        Global float32 array, and index of the first sum, along the last axis.
    tile, tile_index
        Shared array, and index of the first number.
    count
        Number of elements, a multiple of 4 and a compile-time constant; both addresses are multiples of 16 bytes.
    """


@instruction(Plain(on_lanes.commit), needs=HOPPER, family=TENSOR_COPIES)
def tma_store_commit():
    """Close the group of this thread's stores and additions since the last commit."""


@instruction(on_lanes.StoreWait(), needs=HOPPER, family=TENSOR_COPIES)
def tma_store_wait(pending):
    """Wait until at most `pending` of this thread's groups still read shared memory; a compile-time constant."""

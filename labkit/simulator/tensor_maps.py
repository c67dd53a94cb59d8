"""An array and the box of it that one TMA copy moves, as an argument of a kernel."""

from copy import copy
from numbers import Integral

ROW_BYTES = 32, 64, 128  # sizes of a box along the last axis
PIXEL_BYTES = 128  # copied per pixel
ALIGNMENT_BYTES = 16
MAX_AXES = 5
ELEMENT_BYTES = (1, 2, 4)


class BoxedArray:
    """A global array, and the elements of a box along each of its axes; 32, 64 or 128 bytes along the last.

    `to_tf32`: its float32 are rounded to TF32 as they are loaded.

    Raises
    ------
    TypeError
        The array is not one, or has a dtype that TMA does not move, or the box is not a tuple of whole numbers.
    ValueError
        TMA does not support the array or the box.
    """

    def __init__(self, array, box: tuple[int, ...], to_tf32: bool = False):
        _check_kind(array)
        if not isinstance(box, tuple) or not all(isinstance(n, Integral) for n in box):
            raise TypeError(f"a box is a tuple of whole numbers, one for each axis of the array, not {box!r}")
        _check_numbers(array)
        if (
            len(box) != len(array.shape)
            or box[-1] * array.dtype.itemsize not in ROW_BYTES
            or not _all_between(box, 1, 256)
        ):
            raise ValueError(
                "a box has at most 256 elements along each axis and 32, 64 or 128 bytes along the last, so that "
                f"{tuple(box)} of {array.dtype} is none for an array of {len(array.shape)} axes"
            )
        _check_memory(array, to_tf32)
        self.array, self.box, self.to_tf32 = array, tuple(int(n) for n in box), to_tf32

    @property
    def row_bytes(self) -> int:
        """Bytes per row of a box."""
        return self.box[-1] * self.array.dtype.itemsize

    def of(self, array) -> "BoxedArray":
        """Return boxes of the same size, of another array."""
        boxed = copy(self)
        boxed.array = array
        return boxed


class WindowedImages(BoxedArray):
    """Images N x H x W x C under the windows of a convolution; a box has one pixel of each of several windows.

    Attributes
    ----------
    box
        (pixels, channels): rows of a tile, and elements per row.
    first, steps, windows
        Down and across: beginning of the first window of an image, distance to the next, and their number.
    corners
        Corners of the windows as TMA takes them: the first from the image's beginning, the end of the last from its
        end.

    Raises
    ------
    TypeError
        The images are not an array, or have a dtype that TMA does not move, or a size is not a whole number.
    ValueError
        TMA does not support the images or the windows.
    """

    def __init__(self, images, pixels, channels, padding, filters, steps, dilation, to_tf32=False):
        """`padding`: top, left, bottom and right; the others are pairs, down and across."""
        _check_kind(images)
        sizes = (pixels, channels, *padding, *filters, *steps, *dilation)
        if not all(isinstance(n, Integral) for n in sizes):
            raise TypeError(f"the sizes of a pixel map are whole numbers, not {sizes}")
        _check_numbers(images)
        if len(images.shape) != 4:
            raise ValueError(f"a pixel map describes images of shape N x H x W x C, not an array of {images.shape}")
        if channels * images.dtype.itemsize != PIXEL_BYTES or not 1 <= pixels <= 1024:
            raise ValueError(
                f"a copy by a pixel map brings {PIXEL_BYTES} bytes of each of 1 to 1024 pixels, not {channels} "
                f"channels of {images.dtype} of {pixels}"
            )
        _check_memory(images, to_tf32)
        top, left, bottom, right = map(int, padding)
        reach = [(n - 1) * d for n, d in zip(filters, dilation, strict=True)]
        first, end = (-top, -left), (bottom - reach[0], right - reach[1])
        if not (
            _all_between(steps, 1, 8) and _all_between((*filters, *dilation), 1, 256) and _all_between(reach, 0, 255)
        ):
            raise ValueError(
                "windows that TMA takes are 1 to 8 pixels apart, and their first and last pixel at most "
                f"255, not a filter of {tuple(filters)} with strides {tuple(steps)} and dilations {tuple(dilation)}"
            )
        if not _all_between((*first, *end), -128, 127):
            raise ValueError(
                "corners of windows lie -128 to 127 pixels from those of the image for TMA, not "
                f"{first} and {end}: use less padding or a smaller filter"
            )
        span = [size + e - f for size, f, e in zip(images.shape[1:3], first, end, strict=True)]
        if min(span) < 1:
            raise ValueError(f"a window is larger than an image of {images.shape[1:3]} with its padding")
        self.array, self.box, self.to_tf32 = images, (int(pixels), int(channels)), to_tf32
        self.first, self.steps, self.corners = first, tuple(map(int, steps)), (first, end)
        self.windows = tuple(-(-n // step) for n, step in zip(span, self.steps, strict=True))


def _all_between(numbers, least, most):
    return least <= min(numbers) and max(numbers) <= most


def _check_kind(array):
    if not all(hasattr(array, field) for field in ("shape", "dtype", "strides")):
        raise TypeError(
            f"a tensor map describes an array, not a {type(array).__name__}: use np.array or cuda.to_device"
        )


def _check_numbers(array):
    if array.dtype.kind not in "iuf" or array.dtype.itemsize not in ELEMENT_BYTES:
        raise TypeError(f"TMA moves numbers of 1, 2 or 4 bytes here, and the array holds {array.dtype}")
    if 0 in array.shape or not 1 <= len(array.shape) <= MAX_AXES:
        raise ValueError(
            f"an array under a tensor map has 1 to {MAX_AXES} axes and no empty one, not the shape {array.shape}"
        )


def _check_memory(array, to_tf32):
    *strides, last = array.strides
    if any(stride < 0 for stride in array.strides):
        raise ValueError("an array under a tensor map does not run backwards: pass a copy of it")
    if last != array.dtype.itemsize or any(stride % ALIGNMENT_BYTES for stride in strides):
        raise ValueError("the rows of an array under a tensor map begin at multiples of 16 bytes: pad them")
    if to_tf32 and array.dtype.itemsize != 4:
        raise ValueError(f"TF32 is made of elements of 4 bytes, and the array holds {array.dtype}: leave `to_tf32` out")

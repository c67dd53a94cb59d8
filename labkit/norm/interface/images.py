"""How arrays lie in memory: images channel after channel or pixel after pixel."""

from math import prod

from labkit.arrays.element_types import dtype_of
from labkit.arrays.operands import strides_of
from labkit.arrays.views import as_strided
from labkit.layout import c_strides, is_in_c_order
from labkit.norm.images import Layout


def sizes(shape: tuple[int, ...], layout: Layout) -> tuple[int, int, int, int]:
    """N, C, H, W of images; pixels along another number of axes than two count as one row."""
    N, *others = shape
    C = others.pop(0 if layout == "NCHW" else -1)
    H, W = others if len(others) == 2 else (1, prod(others))
    return N, C, H, W


def orders(X, layout: Layout) -> list[Layout]:
    """The layouts in whose order the elements of images follow one another; the better one first if that is both.

    Where an image has a single pixel, values of a channel lie apart in either layout, and are read side by side as
    NHWC has them.
    """
    axes = len(X.shape)
    of_pixels = list(range(2, axes)) if layout == "NCHW" else list(range(1, axes - 1))
    channel = 1 if layout == "NCHW" else axes - 1
    ways = {"NCHW": [0, channel, *of_pixels], "NHWC": [0, *of_pixels, channel]}
    one_pixel = prod(X.shape[axis] for axis in of_pixels) == 1
    return [name for name in sorted(ways, reverse=one_pixel) if _is_in_order(X, ways[name])]


def as_images(X, layout: Layout, order: Layout):
    """The memory of images of a layout, whose elements follow one another in some order, with four axes of that."""
    N, C, H, W = sizes(tuple(X.shape), layout)
    shape = (N, C, H, W) if order == "NCHW" else (N, H, W, C)
    return as_strided(X, shape, tuple(stride * X.dtype.itemsize for stride in c_strides(shape)))


def _is_in_order(X, axes):
    strides = strides_of(X)
    return is_in_c_order(
        tuple(X.shape[axis] for axis in axes), tuple(strides[axis] for axis in axes), dtype_of(X).itemsize
    )

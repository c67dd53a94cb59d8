"""Memory layouts of images: elements in the order of NCHW or of NHWC."""

from math import prod

from labkit.arrays.element_types import dtype_of
from labkit.arrays.operands import strides_of
from labkit.arrays.views import as_strided
from labkit.layout import c_strides, is_in_c_order
from labkit.norm.images import Layout


def image_sizes(shape: tuple[int, ...], layout: Layout) -> tuple[int, int, int, int]:
    """Return N, C, H, W of images; if the pixels do not have two axes, they count as one row."""
    N, *others = shape
    C = others.pop(0 if layout == "NCHW" else -1)
    H, W = others if len(others) == 2 else (1, prod(others))
    return N, C, H, W


def memory_layouts(X, layout: Layout) -> list[Layout]:
    """Return the layouts in whose order the elements of images are stored without gaps, the better one first.

    Both fit images of one pixel: NHWC comes first, since kernels then read the values of neighbouring channels at once.
    """
    axes = len(X.shape)
    pixel_axes = list(range(2, axes)) if layout == "NCHW" else list(range(1, axes - 1))
    channel = 1 if layout == "NCHW" else axes - 1
    orders = {"NCHW": [0, channel, *pixel_axes], "NHWC": [0, *pixel_axes, channel]}
    has_one_pixel = prod(X.shape[axis] for axis in pixel_axes) == 1
    return [name for name in sorted(orders, reverse=has_one_pixel) if _is_in_order(X, orders[name])]


def as_images(X, layout: Layout, order: Layout):
    """View the memory of images, which is in the order of a layout, with the four axes of that layout."""
    N, C, H, W = image_sizes(tuple(X.shape), layout)
    shape = (N, C, H, W) if order == "NCHW" else (N, H, W, C)
    return as_strided(X, shape, tuple(stride * X.dtype.itemsize for stride in c_strides(shape)))


def _is_in_order(X, axes):
    strides = strides_of(X)
    shape = tuple(X.shape[axis] for axis in axes)
    return is_in_c_order(shape, tuple(strides[axis] for axis in axes), dtype_of(X).itemsize)

"""Layouts, against the addresses that NumPy itself gives."""

import numpy as np
import pytest

from labkit.layout import c_strides, element_offsets, elements_at_offsets

CUBE = np.arange(4 * 6 * 5, dtype=np.int32).reshape(4, 6, 5)
LAYOUTS = {
    "C order": CUBE,
    "Fortran order": np.asfortranarray(CUBE),
    "turned": CUBE.transpose(1, 2, 0),
    "one axis backwards": CUBE[:, ::-1],
    "the first axis backwards": CUBE[::-1],
    "two backwards": CUBE[::-1, :, ::-2],
    "a window with steps": CUBE[1:, ::3, 1::2],
    "a column": CUBE[:, 2, 3],
    "one row": CUBE[2:3, 1],
    "turned and backwards": CUBE[:, ::-2].transpose(2, 0, 1),
    "no axis": CUBE[1, 2, 3, ...],
    "empty": CUBE[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_lie_where_numpy_has_them(layout):
    x = LAYOUTS[layout]
    numbers = np.arange(x.size)
    values = (element_offsets(numbers, x.shape, x.strides) + _first_byte(x)) // x.itemsize
    np.testing.assert_array_equal(x.ravel(), _memory(x)[values])
    np.testing.assert_array_equal(
        elements_at_offsets(element_offsets(numbers, x.shape, x.strides), x.shape, x.strides), numbers
    )


def _memory(x):
    """All the memory that the array is a part of."""
    whole = x if x.base is None else x.base
    return np.ravel(whole, order="K")


def _first_byte(x):
    whole = x if x.base is None else x.base
    return x.ctypes.data - whole.ctypes.data if x.size else 0


def test_elements_that_share_a_place_are_told_as_one():
    row = np.broadcast_to(np.arange(4), (3, 4))
    places = element_offsets(np.arange(12), row.shape, row.strides)
    np.testing.assert_array_equal(places, np.tile(np.arange(4) * 8, 3))
    np.testing.assert_array_equal(elements_at_offsets(places, row.shape, row.strides), np.tile(np.arange(4), 3))


def test_windows_that_overlap_share_their_places():
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(9), 4)
    places = element_offsets(np.arange(windows.size), windows.shape, windows.strides)
    told = elements_at_offsets(places, windows.shape, windows.strides)
    np.testing.assert_array_equal(windows.ravel()[told], windows.ravel())


@pytest.mark.parametrize("shape", [(), (5,), (3, 1, 4), (2, 0)])
def test_c_order_is_numpys(shape):
    x = np.zeros(shape, np.int8)
    assert x.size == 0 or c_strides(shape) == x.strides

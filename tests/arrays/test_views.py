"""Views of a GPU's memory, which stands here for the host's: they show what NumPy's own would."""

from types import SimpleNamespace

import numpy as np
import pytest

from labkit.arrays import views
from labkit.arrays.addresses import share_memory


class OnGpu:
    """An array as numba has it on a GPU, but for its memory."""

    def __init__(self, array):
        self.array, self.shape, self.strides, self.dtype = array, array.shape, array.strides, array.dtype
        self.__cuda_array_interface__ = array.__array_interface__


def seen(view):
    return np.asarray(SimpleNamespace(__array_interface__=view.__cuda_array_interface__))


BATCH = np.arange(2 * 6 * 8, dtype=np.uint16).reshape(2, 6, 8)
VIEWS = {
    "a matrix": (lambda X: views.select_matrix(X, 1), BATCH[1]),
    "turned": (views.transpose, BATCH.swapaxes(1, 2)),
    "rows of a turned matrix": (
        lambda X: views.slice_rows(views.transpose(views.select_matrix(X, 1)), 3, 4),
        BATCH[1].T[3:7],
    ),
    "a row": (lambda X: views.row(views.select_matrix(X, 1), 2), BATCH[1, 2]),
    "as a batch": (lambda X: views.as_batch(views.select_matrix(X, 1)), BATCH[1:]),
    "words": (lambda X: views.as_strided(X, (2, 6, 4), (96, 16, 4), np.uint32), BATCH.view(np.uint32)),
}


@pytest.mark.parametrize(("view", "expected"), VIEWS.values(), ids=VIEWS)
def test_a_view_shows_the_same_memory(view, expected):
    made = view(OnGpu(BATCH))
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(seen(made), expected)
    assert np.shares_memory(seen(made), BATCH)
    assert share_memory(made, OnGpu(BATCH))


@pytest.mark.parametrize(("view", "expected"), VIEWS.values(), ids=VIEWS)
def test_a_view_of_an_array_of_the_host_is_one(view, expected):
    rest = BATCH[1:].reshape(1, 48)  # begins within another array's memory
    assert np.shares_memory(views.as_strided(rest, (6, 8), (16, 2)), BATCH)
    np.testing.assert_array_equal(views.as_strided(rest, (6, 7), (16, 2), begin_byte=2), BATCH[1, :, 1:])
    made = view(BATCH)
    assert isinstance(made, np.ndarray) and np.shares_memory(made, BATCH)
    np.testing.assert_array_equal(made, expected)


def test_strides_that_follow_from_the_shape_are_left_out():
    """As numba does, whose kernels for arrays in C order are other ones."""
    whole = views.as_strided(OnGpu(BATCH), (12, 8), (16, 2))
    assert whole.__cuda_array_interface__["strides"] is None
    assert views.transpose(whole).__cuda_array_interface__["strides"] == (2, 16)


def test_memory_is_found_of_an_array_that_keeps_its_axes_in_another_order():
    """As `astype` leaves it: an array of its own, in no order of C or Fortran."""
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).swapaxes(1, 2).astype(np.float32)
    assert x.base is None and not x.flags.c_contiguous
    turned = views.as_strided(x, (2, 3, 4, 5), tuple(x.strides[axis] for axis in (0, 2, 1, 3)))
    assert np.shares_memory(turned, x) and np.array_equal(turned, x.swapaxes(1, 2))


def test_all_memory_of_an_array_is_a_vector():
    x = np.arange(24).reshape(4, 6)
    for part in (x, x.T, x[1:, 2:], x[::-1], x[::2, ::3]):
        vector, first = views.flatten_memory(part)
        row, col = (stride // x.itemsize for stride in part.strides)
        found = [[vector[first + i * row + j * col] for j in range(part.shape[1])] for i in range(part.shape[0])]
        assert np.array_equal(found, part)
        assert vector.size == part.max() - part.min() + 1

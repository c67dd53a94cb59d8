"""Where numbers lie in each layout, held against strides by hand."""

import numpy as np
import pytest

from labkit.views import memory_order
from labkit.views.base import unpack


@pytest.fixture(scope="module")
def view():
    return memory_order(8, 2, 3)


def test_orders_are_those_of_the_layouts(view):
    nchw, vectors, nhwc = unpack(view.data["orders"])
    x = np.arange(48).reshape(8, 2, 3)
    assert (nchw == np.arange(48)).all()
    assert (nhwc == x.transpose(1, 2, 0).ravel()).all()
    assert (vectors == x.reshape(2, 4, 2, 3).transpose(0, 2, 3, 1).ravel()).all()


def test_steps_mark_rows_of_channels_and_then_pixels(view):
    marked, values = unpack(view.data["marked"]), view.data["stats"]["values"]
    assert len(marked) == len(view.data["say"]) == 8 * 2 + 2 * 3
    assert marked[5].tolist()[:3] == [15, 16, 17] and marked[-1].tolist() == [5 + 6 * c for c in range(8)]
    assert values[5] == [1, 3, 3], "a row of a channel is contiguous in NCHW only"
    assert values[-1] == [8, 2, 1], "a pixel is contiguous in NHWC, and in two vectors of 4"
    assert "**side by side** in NCHW" in view.data["say"][5] and "8 apart in NHWC" in view.data["say"][5]
    assert view.data["say"][-1].startswith("All channels of the pixel in row 1, column 2: 8 numbers")


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "order.svg", step=18)
    assert (tmp_path / "order.svg").stat().st_size > 5000
    for sizes in ((6, 2, 3), (8, 4, 4)):
        with pytest.raises(ValueError, match="at most 64 elements, and whole vectors of 4"):
            memory_order(*sizes)

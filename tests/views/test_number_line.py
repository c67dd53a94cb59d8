"""The number line marks numbers that the formats have, and errors that rounding makes."""

import numpy as np
import pytest

from labkit import formats
from labkit.views import number_line


@pytest.fixture(scope="module")
def view():
    fp8 = formats.E4M3.decode(np.arange(256, dtype=np.uint8)).astype(np.float64)
    half = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float64)
    return number_line({"float16": half[np.isfinite(half)], "fp8": fp8[np.isfinite(fp8)]})


def test_formats_have_as_many_steps_between_1_and_2_as_their_fraction_has_values(view):
    assert [shown["ticks"]["shape"][0] - 1 for shown in view.data["formats"]] == [2**10, 2**3]


def test_the_nearest_numbers_are_what_rounding_gives(view):
    half, fp8 = view.data["formats"]
    for n, x in enumerate(view.data["targets"]):
        assert half["nearest"][n] == pytest.approx(float(np.float16(x)), abs=2**-11)
        assert abs(fp8["nearest"][n] - x) <= 2**-4
    assert fp8["nearest"][14] == 1.25
    assert view.data["say"][14].startswith("The value 1.2917, rounded to the nearest number of each format, is off in ")
    assert view.data["say"][14].endswith("float16 by **0.025%**, in fp8 by **3.2%**.")


def test_ranges_go_from_the_smallest_number_above_0_to_the_largest(view):
    assert [shown["words"] for shown in view.data["formats"]] == ["6e-08 to 6.55e+04", "0.002 to 448"]
    assert len(view.data["table"]["rows"]) == len(view.data["targets"])


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "line.svg", step=20)
    assert (tmp_path / "line.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match="all numbers of each format"):
        number_line({"none": np.zeros(4)})

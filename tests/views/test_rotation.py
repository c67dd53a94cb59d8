"""A rotation of outliers: its picture, drawn from a small study."""

import numpy as np
import pytest

from labkit import attention
from labkit.views import rotation
from labkit.views.base import unpack


@pytest.fixture(scope="module")
def small():
    return attention.rotation_study(length=128, head_dim=64)


def test_the_picture_shows_the_row_at_each_stage(small):
    view = rotation(*small)
    row, off = unpack(view.data["row"]), unpack(view.data["off"])
    assert row == pytest.approx(small.row, rel=1e-6) and off == pytest.approx(small.rounded - small.row, abs=1e-6)
    assert view.data["say"][0].startswith("A row of K as it is: its largest element is ")
    share = (off[0] ** 2).max() / (off[0] ** 2).sum()
    assert f"**{share:.0%} of the squared rounding error** comes from one element" in view.data["say"][0]
    assert "spread over 64 elements" in view.data["say"][6]
    assert [stat[0] for stat in view.data["stats"]["values"]] == [f"{x:.1f}" for x in np.abs(small.row).max(1)]


def test_a_still_picture_and_what_is_refused(small, tmp_path):
    view = rotation(*small)
    for step in (0, 6):
        view.save_png(tmp_path / "rotation.svg", step=step)
        assert (tmp_path / "rotation.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match="errors for each stage"):
        rotation(small.row, small.rounded, {"all": [0.1]}, small.errors)
    with pytest.raises(ValueError, match="a value for each stage"):
        rotation(*small[:3], {"one": [0.1]})

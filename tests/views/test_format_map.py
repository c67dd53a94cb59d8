"""The map of formats: each cell is the ratio of two predictions of the package."""

import pytest

from labkit import conv
from labkit.conv.problem import ForwardNHWC
from labkit.views import format_map
from labkit.views.base import unpack


@pytest.fixture(scope="module")
def view():
    return format_map(size=14, taps=(1, 3), channels=(64, 3), batches=(1, 64, 128))


def test_a_cell_divides_the_best_predictions(view):
    sizes = 64, 3, 14, 14, 128, 3, 3, 1, 1, 1, 1, 1, 1
    float32 = min(row.time_ms for row in conv.heuristic(conv.Forward(*sizes)) if not row.reason)
    bfloat16 = min(row.time_ms for row in conv.heuristic(ForwardNHWC(*sizes), "bfloat16") if not row.reason)
    assert unpack(view.data["factors"])[1, 1, 1] == pytest.approx(float32 / bfloat16, rel=1e-5)
    (row,) = [row for row in view.data["table"]["rows"] if row[:3] == [64, 3, "3 x 3"]]
    assert row[5] == "tensor/persistent" and float(row[7]) == pytest.approx(float32 / bfloat16, abs=0.01)


def test_cells_are_counted(view):
    for step, factors in enumerate(unpack(view.data["factors"])):
        faster = int((factors > 1).sum())
        assert view.data["numbers"][step][0] == f"{faster} of 4"
        assert f"in **{faster} of 4** cells, {factors.min():.2f}x to {factors.max():.1f}x." in view.data["say"][step]
    assert view.data["say"][0].startswith("1 image: ") and view.data["say"][1].startswith("64 images: ")
    assert view.data["start"] == 1


def test_a_still_picture(view, tmp_path):
    view.save_png(tmp_path / "formats.png", step=0)
    assert (tmp_path / "formats.png").stat().st_size > 5000

"""The sectors of a warp in each layout, held against counts by hand and against those of the runs."""

import numpy as np
import pytest

from labkit import layouts
from labkit.views import sectors
from labkit.views.base import unpack
from labkit.views.sectors import LAYOUTS, LOADS, PIXELS, READS, SHIFTS, count_sectors, loads_of, simulate_reads

ALONG_W, ALONG_C, TILE = range(3)


@pytest.fixture(scope="module")
def view():
    return sectors()


def totals(view, channels, itemsize, layout, way, first=0):
    """Sectors load by load, different ones, and bytes used."""
    data = view.data
    place = data["channels"].index(channels), data["itemsizes"].index(itemsize), list(LAYOUTS).index(layout)
    return unpack(data["totals"])[*place, way, first].tolist()


@pytest.mark.parametrize("channels, itemsize, vector", [(3, 4, 4), (64, 2, 1), (64, 1, 32), (8, 4, 8), (5, 2, 32)])
def test_the_sectors_are_those_that_the_run_counted(channels, itemsize, vector):
    trace = simulate_reads(channels, itemsize, vector)
    (of_x,) = [found for found in trace.sites if (found.site.array, found.site.kind) == ("x", "load")]
    lanes = loads_of(trace)
    assert count_sectors(lanes, itemsize)[..., 0].sum() == of_x.sectors
    assert (lanes >= 0).sum() == of_x.accesses
    assert trace.array("x").base_address % 32 == 0 and not trace.errors


def test_each_lane_reads_its_element_in_every_layout():
    """Element by element, what a layout of the package holds at the place."""
    channels = 3
    numbers = np.arange(channels * PIXELS, dtype=np.int32).reshape(1, channels, 1, PIXELS)
    for layout, vector in (("NCHW", 1), ("NCHW_VECT_C", 4), ("NCHW_VECT_C", 32), ("NHWC", channels)):
        conversion = layouts.Conversion(1, channels, 1, PIXELS, "NCHW", layout, max(vector, 4))
        held = conversion.oracle(numbers).ravel()
        lanes = loads_of(simulate_reads(channels, 4, vector))
        for first in range(SHIFTS):
            k, lane = np.nonzero(lanes[ALONG_W, first] >= 0)
            assert (held[lanes[ALONG_W, first][k, lane]] == k * PIXELS + first + lane).all()
            assert set(k) == set(range(channels)), "a channel a load"
            got = held[lanes[TILE, first][lanes[TILE, first] >= 0]]
            assert sorted(got) == [c * PIXELS + first + p for c in range(channels) for p in range(16)]
            along_c = held[lanes[ALONG_C, first][lanes[ALONG_C, first] >= 0]]
            whole = [c * PIXELS + p for p in range(first, PIXELS) for c in range(channels)]
            assert along_c.tolist() == whole[: 32 * LOADS]


def test_counts_by_hand(view):
    # 8 channels of 32 pixels: 4 sectors each where neighbours lie together, 32 where 64 channels lie between
    assert totals(view, 64, 4, "NCHW", ALONG_W) == [32, 32, 8 * 128]
    assert totals(view, 64, 4, "NHWC", ALONG_W) == [8 * 32, 32, 8 * 128]
    assert totals(view, 64, 4, "NHWC", ALONG_C) == [32, 32, 8 * 128]
    assert totals(view, 64, 4, "NCHW", ALONG_C) == [256, 64, 8 * 128]
    # one pixel further, 16 rows of 32 bytes straddle two sectors; pixels of 128 bytes stay where sectors begin
    assert totals(view, 64, 2, "NCHW", TILE, 1) == [32, 32, 512]
    assert totals(view, 64, 2, "NHWC", TILE, 1) == [16, 16, 512]
    # three channels: a vector of 32 is mostly zeros
    assert totals(view, 3, 2, "NCHW", TILE) == totals(view, 3, 2, "NHWC", TILE) == [3, 3, 96]
    assert totals(view, 3, 2, "NCHW_VECT_C 32", TILE) == [16, 16, 96]
    assert totals(view, 3, 4, "NCHW", ALONG_W) == [12, 12, 3 * 128]
    assert totals(view, 3, 4, "NHWC", ALONG_W) == [36, 12, 3 * 128]


def test_the_table_has_every_choice(view):
    data = view.data
    assert len(data["table"]["rows"]) == 7 * 3 * len(LAYOUTS) * len(READS) * SHIFTS
    row = [64, 2, READS[TILE], 1, "NCHW", 32, 32, 512, "50%"]
    assert row in data["table"]["rows"]
    assert "Load 1 of 8" in view.sentence


def test_the_elements_are_the_same_for_every_size(view):
    data = view.data
    shape = len(data["channels"]), len(LAYOUTS), len(READS), SHIFTS, LOADS, 32
    packed = unpack(data["loaded"]).reshape(shape)
    for vector, layout in ((1, 0), (4, 1)):
        assert (packed[1, layout] == loads_of(simulate_reads(3, 4, vector))).all()


def test_another_start(tmp_path):
    view = sectors(channels=(3, 8), itemsizes=(1, 2), start=(8, 1, TILE, 1))
    assert view.data["first"] == [1, 0, TILE, 1]
    view.save_png(tmp_path / "tile.png")
    assert sectors(channels=np.array([3, 64]), itemsizes=[2]).data["channels"] == [3, 64]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"channels": (3, 8)}, "start has 64 channels, which are not in channels: start with one of 3, 8"),
        ({"itemsizes": (4,)}, "start has elements of 2 bytes, which are not in itemsizes: start with one of 4"),
        ({"itemsizes": (2, 8)}, "elements of 8 bytes are not shown: take sizes of 1, 2, 4"),
        ({"channels": (0, 64)}, "0 channels are not shown: take whole numbers from 1 to 256"),
        ({"channels": (2000, 64)}, "2000 channels are not shown"),
        ({"channels": (3.5, 64)}, "3.5 channels are not shown"),
        ({"start": (64, 2, 5, 0)}, "start reads in way 5 from pixel 0: give a way from 0 to 2, and pixel 0 or 1"),
        ({"start": (64, 2, 0, 2)}, "start reads in way 0 from pixel 2"),
        ({"start": (64, 2)}, "start has 2 numbers: give channels, bytes, way to read and first pixel"),
    ],
)
def test_what_cannot_be_shown_is_told(given, why):
    with pytest.raises(ValueError, match=why):
        sectors(**given)


def test_a_still_picture(view, tmp_path):
    view.save_png(tmp_path / "sectors.png", step=3)
    assert (tmp_path / "sectors.png").stat().st_size > 5000

"""Which cases `make test` takes of long lists."""

from types import SimpleNamespace

import pytest
from sampling import WHOLE, beyond_sample, sampled

pytestmark = pytest.mark.skipif(WHOLE, reason="the long run takes all")


class Item:
    """A case of a test, with markers of these names and arguments."""

    path = "test_some.py"

    def __init__(self, name, **markers):
        self.originalname, self.markers = name, markers

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)

    def iter_markers(self, name):
        return (SimpleNamespace(args=(self.markers[one],)) for one in self.markers if one == name)


def test_a_sample_is_spread_evenly():
    assert sampled(range(10), 3) == [0, 3, 6]
    assert sampled(range(3), 10) == [0, 1, 2]


def test_of_a_test_with_a_marker_so_many_cases_stay():
    many, all_of_them = [Item("many", sample=2) for _ in range(6)], [Item("other") for _ in range(6)]
    assert beyond_sample(many + all_of_them) == {*many} - {many[0], many[3]}


def test_cases_for_a_gpu_take_no_place_of_others():
    here, there = [Item("one", sample=2) for _ in range(2)], [Item("one", sample=2, needs="gpu") for _ in range(2)]
    assert beyond_sample([here[0], there[0], here[1], there[1]]) == set()


def test_a_test_of_the_long_run_alone_is_left_out():
    once = Item("once", sample=0)
    assert beyond_sample([once]) == {once}

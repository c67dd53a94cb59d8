"""The compiled cache against one written plainly, and the shapes that make caches worth explaining."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from labkit.simulator.caches import dirty_sectors, make_cache, touch


class PlainCache:
    """The contract of `touch`, in dictionaries: the order of a set's keys is the order of use."""

    def __init__(self, sets, ways, sectors_per_line):
        self.sets = [{} for _ in range(sets)]
        self.ways, self.sectors_per_line = ways, sectors_per_line

    def touch(self, sector, write):
        line, offset = divmod(sector, self.sectors_per_line)
        held = self.sets[line % len(self.sets)]
        hit = line in held and offset in held[line]["valid"]
        evicted = 0
        if line not in held and len(held) == self.ways:
            evicted = len(held.pop(next(iter(held)))["dirty"])
        state = held.pop(line, {"valid": set(), "dirty": set()})
        state["valid"].add(offset)
        if write:
            state["dirty"].add(offset)
        held[line] = state
        return hit, evicted

    def dirty_sectors(self):
        return sum(len(state["dirty"]) for held in self.sets for state in held.values())


accesses = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.booleans()), max_size=200)


@settings(deadline=None, max_examples=500)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from([1, 2, 4, 8]), accesses)
def test_agrees_with_a_plain_cache(sets, ways, sectors_per_line, accesses):
    line_bytes = 32 * sectors_per_line
    cache = make_cache(sets * ways * line_bytes, ways, line_bytes, copies=2)
    plain = [PlainCache(sets, ways, sectors_per_line) for _ in range(2)]
    for copy, sector, write in accesses:
        assert touch(cache, copy, sector, write) == plain[copy].touch(sector, write)
    assert dirty_sectors(cache) == sum(p.dirty_sectors() for p in plain)


@njit
def _walk(cache, sectors):
    hits = 0
    for sector in sectors:
        hits += touch(cache, 0, sector, False)[0]
    return hits


def test_a_power_of_two_stride_falls_into_one_set():
    """The same 64 lines fit a 32 KB cache when neighbours, and never when 4 KB apart."""
    near = np.tile(np.arange(64), 10)
    assert _walk(make_cache(32 * 1024, 8, 64, 64), near) == 64 * 9
    assert _walk(make_cache(32 * 1024, 8, 64, 64), near * 64) == 0


@pytest.mark.parametrize("apart", [2**n for n in range(16)])
def test_a_hash_spreads_every_stride_of_a_power_of_two(apart):
    cache = make_cache(256 * 1024, 16, hashed=True)
    assert _walk(cache, np.tile(np.arange(0, 256 * 4, 4) * apart, 10)) == 256 * 9


@pytest.mark.parametrize("size_bytes", [28 * 1024, 256 * 1024, 25 * 1024 * 1024])
def test_a_hash_gives_lines_in_a_row_a_place_each(size_bytes):
    cache = make_cache(size_bytes, 16, hashed=True)
    lines = size_bytes // 128 // 128 * 128  # whole runs of what the hash folds
    assert _walk(cache, np.tile(np.arange(lines) * 4, 2)) == lines


def test_a_walk_one_line_longer_than_the_cache_always_misses():
    assert _walk(make_cache(8 * 64, 8, 64, 64), np.tile(np.arange(9), 10)) == 0
    assert _walk(make_cache(8 * 64, 8, 64, 64), np.tile(np.arange(8), 10)) == 8 * 9


def test_a_sectored_line_brings_only_the_sector_asked_for():
    cache = make_cache(1024, 2)
    assert touch(cache, 0, 0, False) == (False, 0)
    assert touch(cache, 0, 1, False) == (False, 0)
    assert touch(cache, 0, 1, False) == (True, 0)


def test_a_number_of_sets_that_is_no_power_of_two():
    assert make_cache(50 * 1024 * 1024 // 3, 16).entries.shape == (1, 8533, 16)


@pytest.mark.parametrize("arguments", [(1024, 2, 100, 32), (1024, 2, 1024, 32), (100, 1), (1024, 0)])
def test_an_impossible_cache_is_refused_in_a_sentence(arguments):
    with pytest.raises(ValueError, match="a (line|cache) of .* bytes cannot"):
        make_cache(*arguments)

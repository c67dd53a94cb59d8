"""Vector clocks that share what they have in common: the same answers as whole ones, in bounded memory."""

from types import SimpleNamespace

import numpy as np
import pytest

from labkit.simulator.checks import clocks
from labkit.simulator.checks.clocks import KNOWN, MOMENTS, PUBLISHED, Clocks, time_of, was_passed_on

WARPS_PER_BLOCK = 4


class WholeClocks:
    """The same rules on whole vectors: the oracle."""

    def __init__(self, warps, elements):
        self.times = np.zeros(warps, np.int64)
        self.of = np.zeros((2, warps, warps), np.int64)
        self.left = np.zeros((2, elements, warps), np.int64)

    def advance(self, warp):
        self.times[warp] += 1
        self.of[KNOWN, warp, warp] = self.times[warp]

    def exchange(self, warp, element, changes, learns):
        if learns:
            self.of[:, warp] = np.maximum(self.of[:, warp], self.left[:, element])
        self.advance(warp)
        if changes:
            self.left[:, element] = np.maximum(self.of[:, warp], self.left[:, element])

    def share(self, block):
        warps = range(block * WARPS_PER_BLOCK, (block + 1) * WARPS_PER_BLOCK)
        for warp in warps:
            self.advance(warp)
        self.of[:, warps] = self.of[:, warps].max(axis=1, keepdims=True)

    def publish(self, warp):
        self.advance(warp)
        first = warp // WARPS_PER_BLOCK * WARPS_PER_BLOCK
        own = slice(first, first + WARPS_PER_BLOCK)
        self.of[PUBLISHED, warp, own] = np.maximum(self.of[PUBLISHED, warp, own], self.of[KNOWN, warp, own])


def one_warp(warp):
    """A warp set of one warp, whose first lane does something."""
    block, within = divmod(warp, WARPS_PER_BLOCK)
    lanes = np.zeros(32, np.bool_)
    lanes[0] = True
    rows = np.array([[0, 32, block, within * 32, 0, 0]], np.int64)
    return SimpleNamespace(warps=rows, active=lambda mask: mask), lanes


def check(blocks, steps, seed):
    """Takes random steps in both; every clock agrees for every warp in the end."""
    warps, elements = blocks * WARPS_PER_BLOCK, 3
    shared, whole = Clocks(blocks, WARPS_PER_BLOCK), WholeClocks(warps, elements)
    array = SimpleNamespace(data=np.zeros(elements))
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        warp, element = rng.integers(warps), rng.integers(elements)
        w, lanes = one_warp(warp)
        kind = rng.integers(4)
        if kind < 2:
            changes, learns = rng.integers(2, size=2) > 0
            shared.exchange(w, array, np.full(32, element), lanes, lanes & changes, learns)
            whole.exchange(warp, element, changes, learns)
        elif kind == 2:
            shared.join_blocks([warp // WARPS_PER_BLOCK])
            whole.share(warp // WARPS_PER_BLOCK)
        else:
            shared.publish(w, lanes)
            whole.publish(warp)
    np.testing.assert_array_equal(shared.times, whole.times)
    for which in (KNOWN, PUBLISHED):
        ours = [
            [time_of(shared.nodes, shared.levels, shared.clocks[which, mine], other) for other in range(warps)]
            for mine in range(warps)
        ]
        np.testing.assert_array_equal(ours, whole.of[which])
    return shared


@pytest.mark.parametrize("blocks", [1, 8, 9, 300])
def test_shared_clocks_agree_with_whole_ones(blocks):
    check(blocks, 400, seed=blocks)


def test_a_lane_tells_what_it_did_and_what_all_did_before_they_met():
    shared, array = Clocks(1, WARPS_PER_BLOCK), SimpleNamespace(data=np.zeros(1))
    w, first = one_warp(0)

    def tell():
        shared.exchange(w, array, np.zeros(32, np.int64), first, first, False)

    def known(time, until):
        """Return, for two lanes, whether a warp that knows theirs until then knows what they did at a time."""
        return [was_passed_on(shared.times, shared.passed_on, 0, lane, time, until) for lane in range(2)]

    tell()
    shared.note_collective(w, ~first | first)
    tell()
    assert known(0, 1) == [True, False]
    assert known(0, 3) == known(1, 3) == [True, True]
    assert known(2, 3) == [True, False]
    for _ in range(MOMENTS):
        tell()
    assert known(3, 3 + MOMENTS) == [True, False]
    assert known(2, 3 + MOMENTS) == [True, True]  # too long ago


def test_what_nobody_uses_any_more_is_collected():
    first = Clocks(10, WARPS_PER_BLOCK)
    assert len(check(10, 6000, seed=1).nodes) == len(first.nodes)


def test_clocks_that_would_take_too_much_memory_trust_everyone(monkeypatch):
    monkeypatch.setattr(clocks, "MAX_NODES", 4096)
    shared = Clocks(200, WARPS_PER_BLOCK)
    array = SimpleNamespace(data=np.zeros(20_000))
    for element in range(20_000):
        w, lanes = one_warp(element % 800)
        shared.exchange(w, array, np.full(32, element), lanes, lanes, True)
    assert len(shared.nodes) == 1
    assert time_of(shared.nodes, shared.levels, shared.clocks[KNOWN, 5], 700) == np.iinfo(np.int32).max

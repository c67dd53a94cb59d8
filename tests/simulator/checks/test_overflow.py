"""Lists of those for whom a cell has no room: what is taken out is free for others."""

from random import Random

import numpy as np

from labkit.simulator.checks import overflow
from labkit.simulator.checks.overflow import NONE, SITE, Overflow


def listed(entries, first):
    sites = []
    while first != NONE:
        sites.append(entries[first, SITE])
        first = entries[first, overflow.NEXT]
    return sites


def test_lists_hold_what_was_put_in_and_not_taken_out():
    kept, random = Overflow(True), Random(3)
    firsts, expected = np.full(5, NONE, np.int32), [[] for _ in range(5)]
    for number in range(2000):
        kept.make_room(1)
        which = random.randrange(5)
        if len(expected[which]) < 6 and random.random() < 0.6:
            firsts[which] = overflow.add(kept.entries, firsts[which], 0, 0, 0, 0, 0, 0, number)
            expected[which].insert(0, number)
        elif expected[which]:
            place = random.randrange(len(expected[which]))
            at, before = firsts[which], NONE
            for _ in range(place):
                at, before = kept.entries[at, overflow.NEXT], at
            firsts[which] = overflow.remove(kept.entries, firsts[which], before, at)
            del expected[which][place]
    assert [listed(kept.entries, first) for first in firsts] == expected
    assert len(kept.entries) <= 64
    kept.free(firsts)
    assert set(firsts) == {NONE}


def test_beyond_the_limit_nobody_is_kept(monkeypatch):
    monkeypatch.setattr(overflow, "MAX_ENTRIES", 16)
    kept, first = Overflow(True), NONE
    for number in range(100):
        kept.make_room(1)
        first = overflow.add(kept.entries, first, 0, 0, 0, 0, 0, 0, number)
    assert len(kept.entries) == 16
    assert listed(kept.entries, first) == [*range(14, -1, -1)]

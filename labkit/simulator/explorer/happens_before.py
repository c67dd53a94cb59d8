"""Happens-before of a run's turns, and the runs that reverse a race.

A turn is one access of a warp, or a barrier that its `members` passed. Two accesses of different warps conflict if they
touch one element and do not commute: swapping them may change what they do. Runs that order all conflicts alike do the
same, so one run stands for all of those. From any run every other can be reached by reversing one race after another
(dynamic partial-order reduction: Flanagan and Godefroid, POPL 2005; the reversal is that of Abdulla, Aronis, Jonsson
and Sagonas, POPL 2014).
"""

from dataclasses import dataclass

from labkit.simulator.explorer.interleaving import Turn

TurnId = tuple[int, int]  # a warp, and its number of earlier turns


@dataclass
class Races:
    """The conflicts of a run that nothing else orders: pairs of positions in `turns`, the earlier first.

    `clocks` has for each turn the last turn of every warp that had to come before it (-1: none), itself included.
    """

    turns: list[Turn]
    pairs: list[tuple[int, int]]
    clocks: list[tuple[int, ...]]
    ids: list[TurnId]

    @property
    def key(self) -> frozenset[tuple[TurnId, TurnId]]:
        """A value that is equal for runs that order all conflicts alike."""
        return frozenset((self.ids[i], self.ids[j]) for i, j in self.pairs)

    def reversed(self, first: int, second: int) -> tuple[list[int], frozenset]:
        """Return the order of warps that reverses a race, and a key that tells this beginning from others.

        The order ends with the second access of the race; the first one, and what had to follow it, are left out.
        """
        warp = self.turns[first].warp
        order = [k for k in range(second) if k < first or self.clocks[k][warp] < first]
        positions = set(order)
        edges = {(self.ids[i], self.ids[j]) for i, j in self.pairs if i in positions and j in positions}
        order = [k for k in order if not self.turns[k].members]
        key = frozenset([*edges, *(self.ids[k] for k in order), ("then", self.turns[second].warp)])
        return [self.turns[k].warp for k in [*order, second]], key


def find_races(turns: list[Turn], warps: int) -> Races:
    """Find the conflicts of a run that neither a barrier nor another conflict orders."""
    warp_clocks = [(-1,) * warps for _ in range(warps)]  # the last turn of every warp that each warp knows of
    history: dict[int, tuple] = {}  # by cell: the kind of its last turns, these, and those before
    pairs, clocks, ids, count = [], [], [], [0] * warps
    for j, turn in enumerate(turns):
        if turn.members:
            joined = tuple(max(clocks_joined) for clocks_joined in zip(*(warp_clocks[m] for m in turn.members)))
            for member in turn.members:
                warp_clocks[member] = joined
            clocks.append(joined)
            ids.append((-1, j))
            continue
        clock = warp_clocks[turn.warp]
        for i in sorted(_conflicting(history, turn, j), reverse=True):
            if clock[turns[i].warp] < i:
                pairs.append((i, j))
                clock = tuple(map(max, clock, clocks[i]))
        clock = (*clock[: turn.warp], j, *clock[turn.warp + 1 :])
        warp_clocks[turn.warp] = clock
        clocks.append(clock)
        ids.append((turn.warp, count[turn.warp]))
        count[turn.warp] += 1
    return Races(turns, pairs, clocks, ids)


def _conflicting(history, turn, position) -> set[int]:
    """Return the latest turns that conflict with this one, and add it to the history.

    For each cell the history holds the last turns that commute with one another, and those before them.
    """
    kind = turn.commutes or ("" if turn.changed else "reads")
    found = set()
    for cell in turn.cells:
        last_kind, last, before = history.get(cell, ("", (), ()))
        if kind and kind == last_kind:
            found.update(before)
            history[cell] = kind, (*last, position), before
        else:
            found.update(last)
            history[cell] = kind, (position,), last
    return found

"""Where two runs of one launch part ways: the access that first finds another value, and the write behind that."""

from dataclasses import dataclass
from typing import Any

from labkit.simulator.explorer.happens_before import Races
from labkit.simulator.explorer.interleaving import Turn


@dataclass
class Parting:
    """`turn` (of the first run) finds other values in the cell than in the second run, because of `write`.

    `positions`: the turn's in both runs. Where all accesses read the same, `turn` and `write` are the cell's last
    writes in the two runs, and `values` what they leave.
    """

    cell: int
    turn: Turn
    write: Turn
    positions: tuple[int, int]
    values: tuple[Any, Any]


def find_parting(first: Races, second: Races) -> Parting | None:
    """The first access of `first` that finds another value in `second`; None if all find and leave the same."""
    there = {who: k for k, who in enumerate(second.ids)}
    for here, turn in enumerate(first.turns):
        at = there.get(first.ids[here])
        if at is None or not turn.reads:
            continue
        found = dict(zip(second.turns[at].cells, second.turns[at].found))
        for cell, value in zip(turn.cells, turn.found):
            if cell in found and not _equal(value, found[cell]):
                write = _write_behind(first, here, second, at, cell)
                return Parting(cell, turn, write, (here, at), (value, found[cell]))
    return _last_writes(first, second)


def _equal(a, b):
    return a == b or (a != a and b != b)


def _last_write(run, before, cell) -> int | None:
    """Where a cell was changed last before a turn."""
    return next((k for k in range(before - 1, -1, -1) if run.turns[k].changed and cell in run.turns[k].cells), None)


def _write_behind(first, here, second, at, cell) -> Turn:
    """Of the writes that the access sees in the two runs, the one that comes after it in the other run."""
    writes = []
    for run, position, other, limit in ((second, at, first, here), (first, here, second, at)):
        k = _last_write(run, position, cell)
        if k is not None:
            early = run.ids[k] in other.ids[:limit]
            writes.append((early, run.turns[k]))
    return min(writes, key=lambda write: write[0])[1]


def _last_writes(first, second) -> Parting | None:
    """The first cell that the runs leave with different values, and its last writes."""
    last = [{}, {}]
    for run, of in zip((first, second), last):
        for k, turn in enumerate(run.turns):
            if turn.changed:
                of.update((cell, (k, value)) for cell, value in zip(turn.cells, turn.values))
    for cell in sorted(last[0].keys() & last[1].keys(), key=lambda c: last[0][c][0]):
        (here, value), (at, other) = last[0][cell], last[1][cell]
        if not _equal(value, other):
            return Parting(cell, first.turns[here], second.turns[at], (here, at), (value, other))
    return None

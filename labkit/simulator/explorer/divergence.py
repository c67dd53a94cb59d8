"""The point where two runs of one launch differ: the first access that finds another value, and the write behind it.

A turn is an access of one warp: to `cells`, elements of memory, where it `found` values, or left values if it `changed`
them. `ids` name the turns of a run by warp and number: an access has the same in both runs.
"""

from dataclasses import dataclass
from typing import Any

from labkit.simulator.explorer.happens_before import Races
from labkit.simulator.explorer.interleaving import Turn


@dataclass
class Divergence:
    """The turn of the first run that finds other values in a cell than in the second run, because of `write`.

    `positions` are the turn's in both runs. Where all accesses read the same, `turn` and `write` are the cell's last
    writes in the two runs, and `values` what they leave.
    """

    cell: int
    turn: Turn
    write: Turn
    positions: tuple[int, int]
    values: tuple[Any, Any]


def find_divergence(first: Races, second: Races) -> Divergence | None:
    """Return the first access of `first` that finds another value in `second`; None if the runs are equal."""
    second_positions = {turn_id: k for k, turn_id in enumerate(second.ids)}
    for position, turn in enumerate(first.turns):
        other_position = second_positions.get(first.ids[position])
        if other_position is None or not turn.reads:
            continue
        found = dict(zip(second.turns[other_position].cells, second.turns[other_position].found))
        for cell, value in zip(turn.cells, turn.found):
            if cell in found and not _equal(value, found[cell]):
                write = _write_behind(first, position, second, other_position, cell)
                return Divergence(cell, turn, write, (position, other_position), (value, found[cell]))
    return _last_writes(first, second)


def _equal(a, b):
    return a == b or (a != a and b != b)


def _last_write(run, before, cell) -> int | None:
    """Return the position of the last turn before `before` that changed a cell."""
    return next((k for k in range(before - 1, -1, -1) if run.turns[k].changed and cell in run.turns[k].cells), None)


def _write_behind(first, position, second, other_position, cell) -> Turn:
    """Return, of the writes that the access sees in the two runs, the one that comes after it in the other run."""
    writes = []
    for run, own_position, other, limit in (
        (second, other_position, first, position),
        (first, position, second, other_position),
    ):
        last = _last_write(run, own_position, cell)
        if last is not None:
            early = run.ids[last] in other.ids[:limit]
            writes.append((early, run.turns[last]))
    return min(writes, key=lambda write: write[0])[1]


def _last_writes(first, second) -> Divergence | None:
    """Return the first cell that the runs leave with different values, and its last writes."""
    ours, theirs = (
        {
            cell: (k, value)
            for k, turn in enumerate(run.turns)
            if turn.changed
            for cell, value in zip(turn.cells, turn.values)
        }
        for run in (first, second)
    )
    for cell in sorted(ours.keys() & theirs.keys(), key=lambda c: ours[c][0]):
        (position, value), (other_position, other) = ours[cell], theirs[cell]
        if not _equal(value, other):
            positions = position, other_position
            return Divergence(cell, first.turns[position], second.turns[other_position], positions, (value, other))
    return None

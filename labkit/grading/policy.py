"""The teacher's rules on top of the judge: deadline, points by hand, and the best of several answers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from labkit.exercises.contents import current_id
from labkit.grading.collected import Collected
from labkit.grading.grades import Grade, make_printable
from labkit.grading.roster import RosterError, read_table

DAY_S = 24 * 60 * 60


class LatePolicy(StrEnum):
    """Which answers count of a student with a commit in time and a late one."""

    BETTER = "better"
    LAST = "last"


def parse_time(text: str) -> datetime:
    """Parse a time in ISO 8601, in this machine's zone if it names none; a day alone means its end.

    Raises
    ------
    ValueError
        The text is not a time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write 2026-11-30, 2026-11-30T23:59 or 2026-11-30T23:59+01:00"
        ) from None
    is_day = len(text) == len("2026-11-30")
    return (time.replace(hour=23, minute=59, second=59) if is_day else time).astimezone()


@dataclass(frozen=True)
class Deadline:
    """A deadline, and the percentage of the points that each started day after it costs."""

    due: datetime
    percent_a_day: float = 100

    def apply(self, row: Grade, collected: Collected | None) -> Grade:
        """Subtract the cost of lateness from a row, by the time of the commit; a row without points stays."""
        if row.points == 0:
            return row
        committed = collected and collected.time
        if committed is None:
            return replace(row, late="No commit time is known: counted as in time.")
        late_s = (committed - self.due).total_seconds()
        if late_s <= 0:
            return row
        days = math.ceil(late_s / DAY_S)
        share = max(0.0, 1 - days * self.percent_a_day / 100)
        points = row.points and round(row.points * share, 2)
        unit = "day" if days == 1 else "days"
        return replace(row, points=points, late=f"Late by {days} {unit}: {share:.0%} of the points count.")


def set_aside_stale(row: Grade, collected: Collected | None) -> Grade:
    """Leave a row of an earlier collection ungraded if the last fetch failed, unless it has all of its points."""
    if collected is None or collected.fetched or not row.exercise:
        return row
    note = "Your repository could not be fetched again: this is of an earlier collection."
    return add_note(row if row.points == row.out_of else replace(row, points=None), note)


def choose_best(rows: Iterable[Grade]) -> list[Grade]:
    """Choose one row per student and exercise: the answer with the most points.

    An answer that could not be graded wins over one without full points, so that a teacher looks at it. Rows without
    an exercise stay: they are about a file.
    """
    groups: dict[tuple[str, str], list[Grade]] = {}
    for row in rows:
        key = (row.student, row.exercise) if row.exercise else (row.student, f" {row.submission}")
        groups.setdefault(key, []).append(row)
    return [_choose_best_row(group) for group in groups.values()]


def _choose_best_row(rows):
    def rank(row):
        points = row.out_of - 0.001 if row.points is None else row.points
        return points, 0 if row.reason == "missing" else 1 if row.reason == "unreadable" else 2, not row.late

    best = max(rows, key=rank)
    answered = [row for row in rows if row.reason not in ("missing", "unreadable")]
    if len(answered) > 1:
        best = add_note(best, f"The best of {len(answered)} answers.")
    unreadable = [row.message for row in rows if row.reason == "unreadable" and row.submission != best.submission]
    return add_note(best, unreadable[0]) if unreadable and best.points != best.out_of else best


def apply_points_by_hand(rows: list[Grade], table: Path) -> list[Grade]:
    """Give rows the points of a CSV with student, exercise, points, and optionally comment and extra.

    Points below 0 or above the exercise's need a word in the column `extra`. Lateness does not reduce them.
    """
    by_row = {}
    worth = {(row.student, row.exercise): row.out_of for row in rows}
    for line in read_table(table, "student", "exercise", "points"):
        points = _parse_points(line["points"], table)
        student, id = key = line["student"].strip(), current_id(line["exercise"].strip())
        if key not in worth:
            raise RosterError(f"{table}: {student} has no exercise {id}; there is no such row in the grades")
        if not (0 <= points <= worth[key] or line.get("extra", "").strip()):
            raise RosterError(
                f"{table}: {student} gets {points:g} of {worth[key]:g} points for {id}; give 0 to {worth[key]:g}, or "
                "write `yes` into a column `extra`"
            )
        by_row[key] = points, make_printable(f"Points given by hand. {line.get('comment', '')}".strip())
    return [
        replace(row, points=by_row[key][0], by_hand=by_row[key][1], late="")
        if (key := (row.student, row.exercise)) in by_row
        else row
        for row in rows
    ]


def _parse_points(text, table):
    try:
        points = float(text)
    except ValueError:
        points = math.nan
    if not math.isfinite(points):
        raise RosterError(f"{table}: {text!r} is not a number of points")
    return points


def add_note(row: Grade, note: str) -> Grade:
    """Add a note to a row."""
    return replace(row, note=f"{row.note} {make_printable(note)}".strip())

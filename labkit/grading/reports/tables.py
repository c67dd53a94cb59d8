"""Grades as CSV, with nothing in them that a spreadsheet would run."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from labkit.exercises import index_in_book
from labkit.grading.grades import Grade, sum_points
from labkit.grading.similar import Group

# At the beginning of a cell, or after what another spreadsheet takes for its end.
_FORMULA = re.compile(r"(^|[;\t\r\n|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")


def make_rows_csv(grades: list[Grade]) -> str:
    """Make one line per row, with all of its fields."""
    return make_csv([asdict(row) for row in grades], list(Grade.__dataclass_fields__))


def make_gradebook_csv(grades: list[Grade], roster: Mapping[str, Mapping[str, str]]) -> str:
    """Make one line per student: the roster's columns, totals, the points of each exercise (empty: not graded)."""
    exercises = sorted({row.exercise for row in grades} - {""}, key=index_in_book)
    lines = []
    for student, (points, out_of) in sum_points(grades).items():
        points_by_id = {row.exercise: row.points for row in grades if row.student == student and row.exercise}
        not_graded = sum(value is None for value in points_by_id.values())
        sums = {"student": student, "points": points, "out_of": out_of, "not_graded": not_graded}
        lines.append({**roster.get(student, {}), **sums, **points_by_id})
    further = [name for columns in roster.values() for name in columns]
    return make_csv(lines, [*dict.fromkeys(["student", *further, "points", "out_of", "not_graded", *exercises])])


def make_similar_csv(groups: Iterable[Group]) -> str:
    """Make one line per group of similar answers; answers that much of the class gives are common."""
    lines = [
        {
            "exercise": group.exercise,
            "students": "; ".join(group.students),
            "share": f"{group.share:.0%}",
            "common": "yes" if group.is_common else "",
        }
        for group in groups
    ]
    return make_csv(lines, ["exercise", "students", "share", "common"])


def make_csv(lines: list[dict], columns: list[str]) -> str:
    """Make a CSV with a header from lines that hold values by column."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows({key: _escape_formula(value) for key, value in line.items()} for line in lines)
    return file.getvalue()


def _escape_formula(value):
    """Write a value so that no spreadsheet takes it for a formula, and 3.0 points as 3."""
    if isinstance(value, float):
        return f"{value:g}"
    return _FORMULA.sub(r"\1'\2", value) if isinstance(value, str) else value

"""Grades as Markdown, for the summary of a step of GitHub Actions."""

import re

from labkit.grading.grades import Grade, totals

MOST_ROWS = 2000  # a summary may hold a megabyte
MOST_SAID = 300
_MARKUP = re.compile(
    r"""[^\w\s,;?/%'"().=+-]  # all punctuation but this,
    | \A[-+=] | (?<=\A\d)[.)] | (?<=\A\d\d)[.)]  # and this too where it may make a list or a heading,
    | (?i:(?<=www))[.]  # or an address,
    | (?<![^\W_])_ | _(?![^\W_])  # or emphasis, which is never inside a word
    """,
    re.X,
)


def summary(grades: list[Grade], remark: str) -> str:
    """A table of the students, and one of what is less than full."""
    lines = ["### Points", "", "| student | points | of | not graded |", "|---|---|---|---|"]
    for student, (points, out_of) in totals(grades).items():
        missing = sum(row.points is None for row in grades if row.student == student)
        lines.append(f"| {_cell(student)} | {points:g} | {out_of:g} | {missing or ''} |")
    less = [row for row in grades if row.points is None or row.points < row.out_of or not row.exercise]
    if less:
        lines += ["", "### Why", "", "| student | exercise | points | why |", "|---|---|---|---|"]
    for row in less[:MOST_ROWS]:
        points = "not graded" if row.points is None else f"{row.points:g}/{row.out_of:g}"
        exercise = row.exercise or _cell(row.submission)
        lines.append(f"| {_cell(row.student)} | {exercise} | {points} | {_cell(row.said)} |")
    if less[MOST_ROWS:]:
        lines += ["", f"{len(less) - MOST_ROWS:,} more rows stand in grades.csv."]
    if remark:
        lines += ["", _cell(remark)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text on one line in which Markdown and HTML find nothing of theirs: what they would is written as entities."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def _cell(text):
    """Plain text for a table, cut where it is long."""
    return plain(text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}\u2026")

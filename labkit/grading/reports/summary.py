"""Grades as Markdown, for the summary of a step of GitHub Actions."""

import re
from collections import Counter
from collections.abc import Iterable

from labkit.grading.grades import Grade, sum_points
from labkit.grading.similar import Group

SIMILAR = "Beyond the book and the blank exercise, these answers are alike: a reason to ask, not a proof of copying."
MAX_ROWS = 2000  # a summary may have a megabyte
MAX_CHARACTERS = 300
_MARKUP = re.compile(
    r"""[^\w\s,;?/%'"().=+-]  # all punctuation but this,
    | \A[-+=] | (?<=\A\d)[.)] | (?<=\A\d\d)[.)]  # and this too where it may make a list or a heading,
    | (?i:(?<=www))[.]  # or an address,
    | (?<![^\W_])_ | _(?![^\W_])  # or emphasis, which is never inside a word
    """,
    re.X,
)


def make_summary(grades: list[Grade], remark: str, similar: Iterable[Group] = ()) -> str:
    """Make tables of students, of rows without full points, of usual mistakes, and of similar, uncommon answers."""
    lines = ["### Points", "", "| student | points | of | not graded |", "|---|---|---|---|"]
    for student, (points, out_of) in sum_points(grades).items():
        missing = sum(row.points is None for row in grades if row.student == student)
        shown = "" if points is None else f"{points:g}"
        lines.append(f"| {_format_cell(student)} | {shown} | {out_of:g} | {missing or ''} |")
    incomplete = [row for row in grades if row.points is None or row.points < row.out_of or not row.exercise]
    if incomplete:
        lines += ["", "### Why", "", "| student | exercise | points | why |", "|---|---|---|---|"]
    for row in incomplete[:MAX_ROWS]:
        points = "not graded" if row.points is None else f"{row.points:g}/{row.out_of:g}"
        exercise = row.exercise or _format_cell(row.submission)
        lines.append(f"| {_format_cell(row.student)} | {exercise} | {points} | {_format_cell(row.said)} |")
    if incomplete[MAX_ROWS:]:
        lines += ["", f"{len(incomplete) - MAX_ROWS:,} more rows stand in grades.csv."]
    if causes := Counter((row.exercise, row.cause) for row in grades if row.cause).most_common(MAX_ROWS):
        lines += ["", "### Usual mistakes", "", "| exercise | answers | wrong as if |", "|---|---|---|"]
    for (exercise, cause), count in causes:
        lines.append(f"| {exercise} | {count} | {_format_cell(cause)} |")
    if groups := [group for group in similar if not group.is_common]:
        lines += ["", "### Similar answers", "", SIMILAR, "", "| exercise | students | alike |", "|---|---|---|"]
    for group in groups[:MAX_ROWS]:
        lines.append(f"| {group.exercise} | {_format_cell('; '.join(group.students))} | {group.share:.0%} |")
    if remark:
        lines += ["", _format_cell(remark)]
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Put a text on one line, with entities for characters that Markdown or HTML would interpret."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", " ".join(text.split()))


def _format_cell(text):
    """Return plain text for a table, cut if it is long."""
    return escape_markdown(text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}\u2026")

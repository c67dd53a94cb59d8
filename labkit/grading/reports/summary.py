"""Grades as Markdown, for the summary of a step of GitHub Actions."""

import re

from labkit.grading.grades import Grade, sum_points

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


def make_summary(grades: list[Grade], remark: str) -> str:
    """Make a table of the students, and one of rows without full points."""
    lines = ["### Points", "", "| student | points | of | not graded |", "|---|---|---|---|"]
    for student, (points, out_of) in sum_points(grades).items():
        missing = sum(row.points is None for row in grades if row.student == student)
        lines.append(f"| {_format_cell(student)} | {points:g} | {out_of:g} | {missing or ''} |")
    incomplete = [row for row in grades if row.points is None or row.points < row.out_of or not row.exercise]
    if incomplete:
        lines += ["", "### Why", "", "| student | exercise | points | why |", "|---|---|---|---|"]
    for row in incomplete[:MAX_ROWS]:
        points = "not graded" if row.points is None else f"{row.points:g}/{row.out_of:g}"
        exercise = row.exercise or _format_cell(row.submission)
        lines.append(f"| {_format_cell(row.student)} | {exercise} | {points} | {_format_cell(row.said)} |")
    if incomplete[MAX_ROWS:]:
        lines += ["", f"{len(incomplete) - MAX_ROWS:,} more rows stand in grades.csv."]
    if remark:
        lines += ["", _format_cell(remark)]
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Put a text on one line, with entities for characters that Markdown or HTML would interpret."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", " ".join(text.split()))


def _format_cell(text):
    """Return plain text for a table, cut if it is long."""
    return escape_markdown(text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}\u2026")

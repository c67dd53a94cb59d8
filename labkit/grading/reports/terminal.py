"""Grades as lines for a terminal of any width."""

from itertools import groupby

from rich.console import Console
from rich.text import Text

from labkit.grading.grades import Grade, format_points, sum_points
from labkit.grading.reports.page import headline, section_key

INDENT = 4
LEAST_WIDTH = 20  # of indented text


def print_grades(grades: list[Grade], console: Console) -> None:
    """Print the points of each student, and below them why rows lost points or how they ran."""
    for student, group in groupby(grades, key=lambda row: row.student):
        rows = list(group)
        _print_wrapped(f"{student}: {format_points(*sum_points(rows)[student])}", 0, console)
        incomplete = [row for row in rows if row.points != row.out_of or not row.exercise or row.ran]
        for _, section in groupby(incomplete, key=section_key):
            section = list(section)
            _print_wrapped(headline(*section), INDENT, console)
            _print_wrapped("\n".join(filter(None, [section[0].said, section[0].ran])), 2 * INDENT, console)
    _print_wrapped(f"The sizes were drawn with --seed {grades[0].seed}.", 0, console)


def _print_wrapped(text: str, indent: int, console: Console) -> None:
    for line in Text(text).wrap(console, max(LEAST_WIDTH, console.width - indent), overflow="fold"):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)

"""Grades: the points of an exercise, and the reason for them."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_CHARACTERS = 2000


@dataclass(frozen=True)
class Grade:
    """The points of one exercise of a student, or a row for a file without any answer."""

    student: str
    submission: str  # the file
    exercise: str  # "": the file has no answer
    points: float | None  # None: the answer could not be graded
    out_of: float
    message: str
    seed: int | None = None  # of the sizes: grading with it draws the same ones
    reason: str = ""  # a word or two, those of the verdict if there is one
    line: int | None = None  # of the answer, that the message is about
    launch: str = ""  # the run that the message is about
    hidden: bool = False  # the sizes of that run are known only to the grader
    note: str = ""  # for the teacher
    ran: str = ""  # the result of running the answer as code, which changes no points
    late: str = ""  # the cost of lateness
    by_hand: str = ""  # the words of a teacher who gave the points
    cause: str = ""  # that of the usual mistake which explains a wrong result; it tells no size
    pattern: str = ""  # wrong elements of a run on published sizes, as lines of text
    verbatim: bool = False  # a right answer is the book's own, word for word; only the teacher sees this

    @property
    def published(self) -> str:
        """The run that the message is about, in words, if its sizes are those that the check cell shows."""
        return f"(run on {self.launch})" if self.launch and not self.hidden else ""

    @property
    def said(self) -> str:
        """All messages on the points: the teacher's words first, then the judge's."""
        return "\n".join(filter(None, [self.by_hand, self.message, self.published, self.note, self.late]))


def make_printable(text: str) -> str:
    """Replace characters that a terminal, XML or a reader would take for something else."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text[:MAX_CHARACTERS])


def sum_points(grades: Iterable[Grade]) -> dict[str, tuple[float | None, float]]:
    """Return the points and the possible points of each student; the points are None if no row is graded."""
    sums: dict[str, tuple[float | None, float]] = {}
    for row in grades:
        points, out_of = sums.get(row.student, (None, 0))
        if row.points is not None:
            points = round((points or 0) + row.points, 2)
        sums[row.student] = points, out_of + row.out_of
    return sums


def format_points(points: float | None, out_of: float) -> str:
    """Return points in words."""
    return "not graded" if points is None else f"{points:g} of {out_of:g} points"

"""A grade: what one exercise earned, and why."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_CHARACTERS = 2000


@dataclass(frozen=True)
class Grade:
    """What one exercise of a student earned; a file without any answer has a row with no exercise.

    `points` is None where an answer could not be graded. `reason` is a word or two, those of the verdict where there
    is one; `line` and `launch` are what the message speaks of, `hidden` that nobody else knows what that run was on.
    `seed` drew the sizes of the checks: grading with it draws them again. `note` is what the teacher should know
    besides, `late` what lateness cost, `by_hand` what the teacher says who gave the points, `ran` what became of the
    answer when it was run as code, which changes no points. `verbatim` says that a right answer is the book's own,
    word for word: only the teacher is told.
    """

    student: str
    submission: str
    exercise: str
    points: float | None
    out_of: float
    message: str
    seed: int | None = None
    reason: str = ""
    line: int | None = None
    launch: str = ""
    hidden: bool = False
    note: str = ""
    ran: str = ""
    late: str = ""
    by_hand: str = ""
    verbatim: bool = False

    @property
    def said(self) -> str:
        """All that is said of the points: the teacher's words first, then those of the judge."""
        return "\n".join(filter(None, [self.by_hand, self.message, self.note, self.late]))


def make_printable(text: str) -> str:
    """A text without characters that a terminal, XML or a reader's eye would take for something else."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text[:MAX_CHARACTERS])


def sum_points(grades: Iterable[Grade]) -> dict[str, tuple[float, float]]:
    """Points and points to be had, by student."""
    sums: dict[str, tuple[float, float]] = {}
    for row in grades:
        points, out_of = sums.get(row.student, (0, 0))
        sums[row.student] = (round(points + (row.points or 0), 2), out_of + row.out_of)
    return sums

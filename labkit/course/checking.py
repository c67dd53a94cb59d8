"""`labkit check`: how the exercises of a release stand, by the checks that grade them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import randbits

from labkit.checking.setup_cells import is_setup_cell
from labkit.course.manifest import NOTEBOOKS
from labkit.exercises import chapter_of, exercise
from labkit.exercises.contents import slug_of
from labkit.grading.course import Course
from labkit.grading.judge import SOLVED, Judge
from labkit.grading.submission import read_submission


@dataclass(frozen=True)
class Checked:
    """The state of one exercise: the points that it would get, and the reason if it gets fewer than all."""

    exercise: str
    points: float
    out_of: float
    message: str

    def __str__(self):
        headline = f"{exercise(self.exercise).headline}: {self.points:g} of {self.out_of:g} points"
        reasons = self.message.splitlines() if self.points < self.out_of else []
        return "\n    ".join([headline, *reasons])


def check_course(course: Course, folder: Path) -> Iterator[Checked]:
    """Check every exercise of a release on sizes drawn anew, from the text of its cell, as grading does."""
    seed = randbits(32)
    for name in course.chapters:
        wanted = {id: points for id, points in course.points.items() if chapter_of(id) == slug_of(name)}
        if wanted:
            yield from _check_chapter(folder / NOTEBOOKS / f"{name}.ipynb", wanted, seed)


def summary(course: Course, rows: Iterable[Checked]) -> str:
    """Return the points so far as a line to print."""
    return f"{course.assignment}: {sum(row.points for row in rows):g} of {course.out_of:g} points so far."


def _check_chapter(path: Path, wanted: Mapping[str, float], seed: int) -> Iterator[Checked]:
    submission = read_submission(path)
    missing = (
        submission.complaint or "The cell of this exercise is gone: take it from the chapter as it was handed out."
    )
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if submission.answers else []
    judge = Judge(["".join(cell["source"]) for cell in cells if is_setup_cell(cell)], seed, draws=1)
    for id, points in wanted.items():
        if id not in submission.answers:
            yield Checked(id, 0, points, submission.refused.get(id, missing))
            continue
        judgement = judge.judgement(id, submission.answers[id])
        where = f"(run on {judgement.launch})" if judgement.launch else ""
        message = "\n".join(filter(None, [judgement.message, judgement.pattern, where]))
        yield Checked(id, points if judgement.reason == SOLVED else 0, points, message)

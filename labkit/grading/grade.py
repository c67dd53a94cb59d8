"""From files handed in to points: one grade for each student and exercise, with the reason for it."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from labkit.exercises import exercise, exercise_ids
from labkit.grading import policy
from labkit.grading.files import shown
from labkit.grading.grades import Grade, printable
from labkit.grading.journal import Journal
from labkit.grading.judge import SOLVED, Judgement
from labkit.grading.judging import CELL_TIMEOUT_S, TRIES, Limits, judge_tasks
from labkit.grading.rebuild import chapters, setups
from labkit.grading.reports import write_reports
from labkit.grading.roster import Collected, RosterError, student_of
from labkit.grading.sandbox import missing
from labkit.grading.second_pass import second_pass
from labkit.grading.submission import Submission, find_submissions, read_submission
from labkit.grading.trusted import Task
from labkit.grading.verbatim import NOTE, stands_in_the_book
from labkit.grading.workers import workers_of

REPORT_EVERY_S = 5
PENDING = "pending"
MISSING = "Missing: no cell has this exercise's id; write into the cells that the chapter came with."


@dataclass(frozen=True)
class Course:
    """What a teacher wants graded: `points` of an assignment's exercises, or none for all chapters handed in."""

    students: tuple[str, ...] = ()
    points: Mapping[str, float] = field(default_factory=dict)
    collected: Mapping[str, Collected] = field(default_factory=dict)
    deadline: policy.Deadline | None = None
    by_hand: Path | None = None

    def worth(self, id: str) -> float:
        """The points of an exercise."""
        return self.points[id] if self.points else exercise(id).points

    @property
    def exercises(self) -> list[str]:
        """The exercises to grade, in the book's order."""
        return [id for id in exercise_ids() if id in self.points or not self.points]


@dataclass(frozen=True)
class HandedIn:
    """A file, whose it is, and the name that it has in reports."""

    name: str
    student: str
    submission: Submission


def read_assignment(path: Path) -> dict[str, float]:
    """The exercises and points of the `course.json` of a release."""
    try:
        points = json.loads(path.read_text(encoding="utf-8"))["points"]
        found = {id: float(points[id]) for id in points}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RosterError(f"{path} is no `course.json` of a release: {error}") from error
    if unknown := sorted(found.keys() - {*exercise_ids()}):
        raise RosterError(f"{path} names exercises that are not in this book: {', '.join(unknown)}")
    return found


def handed_in(paths: list[Path], course: Course) -> list[HandedIn]:
    """Every file at the paths, read."""
    known = list(dict.fromkeys([*course.students, *course.collected]))
    files = []
    for found in find_submissions(paths):
        student = student_of(found.path, found.root, paths, known)
        submission = Submission(found.path, complaint=found.complaint) if found.complaint else None
        files.append(HandedIn(shown(found.path), student, submission or read_submission(found.path)))
    return files


def grade(
    paths: list[Path],
    out: Path,
    course: Course | None = None,
    seed: int | None = None,
    cell_timeout_s: float = CELL_TIMEOUT_S,
    scheduler: str | None = None,
    run: bool = False,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Grade]:
    """Grade notebooks, or folders of them, and keep the reports in `out` up to date meanwhile.

    What `out` knows of an earlier run with the same seed is not judged again. `seed` and the next ones draw the sizes
    that all are checked on; if it is None it is that of the earlier run, or drawn.

    Parameters
    ----------
    paths
        Notebooks and folders: one folder that holds a folder for each student, or one path for each.
    scheduler
        Address of the scheduler of a Dask cluster, whose workers judge; the cores of this machine if left out.
    run
        Whether the answers are then run as code too, in a sandbox, which changes no points.
    progress
        Is told how many answers are graded, and of how many.
    """
    course = course or Course()
    out.mkdir(parents=True, exist_ok=True)
    journal = Journal(out, seed)
    files = handed_in(paths, course)
    ledger = _Ledger(files, course, journal.seed)
    solutions = chapters()
    texts = {chapter: setups(solutions[chapter]) for chapter in solutions}
    tasks, digests = [], {}
    for file in files:
        for task in _tasks(file):
            read = set()
            for id in task.answers:
                digests[task.key[0], id] = digest = journal.digest(texts[task.key[1]], task.answers, id)
                if judgement := journal.judgement(digest):
                    ledger.judged(task.key[0], id, judgement)
                if judgement or id not in course.exercises:
                    read.add(id)
            tasks.append(replace(task, read=frozenset(read)))
    reporting = _Reporting(ledger, out, files)
    waiting = [task for task in tasks if task.pending]
    with workers_of(scheduler) as (executor, workers):
        limits = Limits(journal.seed, cell_timeout_s)
        progress(*ledger.progress)
        for task, id, judgement in judge_tasks(waiting, texts, limits, executor, workers):
            ledger.judged(task.key[0], id, judgement)
            if judgement is not None:
                journal.add(digests[task.key[0], id], judgement)
            progress(*ledger.progress)
            reporting.now_and_then()
        reporting.remark = missing() if run else ""
        if run and not reporting.remark:
            for name, id, ran in second_pass(tasks, solutions, executor):
                ledger.ran(name, id, ran)
                reporting.now_and_then()
    return reporting.write()


def _tasks(file: HandedIn) -> Iterator[Task]:
    """The answers to the book's exercises, by chapter and in the book's order."""
    known = [id for id in exercise_ids() if id in file.submission.answers]
    for chapter in dict.fromkeys(id[:2] for id in known):
        yield Task((file.name, chapter), {id: file.submission.answers[id] for id in known if id[:2] == chapter})


class _Ledger:
    """The rows of all files, whose points come in one after the other."""

    def __init__(self, files: list[HandedIn], course: Course, seed: int):
        self.course, self.seed = course, seed
        self.files = {file.name: file for file in files}
        self.rows: dict[tuple[str, str], Grade] = {}
        for file in files:
            for row in self._before(file):
                self.rows[row.submission, row.exercise] = row

    @property
    def progress(self) -> tuple[int, int]:
        """How many rows are graded, and of how many."""
        return sum(row.reason != PENDING for row in self.rows.values()), len(self.rows)

    def _before(self, file: HandedIn) -> Iterator[Grade]:
        """What can be told from the file alone."""
        submission = file.submission
        seen = {*submission.answers, *submission.refused}
        present = {submission.chapter} | {id[:2] for id in seen}
        asked = [id for id in self.course.exercises if id[:2] in present]
        if not asked:
            complaint = submission.complaint or "The notebook holds no exercise that is graded here."
            yield self._row(file, "", 0, 0, complaint, "unreadable")
        for id in asked:
            worth = self.course.worth(id)
            if id in submission.answers:
                yield self._row(file, id, None, worth, "Not graded yet.", PENDING)
            elif id in submission.refused:
                yield self._row(file, id, 0, worth, f"Duplicate: {submission.refused[id]}", "duplicate")
            else:
                yield self._row(file, id, 0, worth, MISSING, "missing")

    def _row(self, file, id, points, out_of, message, reason, **more):
        row = Grade(file.student, file.name, id, points, out_of, printable(message), self.seed, reason, **more)
        if id in file.submission.recovered:
            row = policy.noted(row, "The cell had lost its id and was found by its function.")
        if id in file.submission.answers and stands_in_the_book(id, file.submission.answers[id]):
            row = policy.noted(row, NOTE)
        return row

    def judged(self, name: str, id: str, judgement: Judgement | None) -> None:
        """Put a judgement into its row, if the exercise is of the assignment."""
        if (name, id) not in self.rows:
            return
        file, most = self.files[name], self.course.worth(id)
        if judgement is None:
            message = f"Not graded: the judge ended {TRIES} times over this answer. This is no zero: grade it by hand."
            self.rows[name, id] = self._row(file, id, None, most, message, "not graded")
            return
        points = most if judgement.reason == SOLVED else 0
        launch = printable(judgement.launch)
        more = {"line": judgement.line, "launch": launch, "hidden": "drawn with seed" in launch}
        self.rows[name, id] = self._row(file, id, points, most, judgement.message, judgement.reason, **more)

    def ran(self, name: str, id: str, ran: str) -> None:
        """Note what became of an answer that was run."""
        if (name, id) in self.rows:
            self.rows[name, id] = replace(self.rows[name, id], ran=printable(ran))

    def grades(self) -> list[Grade]:
        """The rows as they stand: one for each student and exercise, missing ones too, by the teacher's rules."""
        rows = list(self.rows.values())
        if self.course.deadline:
            collected = self.course.collected
            rows = [self.course.deadline.applied(row, collected.get(row.student)) for row in rows]
        rows = policy.best(rows)
        rows += self._absent(rows)
        if self.course.by_hand:
            rows = policy.by_hand(rows, self.course.by_hand)
        return sorted(rows, key=lambda row: (row.student, row.exercise, row.submission))

    def _absent(self, rows):
        """Rows for what a student of the roster did not hand in."""
        wanted = self.course.exercises if self.course.points else sorted({row.exercise for row in rows} - {""})
        there = {(row.student, row.exercise) for row in rows}
        present = {row.student for row in rows} if self.course.points else set()
        for student in dict.fromkeys([*self.course.students, *sorted(present)]):
            collected = self.course.collected.get(student)
            why = printable(collected.problem) if collected and collected.problem else "Nothing was handed in."
            for id in [id for id in wanted if (student, id) not in there] if wanted else []:
                yield Grade(student, "", id, 0, self.course.worth(id), why, self.seed, "missing")


class _Reporting:
    """Writes the reports again and again, and not too often."""

    def __init__(self, ledger: _Ledger, out: Path, files: list[HandedIn]):
        self.ledger, self.out = ledger, out
        self.texts = {(file.name, id): text for file in files for id, text in file.submission.answers.items()}
        self.written_s = 0.0
        self.remark = ""

    def now_and_then(self) -> None:
        """Write, if it is some time since."""
        if time.monotonic() - self.written_s > REPORT_EVERY_S:
            self.write()

    def write(self) -> list[Grade]:
        """Write what is known."""
        grades = self.ledger.grades()
        write_reports(grades, self.out, self.texts, self.remark)
        self.written_s = time.monotonic()
        return grades

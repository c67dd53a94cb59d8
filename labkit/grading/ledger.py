"""The ledger of a class: one row per file and graded exercise, with what is known of it so far."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from labkit.exercises import chapter_of, exercise_ids, index_in_book, known_ids
from labkit.grading import policy
from labkit.grading.assessment import Assessment
from labkit.grading.collected import Collected
from labkit.grading.files import printable_path
from labkit.grading.grades import Grade, make_printable
from labkit.grading.judge import SOLVED, Judgement
from labkit.grading.judging import TRIES
from labkit.grading.reports.page import Picture
from labkit.grading.submission import Submission
from labkit.grading.verbatim import is_book_solution

PENDING = "pending"
MISSING = "Missing: no cell has this exercise's id; write into the cells that the chapter came with."


@dataclass(frozen=True)
class HandedIn:
    """A file with its student, and its name in reports, which holds nothing of the path to the class's folder."""

    name: str
    student: str
    submission: Submission
    is_late: bool = False  # of the late one of two collected commits


class Ledger:
    """The rows of all files, to which judgements are added one after the other."""

    def __init__(self, files: list[HandedIn], assessment: Assessment, seed: int):
        self.assessment, self.seed = assessment, seed
        self.files = {file.name: file for file in files}
        self.rows: dict[tuple[str, str], Grade] = {}
        self.pictures: dict[tuple[str, str], Picture] = {}
        for file in files:
            for row in self._make_rows(file):
                self.rows[row.submission, row.exercise] = row

    @property
    def progress(self) -> tuple[int, int]:
        """The number of graded rows, and of all rows."""
        return sum(row.reason != PENDING for row in self.rows.values()), len(self.rows)

    def _make_rows(self, file: HandedIn) -> Iterator[Grade]:
        """Yield the rows of a file before its answers are judged."""
        submission = file.submission
        found = {*submission.answers, *submission.refused}
        chapters = {submission.chapter} | {chapter_of(id) for id in found}
        expected = [id for id in self.assessment.exercises if chapter_of(id) in chapters]
        of_earlier_editions = found - {*expected, *exercise_ids()}
        ids = expected + [id for id in known_ids() if id in of_earlier_editions and self.assessment.grades(id)]
        if not ids:
            complaint = _name_fault(file) or "The notebook holds no exercise that is graded here."
            yield self._row(file, "", 0, 0, complaint, "unreadable")
        for id in ids:
            worth = self.assessment.worth(id)
            if submission.complaint:
                yield self._row(file, id, 0, worth, _name_fault(file), "unreadable")
            elif id in submission.answers:
                yield self._row(file, id, None, worth, "Not graded yet.", PENDING)
            elif id in submission.refused:
                yield self._row(file, id, 0, worth, f"Duplicate: {submission.refused[id]}", "duplicate")
            else:
                yield self._row(file, id, 0, worth, MISSING, "missing")

    def _row(self, file, id, points, out_of, message, reason, **more):
        row = Grade(file.student, file.name, id, points, out_of, make_printable(message), self.seed, reason, **more)
        if id in file.submission.recovered:
            row = policy.add_note(row, "The cell had lost its id and was found by its function.")
        return row

    def add_judgement(self, name: str, id: str, judgement: Judgement | None) -> None:
        """Put a judgement into its row if the exercise is part of the assignment."""
        if (name, id) not in self.rows:
            return
        file, worth = self.files[name], self.assessment.worth(id)
        if judgement is None:
            message = f"Not graded, and not zero: the judge ended {TRIES} times over this answer. Grade it by hand."
            self.rows[name, id] = self._row(file, id, None, worth, message, "not graded")
            return
        solved = judgement.reason == SOLVED
        points = worth if solved else 0
        more = {
            "line": judgement.line,
            "launch": make_printable(judgement.launch),
            "hidden": judgement.hidden,
            "cause": make_printable(judgement.cause),
            "pattern": "" if judgement.hidden else make_printable(judgement.pattern),
            "verbatim": solved and is_book_solution(id, file.submission.answers[id]),
        }
        self.rows[name, id] = self._row(file, id, points, worth, judgement.message, judgement.reason, **more)
        if judgement.picture and not judgement.hidden:
            self.pictures[name, id] = Picture(judgement.picture, make_printable(judgement.pictured))

    def add_run(self, name: str, id: str, result: str) -> None:
        """Put the result of running an answer as code into its row."""
        if (name, id) in self.rows:
            self.rows[name, id] = replace(self.rows[name, id], ran=make_printable(result))

    def grades(self) -> list[Grade]:
        """Return the rows by the teacher's rules so far: one per student and exercise, missing ones too."""
        collected = self.assessment.collected
        rows = [policy.set_aside_stale(row, collected.get(row.student)) for row in self.rows.values()]
        if self.assessment.deadline:
            rows = [self.assessment.deadline.apply(row, self._find_commit(row)) for row in rows]
        rows = policy.choose_best(rows)
        rows += self._make_absent_rows(rows)
        if self.assessment.by_hand:
            rows = policy.apply_points_by_hand(rows, self.assessment.by_hand)
        return sorted(rows, key=lambda row: (row.student, index_in_book(row.exercise), row.submission))

    def _find_commit(self, row: Grade) -> Collected | None:
        """Return what was collected of the student, with the commit that the row's file is of."""
        collected = self.assessment.collected.get(row.student)
        return collected.late if collected and self.files[row.submission].is_late else collected

    def _make_absent_rows(self, rows):
        """Yield rows for what a student of the roster or collection did not hand in, or what was not fetched."""
        handed_in = {(row.student, row.exercise) for row in rows}
        ids, students = sorted({row.exercise for row in rows} & {*self.assessment.exercises}, key=index_in_book), []
        if self.assessment.points:
            ids, students = self.assessment.exercises, sorted({row.student for row in rows})
        unknown = [file for file in self.files.values() if file.submission.complaint and not file.submission.chapter]
        faults = {file.student: _name_fault(file) for file in unknown}
        present = {row.student for row in rows}
        for student in dict.fromkeys([*(self.assessment.students or self.assessment.collected), *students]):
            collected = self.assessment.collected.get(student)
            if collected is None and self.assessment.collected and student not in present:
                collected = Collected(student, fetched=False)
            why = faults.get(student) or (collected.told if collected else "Nothing was handed in.")
            points, reason = 0, "unreadable" if student in faults else "missing"
            was_fetched = collected is None or collected.fetched
            if not was_fetched:
                points, reason = None, "not graded"
            for id in [id for id in ids if (student, id) not in handed_in]:
                yield Grade(student, "", id, points, self.assessment.worth(id), make_printable(why), self.seed, reason)
            if not ids and not was_fetched:
                yield Grade(student, "", "", None, 0, make_printable(why), self.seed, reason)


def _name_fault(file: HandedIn) -> str:
    """Return the reason why a file could not be read, with its name."""
    complaint = file.submission.complaint
    return f"{printable_path(file.submission.path.name)}: {complaint}" if complaint else ""

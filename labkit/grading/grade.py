"""From files handed in to points: one grade for each student and exercise, with the reason for it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from labkit.exercises import chapter_of, exercise_ids
from labkit.grading.assessment import Assessment
from labkit.grading.feedback import write_feedback
from labkit.grading.files import Found, printable_path
from labkit.grading.grades import Grade
from labkit.grading.journal import Journal
from labkit.grading.judging import CELL_TIMEOUT_S, Limits, judge_tasks
from labkit.grading.ledger import HandedIn, Ledger
from labkit.grading.rebuild import read_chapters, read_setups
from labkit.grading.reports import write_reports
from labkit.grading.roster import identify_student
from labkit.grading.sandbox import explain_missing
from labkit.grading.second_pass import run_as_programs
from labkit.grading.submission import Submission, find_submissions, read_submission
from labkit.grading.trusted import Task
from labkit.grading.workers import start_workers

REPORT_EVERY_S = 5


def read_files(found: list[Found], paths: list[Path], assessment: Assessment) -> list[HandedIn]:
    """Every file that was found at the paths, read."""
    known = list(dict.fromkeys([*assessment.students, *assessment.collected]))
    files = []
    for entry in found:
        student = identify_student(entry.path, entry.root, paths, known)
        submission = Submission(entry.path, complaint=entry.complaint) if entry.complaint else None
        files.append(HandedIn(printable_path(entry.path), student, submission or read_submission(entry.path)))
    return files


def grade(
    paths: list[Path],
    out: Path,
    assessment: Assessment | None = None,
    seed: int | None = None,
    cell_timeout_s: float = CELL_TIMEOUT_S,
    scheduler: str | None = None,
    run: bool = False,
    progress: Callable[[int, int], None] = lambda done, of: None,
    tell: Callable[[str], None] = lambda sentence: None,
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
    tell
        Is told in a sentence which folders are left out, and who is not on the roster.
    """
    assessment = assessment or Assessment()
    out.mkdir(parents=True, exist_ok=True)
    journal = Journal(out, seed, paths)
    found, solutions_found = find_submissions(paths)
    for folder in dict.fromkeys(path.parent for path in solutions_found):
        tell(f"Left out: the book's own solutions in {printable_path(folder)}")
    files = read_files(found, paths, assessment)
    strays = sorted({file.student for file in files} - assessment.students.keys())
    if assessment.students and strays:
        tell(f"Not on the roster, and graded all the same: {', '.join(strays)}")
    ledger = Ledger(files, assessment, journal.seed)
    solutions = read_chapters()
    texts = {chapter: read_setups(solutions[chapter]) for chapter in solutions}
    tasks, digests = [], {}
    for file in files:
        for task in _make_tasks(file):
            read = set()
            for id in task.answers:
                digests[task.key[0], id] = digest = journal.digest(texts[task.key[1]], task.answers, id)
                if judgement := journal.judgement(digest):
                    ledger.judged(task.key[0], id, judgement)
                if judgement or id not in assessment.exercises:
                    read.add(id)
            tasks.append(replace(task, read=frozenset(read)))
    reporting = _Reporter(ledger, out, files)
    waiting = [task for task in tasks if task.pending]
    with start_workers(scheduler) as (executor, workers):
        limits = Limits(journal.seed, cell_timeout_s)
        progress(*ledger.progress)
        for task, id, judgement in judge_tasks(waiting, texts, limits, executor, workers):
            ledger.judged(task.key[0], id, judgement)
            if judgement is not None:
                journal.add(digests[task.key[0], id], judgement)
            progress(*ledger.progress)
            reporting.now_and_then()
        reporting.remark = explain_missing() if run else ""
        if run and not reporting.remark:
            for name, id, ran in run_as_programs(tasks, solutions, executor):
                ledger.ran(name, id, ran)
                reporting.now_and_then()
    grades = reporting.write()
    write_feedback(files, grades, out)
    return grades


def _make_tasks(file: HandedIn) -> Iterator[Task]:
    """The answers to the book's exercises, by chapter and in the book's order."""
    known = [id for id in exercise_ids() if id in file.submission.answers]
    for chapter in dict.fromkeys(map(chapter_of, known)):
        answers = {id: file.submission.answers[id] for id in known if chapter_of(id) == chapter}
        yield Task((file.name, chapter), answers)


class _Reporter:
    """Writes the reports again and again, and not too often."""

    def __init__(self, ledger: Ledger, out: Path, files: list[HandedIn]):
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
        write_reports(grades, self.out, self.texts, self.remark, self.ledger.pictures, self.ledger.assessment)
        self.written_s = time.monotonic()
        return grades

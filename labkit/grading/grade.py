"""Grading of files that were handed in: one grade per student and exercise, with its reason."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, replace
from pathlib import Path

from labkit.exercises import chapter_of, known_ids
from labkit.exercises.own import own_folder
from labkit.grading.assessment import Assessment
from labkit.grading.feedback import write_feedback
from labkit.grading.files import LATE, Found, name_roots, printable_path
from labkit.grading.grades import Grade
from labkit.grading.journal import Journal
from labkit.grading.judge import Judgement
from labkit.grading.judging import CELL_TIMEOUT_S, Limits, judge_tasks
from labkit.grading.ledger import HandedIn, Ledger
from labkit.grading.policy import LatePolicy
from labkit.grading.rebuild import read_chapters, read_setups
from labkit.grading.reports import replace_file, write_reports
from labkit.grading.reports.tables import make_csv
from labkit.grading.roster import identify_student
from labkit.grading.sandbox import explain_missing
from labkit.grading.second_pass import run_as_programs
from labkit.grading.shard import Shard
from labkit.grading.similar import Group, find_similar
from labkit.grading.submission import find_submissions, read_submission, refuse_file
from labkit.grading.trusted import Task
from labkit.grading.work_log import FILE as WORK_FILE
from labkit.grading.work_log import Attempts, read_work_logs
from labkit.grading.workers import start_workers

REPORT_EVERY_S = 5


def read_files(found: list[Found], paths: list[Path], assessment: Assessment) -> list[HandedIn]:
    """Read every file that was found at the paths; leave out what does not count by the policy on late commits."""
    students = list(dict.fromkeys([*assessment.students, *assessment.collected]))
    root_names = name_roots(paths)
    files = []
    for entry in found:
        student = identify_student(entry.path, entry.root, paths, students)
        submission = refuse_file(entry.path, entry.complaint) if entry.complaint else None
        inside = entry.path.relative_to(entry.root).as_posix() if entry.path != entry.root else ""
        name = inside if inside and len(paths) == 1 else f"{root_names[entry.root]}/{inside}".rstrip("/")
        is_late = inside.startswith(f"{LATE}/") or entry.root.parent.name == LATE
        files.append(HandedIn(printable_path(name), student, submission or read_submission(entry.path), is_late))
    return files if assessment.late_policy is LatePolicy.BETTER else _keep_last(files, assessment)


def _keep_last(files, assessment):
    """Leave out the files in time of students who have a late commit."""
    late = {collected.student for collected in assessment.collected.values() if collected.late_commit}
    late |= {file.student for file in files if file.is_late}
    return [file for file in files if file.is_late or file.student not in late]


def grade(
    paths: list[Path],
    out: Path,
    assessment: Assessment | None = None,
    seed: int | None = None,
    *,
    cell_timeout_s: float = CELL_TIMEOUT_S,
    scheduler: str | None = None,
    workers: int | None = None,
    run: bool = False,
    progress: Callable[[int, int], None] = lambda done, of: None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> list[Grade]:
    """Grade notebooks, or folders of them, and keep the reports in `out` up to date meanwhile.

    Answers that an earlier run, or shards, with the same seed judged in `out` are not judged again.

    Parameters
    ----------
    paths
        Notebooks and folders: one folder that holds a folder per student, or one path per student.
    seed
        Seed of the random sizes on which all are checked; if None, that of the earlier run, or a random one.
    scheduler
        Address of the scheduler of a Dask cluster, whose workers judge; if None, the cores of this machine.
    workers
        Number of kernels at a time on this machine; if None, as many as cores and memory of this process allow.
    run
        Run the answers as code too, in a sandbox, which changes no points.
    progress
        Called with the number of graded answers, and of all.
    tell
        Called with a sentence on folders that are left out, and on students who are not on the roster.
    """
    assessment = assessment or Assessment()
    handed_in = _Class(paths, out, assessment, seed, tell)
    files, ledger = handed_in.files, handed_in.ledger
    reporter = _Reporter(ledger, out, files)
    with start_workers(scheduler, workers) as (executor, num_workers):
        progress(*ledger.progress)
        for _ in handed_in.judge(handed_in.tasks, cell_timeout_s, executor, num_workers):
            progress(*ledger.progress)
            reporter.write_if_due()
        reporter.remark = explain_missing() if run else ""
        if run and not reporter.remark:
            for name, id, result in run_as_programs(handed_in.tasks, handed_in.chapters, executor):
                ledger.add_run(name, id, result)
                reporter.write_if_due()
    answers = ((file.student, file.submission.answers) for file in files)
    grades = reporter.write(find_similar(answers, assessment.exercises))
    write_feedback(files, grades, out)
    if logs := read_work_logs(paths, [*assessment.students, *assessment.collected]):
        replace_file(out / WORK_FILE, make_csv(list(map(asdict, logs)), list(Attempts.__dataclass_fields__)))
    return grades


def judge_shard(
    paths: list[Path],
    out: Path,
    shard: Shard,
    assessment: Assessment | None = None,
    seed: int | None = None,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[int, int]:
    """Judge one part of the same files, in as many processes or on as many machines as there are parts.

    No report is written: `grade` does so where the judgements of all parts stand in `out`, and judges what is missing.

    Returns
    -------
    judged, open
        The numbers of answers that were judged now, and of those that have no judgement still.
    """
    handed_in = _Class(paths, out, assessment or Assessment(), seed, shard=shard)
    tasks = shard.take(handed_in.tasks)
    total, judged = sum(len(task.pending) for task in tasks), 0
    with start_workers(scheduler, workers) as (executor, num_workers):
        progress(0, total)
        for done, judgement in enumerate(handed_in.judge(tasks, CELL_TIMEOUT_S, executor, num_workers), 1):
            judged += judgement is not None
            progress(done, total)
    return judged, total - judged


class _Class:
    """All that was handed in, with what is known of it."""

    def __init__(
        self,
        paths: list[Path],
        out: Path,
        assessment: Assessment,
        seed: int | None,
        tell: Callable[[str], None] = lambda sentence: None,
        shard: Shard | None = None,
    ):
        out.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(out, seed, paths, shard)
        found, book_solutions = find_submissions(paths)
        for folder in dict.fromkeys(path.parent for path in book_solutions):
            tell(f"Left out: the book's own solutions in {printable_path(folder)}")
        self.files = read_files(found, paths, assessment)
        for sentence in _find_oddities(self.files, assessment):
            tell(sentence)
        self.ledger = Ledger(self.files, assessment, self.journal.seed)
        self.ledger.grades()  # refuses points by hand that name no row here, and not after an hour of judging
        self.chapters = read_chapters()
        self.setups = {chapter: read_setups(self.chapters[chapter]) for chapter in self.chapters}
        self.digests: dict[tuple[str, str], str] = {}  # by file and exercise
        self.tasks = [self._leave_out_known(task) for file in self.files for task in _make_tasks(file)]

    def _leave_out_known(self, task: Task) -> Task:
        """Mark the answers that are judged already, or not graded here, as done."""
        done = set()
        for id in task.answers:
            digest = self.journal.digest(self.setups[task.chapter], task.answers, id)
            self.digests[task.file, id] = digest
            if judgement := self.journal.judgement(digest):
                self.ledger.add_judgement(task.file, id, judgement)
            if judgement or not self.ledger.assessment.grades(id):
                done.add(id)
        return replace(task, done=frozenset(done))

    def judge(
        self, tasks: list[Task], cell_timeout_s: float, executor: Executor, num_workers: int
    ) -> Iterator[Judgement | None]:
        """Judge what is left of the tasks; yield each judgement when it stands in ledger and journal."""
        waiting = [task for task in tasks if task.pending]
        limits = Limits(self.journal.seed, cell_timeout_s, str(own_folder() or ""))
        for task, id, judgement in judge_tasks(waiting, self.setups, limits, executor, num_workers):
            self.ledger.add_judgement(task.file, id, judgement)
            if judgement is not None:
                self.journal.add(self.digests[task.file, id], judgement)
            yield judgement


def _find_oddities(files: list[HandedIn], assessment: Assessment) -> Iterator[str]:
    """Yield sentences for the teacher on what may be a mistake of theirs."""
    strays = sorted({file.student for file in files} - assessment.students.keys())
    if assessment.students and strays:
        yield f"Not on the roster, and graded all the same: {', '.join(strays)}"
    for collected in assessment.collected.values():
        if not collected.fetched and (collected.student in assessment.students or not assessment.students):
            yield str(collected)
    if any(file.is_late for file in files) and not assessment.deadline:
        yield "Late commits were collected, and without a deadline they count in full."


def _make_tasks(file: HandedIn) -> Iterator[Task]:
    """Yield the answers to the book's exercises, one task per chapter, in the book's order."""
    ids = [id for id in known_ids() if id in file.submission.answers]
    for chapter in dict.fromkeys(map(chapter_of, ids)):
        answers = {id: file.submission.answers[id] for id in ids if chapter_of(id) == chapter}
        yield Task(file.name, chapter, answers)


class _Reporter:
    """Writes the reports again and again, but not too often."""

    def __init__(self, ledger: Ledger, out: Path, files: list[HandedIn]):
        self.ledger, self.out = ledger, out
        self.texts = {(file.name, id): text for file in files for id, text in file.submission.answers.items()}
        self.last_write_s = 0.0
        self.remark = ""

    def write_if_due(self) -> None:
        """Write if the last time is some seconds ago."""
        if time.monotonic() - self.last_write_s > REPORT_EVERY_S:
            self.write()

    def write(self, similar: Sequence[Group] | None = None) -> list[Grade]:
        """Write the grades so far, and the groups of similar answers once they are known."""
        grades, ledger = self.ledger.grades(), self.ledger
        write_reports(grades, self.out, self.texts, self.remark, ledger.pictures, ledger.assessment, similar)
        self.last_write_s = time.monotonic()
        return grades

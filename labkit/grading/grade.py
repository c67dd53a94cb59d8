"""From files handed in to points: one grade an exercise, with the reason for it."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from secrets import randbits

from labkit.exercises import exercise, exercise_ids
from labkit.grading.judge import SOLVED, Judgement
from labkit.grading.judging import CELL_TIMEOUT_S, TRIES, Limits, judge_tasks
from labkit.grading.rebuild import setups, solved_chapters
from labkit.grading.submission import Submission, find_submissions, read_submission
from labkit.grading.trusted import Task


@dataclass(frozen=True)
class Grade:
    """What one exercise of one file earned; a file without any answer has a row with no exercise.

    `points` is None where an answer could not be graded. `reason` is one word, that of the verdict where there is one;
    `line` and `launch` are what the message speaks of. `seed` drew the sizes of the checks: grading with it draws them
    again.
    """

    submission: str
    exercise: str
    points: int | None
    out_of: int
    message: str
    seed: int | None = None
    reason: str = ""
    line: int | None = None
    launch: str = ""


def grade(paths: list[Path], cell_timeout_s: float = CELL_TIMEOUT_S, seed: int | None = None) -> list[Grade]:
    """Grade notebooks, or folders of them.

    A file is graded on every exercise of the chapters that it answers anything of. `seed` and the next ones draw the
    sizes that all of them are checked on; each call draws others if it is None.
    """
    limits = Limits(randbits(32) if seed is None else seed, cell_timeout_s)
    submissions = [read_submission(path) for path in find_submissions(paths)]
    rows = [row for submission in submissions for row in unanswered(submission, limits.seed)]
    tasks = [task for submission in submissions for task in tasks_of(submission)]
    return sorted([*rows, *judged(tasks, limits)], key=lambda row: (row.submission, row.exercise))


def unanswered(submission: Submission, seed: int) -> list[Grade]:
    """The rows that can be told from the file alone."""
    file = str(submission.path)
    seen = {*submission.answers, *submission.refused}
    chapters = {submission.chapter} | {id[:2] for id in seen}
    known = [id for id in exercise_ids() if id[:2] in chapters]
    if not known:
        message = submission.complaint or "The notebook holds no exercise of this book."
        return [Grade(file, "", 0, 0, message, seed, "unreadable")]
    missing = "Missing: no cell has this exercise's id; write into the cells that the chapter came with."
    why = {id: ("duplicate", f"Duplicate: {said}") for id, said in submission.refused.items()}
    rows = {id: why.get(id, ("missing", missing)) for id in known if id not in submission.answers}
    return [Grade(file, id, 0, exercise(id).points, said, seed, reason) for id, (reason, said) in rows.items()]


def tasks_of(submission: Submission) -> list[Task]:
    """What is to be judged: the answers to the book's exercises, by chapter and in the book's order."""
    known = [id for id in exercise_ids() if id in submission.answers]
    chapters = dict.fromkeys(id[:2] for id in known)
    return [
        Task((str(submission.path), chapter), {id: submission.answers[id] for id in known if id[:2] == chapter})
        for chapter in chapters
    ]


def judged(tasks: list[Task], limits: Limits) -> Iterator[Grade]:
    """The grades of the answers, as they come."""
    solutions = solved_chapters()
    texts = {chapter: setups(solutions[chapter]) for chapter in {task.key[1] for task in tasks}}
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as executor:
        for task, id, judgement in judge_tasks(tasks, texts, limits, executor, workers):
            yield _grade(task.key[0], id, judgement, limits.seed)


def _grade(file: str, id: str, judgement: Judgement | None, seed: int) -> Grade:
    most = exercise(id).points
    if judgement is None:
        message = f"Not graded: the process that judges this answer ended {TRIES} times. This is no zero: look at it."
        return Grade(file, id, None, most, message, seed, "not graded")
    points = most if judgement.reason == SOLVED else 0
    return Grade(file, id, points, most, judgement.message, seed, judgement.reason, judgement.line, judgement.launch)

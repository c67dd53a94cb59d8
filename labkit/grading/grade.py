"""From files handed in to points: one grade an exercise, with the reason for it."""

from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbits

from labkit.book.chapter import exercise_cell_id
from labkit.exercises import exercise, exercise_ids
from labkit.grading.judging import Judgement, judge_all
from labkit.grading.rebuild import rebuild, setups, solved_chapters
from labkit.grading.run import CELL_TIMEOUT_S, CellResult, run_notebooks
from labkit.grading.submission import Submission, find_submissions, read_submission


@dataclass(frozen=True)
class Grade:
    """What one exercise of one file earned; a file without any answer has a row with no exercise.

    `seed` drew the sizes of the checks: grading with it draws them again.
    """

    submission: str
    exercise: str
    points: int
    out_of: int
    message: str
    seed: int | None = None


def grade(paths: list[Path], cell_timeout_s: float = CELL_TIMEOUT_S, seed: int | None = None) -> list[Grade]:
    """Grade notebooks, or folders of them.

    A file is graded on every exercise of the chapters that it answers anything of. `seed` and the next ones draw the
    sizes that all of them are checked on; each call draws others if it is None. Answers are judged from their text
    before any of them runs, so that none can change what is said of another.
    """
    seed = randbits(32) if seed is None else seed
    grades: dict[tuple[str, str], Grade] = {}
    waiting: dict[tuple[str, str], dict[str, str]] = {}  # (file, chapter) -> answers still to be run
    for path in find_submissions(paths):
        submission = read_submission(path)
        for row in _before_running(submission):
            grades[row.submission, row.exercise] = row
        for id, answer in sorted(submission.answers.items()):  # as they stand in the trusted notebook
            if id in exercise_ids():
                waiting.setdefault((str(path), id[:2]), {})[id] = answer
    solutions = solved_chapters()
    jobs = {key: (setups(solutions[key[1]]), dict(answers)) for key, answers in waiting.items()}
    judgements = judge_all(jobs, seed, cell_timeout_s)
    while waiting:
        names = {f"{number:05d}-{chapter}": (file, chapter) for number, (file, chapter) in enumerate(waiting)}
        results = run_notebooks(
            {name: rebuild(solutions[key[1]], waiting[key]) for name, key in names.items()}, cell_timeout_s
        )
        for name, (file, chapter) in names.items():
            for row in _grades(file, waiting[file, chapter], results[name], judgements[file, chapter], cell_timeout_s):
                grades[row.submission, row.exercise] = row
                del waiting[file, chapter][row.exercise]
        waiting = {key: answers for key, answers in waiting.items() if answers}
    rows = sorted(grades.values(), key=lambda row: (row.submission, row.exercise))
    return [replace(row, seed=seed) for row in rows]


def _before_running(submission: Submission) -> list[Grade]:
    """What can be said from the file alone."""
    file = str(submission.path)
    seen = {*submission.answers, *submission.refused}
    chapters = {submission.chapter} | {id[:2] for id in seen}
    known = [id for id in exercise_ids() if id[:2] in chapters]
    if not known:
        return [Grade(file, "", 0, 0, submission.complaint or "The notebook holds no exercise of this book.")]
    rows = [_zero(file, id, f"Duplicate: {submission.refused[id]}") for id in known if id in submission.refused]
    rows += [
        _zero(
            file,
            id,
            "Missing: no cell has this exercise's id; write into the cells that the chapter came with.",
        )
        for id in known
        if id not in seen
    ]
    return rows


def _grades(
    file: str,
    answers: dict[str, str],
    results: dict[str, CellResult],
    judgements: dict[str, Judgement],
    cell_timeout_s: float,
) -> list[Grade]:
    """A grade for every answer up to the first that hung or killed the kernel; the rest run again."""
    rows = []
    for id in answers:
        cell = results.get(exercise_cell_id(id))
        hung = cell is None or cell.timed_out
        judgement = judgements.get(id)
        if hung or judgement is None:
            message = f"The answer ran longer than {cell_timeout_s:g} s, or ended the Python process."
            rows.append(_zero(file, id, message))
        elif not cell.passed:
            rows.append(_zero(file, id, f"The cell fails: {cell.said}"))
        elif not judgement.passed:
            rows.append(_zero(file, id, _reason(judgement.said)))
        else:
            points = exercise(id).points
            rows.append(Grade(file, id, points, points, "Solved."))
        if hung:
            return rows
    return rows


def _reason(said: str) -> str:
    """A verdict without its headline, which repeats what the row says."""
    return "\n".join(line.strip() for line in said.splitlines()[1:]) or said


def _zero(file: str, id: str, message: str) -> Grade:
    return Grade(file, id, 0, exercise(id).points, message)

"""The work logs of a class: attempts at each exercise. Students can write to their logs, so no point depends on one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from labkit.exercises import known_ids
from labkit.exercises.contents import current_id
from labkit.exercises.progress import WORK_LOG
from labkit.grading.collected import is_time
from labkit.grading.files import LATE, Unreadable, read_bytes
from labkit.grading.roster import identify_student

FILE = "work.csv"
NOTEBOOKS = "notebooks"  # the folder of a release that holds the log
MAX_ATTEMPTS = 10_000  # of a student


@dataclass(frozen=True)
class Attempts:
    """A student's checks of one exercise, with the times of the first, the last and the first that passed."""

    student: str
    exercise: str
    attempts: int
    first: str
    last: str
    solved: str = ""


def read_work_logs(paths: list[Path], students: list[str]) -> list[Attempts]:
    """Read the work logs in folders of students; skip lines that are not entries."""
    logs = {}  # by student; a late commit's log, which comes last, continues the one in time
    for root in paths:
        for folder in (".", "*", f"{LATE}/*"):
            for path in root.glob(f"{folder}/{NOTEBOOKS}/{WORK_LOG}"):
                logs[identify_student(path, root, paths, students)] = path
    rows = []
    for student, path in sorted(logs.items()):
        lines = list(islice(_read_lines(path), MAX_ATTEMPTS))
        for id in known_ids():
            own = [(time, solved) for its_id, time, solved in lines if its_id == id]
            if own:
                solved = next((time for time, is_solved in own if is_solved), "")
                rows.append(Attempts(student, id, len(own), own[0][0], own[-1][0], solved))
    return rows


def _read_lines(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield exercise, time and success of each line."""
    try:
        lines = read_bytes(path).decode(errors="replace").splitlines()
    except Unreadable:
        return
    for line in lines:
        try:
            row: Any = json.loads(line)
            id, time, reason = (str(row[name]) for name in ("exercise", "time", "reason"))
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
        if is_time(time):
            yield current_id(id), time, reason == "solved"

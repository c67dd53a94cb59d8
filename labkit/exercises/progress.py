"""What a learner has tried and solved: a line per check in a file of the workspace, which editions leave alone."""

import json
from datetime import datetime
from pathlib import Path

from labkit.checking.verdict import Verdict
from labkit.exercises.contents import current_id

PROGRESS = ".labkit-progress.jsonl"  # beside the learner's notebooks
WORK_LOG = "work-log.jsonl"  # beside a student's notebooks, if the course says so; `labkit submit` hands it in
COURSE = Path("..", "course.json")  # of the release that the notebooks are in
LEDGER = ".labkit.json"  # of the workspace: marks a folder as one


def note(verdict: Verdict, folder: Path | None = None) -> None:
    """Add a check's outcome to the workspace, or to the work log of a course that keeps one.

    Elsewhere, and where the file cannot be written, do nothing.
    """
    folder, now = folder or Path.cwd(), datetime.now().astimezone().replace(microsecond=0)
    row = {"exercise": verdict.exercise, "points": verdict.points, "reason": verdict.reason}
    if (folder / LEDGER).is_file():
        _append(folder / PROGRESS, row | {"date": str(now.date())})
    if _keeps_work_log(folder / COURSE):
        _append(folder / WORK_LOG, row | {"time": now.isoformat()})


def _append(path: Path, row: dict) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError:  # a full or read-only disk is no reason to lose the verdict
        pass


def _keeps_work_log(course: Path) -> bool:
    try:
        content = json.loads(course.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("work_log") is True


def read(folder: Path | None = None) -> dict[str, int]:
    """Return the most points that each tried exercise has earned; its id is that of this edition.

    A line that was cut off is left out.
    """
    try:
        lines = ((folder or Path.cwd()) / PROGRESS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    points: dict[str, int] = {}
    for line in lines:
        try:
            row = json.loads(line)
            id, earned = current_id(row["exercise"]), int(row["points"])
        except (ValueError, KeyError, TypeError):
            continue
        points[id] = max(earned, points.get(id, 0))
    return points

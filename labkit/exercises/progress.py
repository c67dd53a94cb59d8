"""What a learner has tried and solved: a line per check in a file of the workspace, which editions leave alone."""

import json
from datetime import date
from pathlib import Path

from labkit.checking.verdict import Verdict
from labkit.exercises.contents import current_id

PROGRESS = ".labkit-progress.jsonl"  # beside the learner's notebooks
LEDGER = ".labkit.json"  # of the workspace: marks a folder as one


def note(verdict: Verdict, folder: Path | None = None) -> None:
    """Add a check's outcome to the workspace; outside of one, and where the file cannot be written, do nothing."""
    folder = folder or Path.cwd()
    if not (folder / LEDGER).is_file():
        return
    row = {"exercise": verdict.exercise, "points": verdict.points, "reason": verdict.reason, "date": str(date.today())}
    try:
        with (folder / PROGRESS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError:  # a full or read-only disk is no reason to lose the verdict
        pass


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

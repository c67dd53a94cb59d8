"""The `collected.json` of a collection: what came of each student's repository, and when they committed."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import MAXYEAR, MINYEAR, datetime
from pathlib import Path

from labkit.grading.roster import RosterError

FILE = "collected.json"


@dataclass(frozen=True)
class Collected:
    """What came of one line of the roster; `problem` says in a sentence what is missing, if anything is.

    `committed` is the committer's time of the commit, in ISO 8601: the student's clock wrote it.
    """

    student: str
    repository: str = ""
    commit: str = ""
    committed: str = ""
    notebooks: int = 0
    problem: str = ""

    def __post_init__(self):
        if self.committed and not is_time(self.committed):
            raise ValueError(f"{self.committed!r} is no time")

    @property
    def time(self) -> datetime | None:
        """When the commit was made, if it is known."""
        return datetime.fromisoformat(self.committed).astimezone() if self.committed else None

    def __str__(self):
        if not self.commit:
            return f"{self.student}: {self.problem}"
        files = "1 notebook" if self.notebooks == 1 else f"{self.notebooks} notebooks"
        return f"{self.student}: {files} of commit {self.commit[:7]}, {self.committed} {self.problem}".strip()


def is_time(written: str) -> bool:
    """Whether a text is a time in ISO 8601 that any clock on Earth can show."""
    try:
        return MINYEAR < datetime.fromisoformat(written).year < MAXYEAR
    except ValueError:
        return False


def read_collected(path: Path) -> dict[str, Collected]:
    """What was collected of each student."""
    try:
        rows = [Collected(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise RosterError(f"{path} is not what `labkit collect` writes: {error}") from error
    return {row.student: row for row in rows}


def to_json(rows: Iterable[Collected]) -> str:
    """The text of `collected.json`."""
    return json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n"

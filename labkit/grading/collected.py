"""The `collected.json` of a collection: the result for each student's repository, and the time of its commit."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import MAXYEAR, MINYEAR, datetime
from pathlib import Path

from labkit.grading.roster import RosterError

FILE = "collected.json"
MAX_TOLD = 5  # files that are left out


@dataclass(frozen=True)
class Collected:
    """The result of collecting one line of the roster."""

    student: str
    repository: str = ""
    commit: str = ""
    committed: str = ""  # the committer's time in ISO 8601: the student's clock wrote it
    notebooks: int = 0
    problem: str = ""  # a sentence for the teacher on what is missing
    left_out: tuple[str, ...] = ()  # files that were not taken, each with the reason
    late_commit: str = ""  # the last commit of all, if that of a deadline is another
    late_committed: str = ""
    fetched: bool = True  # False: the last fetch failed, and nothing is known of the work since `commit`

    def __post_init__(self):
        for written in filter(None, [self.committed, self.late_committed]):
            if not is_time(written):
                raise ValueError(f"{written!r} is not a time in ISO 8601")

    @property
    def time(self) -> datetime | None:
        """The time of the commit, if it is known."""
        return datetime.fromisoformat(self.committed).astimezone() if self.committed else None

    @property
    def late(self) -> "Collected":
        """The same student with the late commit as the one that counts, if there is one."""
        return replace(self, commit=self.late_commit, committed=self.late_committed) if self.late_commit else self

    @property
    def told(self) -> str:
        """A sentence for the student on work that is missing; it names nothing of the machine that collected."""
        if not self.fetched:
            return "Not graded: your repository could not be fetched. This does not count as zero."
        if not self.commit:
            return "Nothing was handed in: your repository has no commit that counts."
        none = "" if self.notebooks else f" No notebook was taken from commit {self.commit[:7]}."
        return f"Nothing was handed in.{none} {self.told_left_out}".strip()

    @property
    def told_left_out(self) -> str:
        """A sentence on the files that were left out, or ""."""
        more = len(self.left_out) - MAX_TOLD
        told = [*self.left_out[:MAX_TOLD], *([f"{more} more"] if more > 0 else [])]
        return f"Left out: {'; '.join(told)}." if told else ""

    def __str__(self):
        late = f"Late commit {self.late_commit[:7]}, {self.late_committed}." if self.late_commit else ""
        if not self.commit:
            return " ".join(filter(None, [f"{self.student}:", late, self.problem, self.told_left_out]))
        files = "1 notebook" if self.notebooks == 1 else f"{self.notebooks} notebooks"
        what = f"{files} of commit {self.commit[:7]}, {self.committed}"
        return " ".join(filter(None, [f"{self.student}: {what}", late, self.problem, self.told_left_out]))


def is_time(written: str) -> bool:
    """Tell whether a text is a time in ISO 8601 that exists in every time zone."""
    try:
        return MINYEAR < datetime.fromisoformat(written).year < MAXYEAR
    except ValueError:
        return False


def read_collected(path: Path) -> dict[str, Collected]:
    """Read what was collected, by student."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        rows = [Collected(**row | {"left_out": tuple(row.get("left_out", ()))}) for row in read]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise RosterError(f"{path} is not what `labkit collect` writes: {error}") from error
    return {row.student: row for row in rows}


def to_json(rows: Iterable[Collected]) -> str:
    """Return the text of `collected.json`."""
    return json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n"

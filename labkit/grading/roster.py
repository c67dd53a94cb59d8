"""Who should have handed in, and whose a file is."""

import csv
from pathlib import Path

from labkit.grading.files import shown


class RosterError(Exception):
    """A list of the teacher's that cannot be used; the message says what to do."""


def read_roster(path: Path) -> list[str]:
    """The students of a CSV with a column `student`."""
    return list(dict.fromkeys(row["student"].strip() for row in read_table(path, "student") if row["student"].strip()))


def read_table(path: Path, *columns: str) -> list[dict[str, str]]:
    """The rows of a teacher's CSV, which has these columns at least."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            rows = [{name: row[name] or "" for name in row if name} for row in table]
            missing = [name for name in columns if name not in (table.fieldnames or ())]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"{path} cannot be read: {error}") from error
    if missing:
        raise RosterError(f"{path} has no column `{missing[0]}`; name it in the first line")
    return rows


def student_of(path: Path, root: Path, roots: list[Path], known: list[str]) -> str:
    """Whose a file is: a folder on its path, or itself, that bears a known student's name.

    Where there is none: the first folder below a single root, or else the root that it was found under.
    """
    inside = path.relative_to(root).parts if path != root else ()
    names = {name.casefold(): name for name in known}
    for part in (root.name, *inside[:-1], path.stem):
        if part.casefold() in names:
            return names[part.casefold()]
    first = inside[0] if len(roots) == 1 and inside else root.name
    alike = [other for other in roots if other.name == root.name]
    return shown((root.as_posix() if len(alike) > 1 else first).removesuffix(".ipynb"))

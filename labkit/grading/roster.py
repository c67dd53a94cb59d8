"""The students of a class, and the student of each file."""

import csv
from collections import Counter
from io import StringIO
from pathlib import Path

from labkit.grading.files import name_roots, printable_path


class RosterError(Exception):
    """A list of the teacher cannot be used; the message says what to do."""


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Read the students of a CSV with a column `student`, each with its further columns."""
    students: dict[str, dict[str, str]] = {}
    for row in read_table(path, "student"):
        if student := row.pop("student").strip():
            row.pop("repository", None)
            students.setdefault(student, row)
    return students


def read_table(path: Path, *columns: str) -> list[dict[str, str]]:
    """Read a teacher's CSV, which has at least these columns, each once; their names become lower case.

    The separator is a comma, or a semicolon if the first line has no comma, as spreadsheets of some countries write.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        head = text.partition("\n")[0]
        table = csv.reader(StringIO(text, newline=""), delimiter=";" if ";" in head and "," not in head else ",")
        names, *lines = [*table] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    names = [name.strip().casefold() for name in names]
    if missing := [name for name in columns if name not in names]:
        columns_found = ", ".join(filter(None, names)) or "none"
        raise RosterError(f"{path} has no column `{missing[0]}`; the first line has {columns_found}")
    if twice := [name for name, count in Counter(filter(None, names)).items() if count > 1]:
        raise RosterError(f"{path} has the column `{twice[0]}` twice; leave one of them")
    for number, line in enumerate(lines, 2):
        if any(field.strip() for field in line[len(names) :]):
            raise RosterError(
                f"line {number} of {path} has {len(line)} fields, and the first line names {len(names)}; "
                "put a text with a separator in quotes"
            )
    return [{name: line[n] if n < len(line) else "" for n, name in enumerate(names) if name} for line in lines if line]


def identify_student(path: Path, root: Path, roots: list[Path], students: list[str]) -> str:
    """Return the student of a file: the known name that a folder on its path, or the file itself, has.

    Without such a name it is the first folder below a single root, or else the root under which the file was found.
    """
    inside = path.relative_to(root).parts if path != root else ()
    names = {name.casefold(): name for name in students}
    for part in (root.name, *inside[:-1], path.stem):
        if part.casefold() in names:
            return names[part.casefold()]
    name = inside[0] if len(roots) == 1 and inside else name_roots(roots)[root]
    return printable_path(name.removesuffix(".ipynb"))

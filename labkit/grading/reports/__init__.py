"""Reports of grades, in one folder; each file is whole at any time."""

import json
import os
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from labkit.grading.assessment import Assessment
from labkit.grading.grades import Grade
from labkit.grading.reports.data import data
from labkit.grading.reports.junit import junit
from labkit.grading.reports.page import Picture, file_name, page
from labkit.grading.reports.platforms import canvas, moodle
from labkit.grading.reports.summary import summary
from labkit.grading.reports.tables import gradebook, rows

PAGES = "students"
DATA = "grades.json"
PLATFORMS = {"canvas.csv": canvas, "moodle.csv": moodle}


def write_reports(
    grades: list[Grade],
    folder: Path,
    texts: Mapping[tuple[str, str], str] | None = None,
    remark: str = "",
    pictures: Mapping[tuple[str, str], Picture] | None = None,
    assessment: Assessment | None = None,
) -> list[Path]:
    """Write the reports; `texts` and `pictures` are those of the answers by file and exercise, for the students' pages.

    Each student's rows stand together in `grades`. `remark` is a sentence on the whole. Where the assessment is
    that of an assignment, there are files for learning platforms too. Pages and files of an earlier run that have no
    place in this one are taken away.
    """
    assessment = assessment or Assessment()
    written = {
        folder / "grades.xml": junit(grades),
        folder / "grades.csv": rows(grades),
        folder / "gradebook.csv": gradebook(grades, assessment.students),
        folder / DATA: data(grades, remark, assessment.assignment),
        folder / "summary.md": summary(grades, remark),
    }
    if assessment.assignment:
        written |= {folder / name: made(grades, assessment.assignment) for name, made in PLATFORMS.items()}
    for student, own in groupby(grades, key=lambda row: row.student):
        written[folder / PAGES / file_name(student)] = page(student, list(own), texts or {}, pictures or {}, assessment)
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for path in _of_run_before(folder):
        if path not in written:
            path.unlink(missing_ok=True)
    for path, text in written.items():
        replace_file(path, text)
    return list(written)


def _of_run_before(folder: Path) -> Iterable[Path]:
    """The files that not every run writes, and that the one before wrote, as its data tell: no others are ours."""
    try:
        before = json.loads((folder / DATA).read_text(encoding="utf-8"))
        students, assignment = list(before["totals"]), before["assignment"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    yield from (folder / PAGES / file_name(student) for student in students)
    if assignment:
        yield from (folder / name for name in PLATFORMS)


def replace_file(path: Path, content: str | bytes) -> None:
    """Put a new file in the place of the old one at once, so that nobody reads half of it."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)
    os.replace(beside, path)

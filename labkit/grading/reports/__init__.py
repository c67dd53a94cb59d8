"""Reports of grades, in one folder; each file is whole at any time."""

import os
from collections.abc import Mapping
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
    that of an assignment, there are files for learning platforms too.
    """
    assessment = assessment or Assessment()
    written = {
        folder / "grades.xml": junit(grades),
        folder / "grades.csv": rows(grades),
        folder / "gradebook.csv": gradebook(grades, assessment.students),
        folder / "grades.json": data(grades, remark),
        folder / "summary.md": summary(grades, remark),
    }
    if assignment := assessment.assignment:
        written |= {
            folder / "canvas.csv": canvas(grades, assignment),
            folder / "moodle.csv": moodle(grades, assignment),
        }
    for student, own in groupby(grades, key=lambda row: row.student):
        written[folder / PAGES / file_name(student)] = page(student, list(own), texts or {}, pictures or {}, assessment)
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for path, text in written.items():
        replace_file(path, text)
    return list(written)


def replace_file(path: Path, content: str | bytes) -> None:
    """Put a new file in the place of the old one at once, so that nobody reads half of it."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)
    os.replace(beside, path)

"""Reports of grades, in one folder; each file is whole at any time."""

import json
import os
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from labkit.grading.assessment import Assessment
from labkit.grading.grades import Grade
from labkit.grading.reports.data import make_json
from labkit.grading.reports.junit import make_junit
from labkit.grading.reports.page import Picture, file_name, make_page
from labkit.grading.reports.platforms import make_canvas_csv, make_moodle_csv
from labkit.grading.reports.summary import make_summary
from labkit.grading.reports.tables import make_gradebook_csv, make_rows_csv

PAGES = "students"
DATA = "grades.json"
PLATFORMS = {"canvas.csv": make_canvas_csv, "moodle.csv": make_moodle_csv}


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
        folder / "grades.xml": make_junit(grades),
        folder / "grades.csv": make_rows_csv(grades),
        folder / "gradebook.csv": make_gradebook_csv(grades, assessment.students),
        folder / DATA: make_json(grades, remark, assessment.assignment),
        folder / "summary.md": make_summary(grades, remark),
    }
    if assessment.assignment:
        written |= {folder / name: made(grades, assessment.assignment) for name, made in PLATFORMS.items()}
    for student, own in groupby(grades, key=lambda row: row.student):
        written[folder / PAGES / file_name(student)] = make_page(
            student, list(own), texts or {}, pictures or {}, assessment
        )
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for path in _find_old_reports(folder):
        if path not in written:
            path.unlink(missing_ok=True)
    for path, text in written.items():
        replace_file(path, text)
    return list(written)


def _find_old_reports(folder: Path) -> Iterable[Path]:
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

"""Reports of grades in one folder; each file is complete at any time."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from labkit.grading.assessment import Assessment
from labkit.grading.grades import Grade
from labkit.grading.reports.data import make_json
from labkit.grading.reports.junit import make_junit
from labkit.grading.reports.page import Picture, file_name, make_page
from labkit.grading.reports.platforms import make_canvas_csv, make_moodle_csv
from labkit.grading.reports.summary import make_summary
from labkit.grading.reports.tables import make_gradebook_csv, make_rows_csv, make_similar_csv
from labkit.grading.similar import Group

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
    similar: Sequence[Group] | None = None,
) -> list[Path]:
    """Write the reports, and files for learning platforms if the assessment is that of an assignment.

    Pages and files of an earlier run that this one does not write are deleted.

    Parameters
    ----------
    grades
        The rows, those of a student next to each other.
    texts, pictures
        The text and picture of each answer, by file and exercise, for the students' pages.
    remark
        A sentence on the whole.
    similar
        The groups of similar answers; if None, they are not known yet.
    """
    assessment = assessment or Assessment()
    contents = {
        folder / "grades.xml": make_junit(grades),
        folder / "grades.csv": make_rows_csv(grades),
        folder / "gradebook.csv": make_gradebook_csv(grades, assessment.students),
        folder / DATA: make_json(grades, remark, assessment.assignment),
        folder / "summary.md": make_summary(grades, remark, similar or ()),
    }
    if similar is not None:
        contents[folder / "similar.csv"] = make_similar_csv(similar)
    if assessment.assignment:
        contents |= {folder / name: make(grades, assessment.assignment) for name, make in PLATFORMS.items()}
    for student, student_rows in groupby(grades, key=lambda row: row.student):
        contents[folder / PAGES / file_name(student)] = make_page(
            student, list(student_rows), texts or {}, pictures or {}, assessment
        )
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for path in _find_old_reports(folder):
        if path not in contents:
            path.unlink(missing_ok=True)
    for path, text in contents.items():
        replace_file(path, text)
    return list(contents)


def _find_old_reports(folder: Path) -> Iterable[Path]:
    """Yield the pages and platform files that an earlier run wrote, by its data: no others are ours."""
    try:
        before = json.loads((folder / DATA).read_text(encoding="utf-8"))
        students, assignment = list(before["totals"]), before["assignment"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    yield from (folder / PAGES / file_name(student) for student in students)
    if assignment:
        yield from (folder / name for name in PLATFORMS)


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file at once, so that no one reads half of it."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)
    os.replace(new, path)

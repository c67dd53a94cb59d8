"""Feedback notebooks: a student's own cells without outputs, with the verdict below each exercise."""

import json
from collections.abc import Iterable
from io import BytesIO
from itertools import count
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from labkit.book.chapter import METADATA
from labkit.grading.grades import Grade
from labkit.grading.ledger import HandedIn
from labkit.grading.reports import replace_file
from labkit.grading.reports.page import explain, headline, make_safe_name
from labkit.grading.reports.summary import escape_markdown

FILE = "feedback.zip"


def write_feedback(files: Iterable[HandedIn], grades: Iterable[Grade], out: Path) -> None:
    """Write `feedback.zip`: one notebook per file that could be read, one folder per student.

    It is an archive, so that no later run takes the notebooks for work that was handed in.
    """
    rows: dict[str, list[Grade]] = {}
    for row in grades:
        rows.setdefault(row.submission, []).append(row)
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for file in files:
            if file.submission.cells:
                path = _choose_path(file, set(archive.namelist()))
                archive.writestr(ZipInfo(path), make_feedback(file, rows.get(file.name, [])), ZIP_DEFLATED)
    replace_file(out / FILE, content.getvalue())


def make_feedback(file: HandedIn, rows: list[Grade]) -> str:
    """Return the text of a file's feedback notebook; verdicts on what no cell answers come last."""
    waiting = list(rows)
    cells = []
    for kind, text in file.submission.cells:
        cells.append(_make_cell(kind, text))
        row = next((row for row in waiting if file.submission.answers.get(row.exercise) == text), None)
        if kind == "code" and row:
            cells.append(_make_cell("markdown", _format_verdict(row)))
            waiting.remove(row)
    cells += [_make_cell("markdown", _format_verdict(row)) for row in waiting]
    numbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    notebook = {"cells": numbered, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1) + "\n"


def _choose_path(file, used):
    """Choose the path of a file's notebook; equal names are numbered."""
    stem = f"{make_safe_name(file.student)}/{make_safe_name(file.submission.path.stem)}"
    return next(name for number in count() if (name := f"{stem}{number or ''}.ipynb") not in used)


def _make_cell(kind, text):
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text, **code}


def _format_verdict(row):
    """Return the Markdown of a verdict, in which nothing of a student's is Markdown."""
    return "\n\n".join(
        [f"**{escape_markdown(headline(row))}**", *map(_format_line, explain(row)), *_format_pattern(row)]
    )


def _format_line(line):
    """Return a line as a paragraph, or as an item of a list."""
    return f"- {escape_markdown(line[2:])}" if line.startswith("- ") else escape_markdown(line)


def _format_pattern(row):
    """Yield the picture of wrong elements as a block of code, and what its signs mean."""
    if row.pattern:
        *cells, key = row.pattern.replace("`", "'").splitlines()
        yield "\n".join(["```", *cells, "```"])
        yield escape_markdown(key)

"""A chapter as students get it: blank, without the explained solutions, with nbgrader's metadata."""

import re
from collections.abc import Collection
from copy import deepcopy

import nbformat

from labkit.exercises import exercise

_EXPLAINED = re.compile(r"<details><summary>Solution[^<]*</summary>.*?</details>\n*", re.S)
_LINK = re.compile(r"\[([^\]]+)\]\((\d\d-[\w-]+)\.ipynb[^)]*\)")


def make_student_notebook(blank: nbformat.NotebookNode, chapters: Collection[str]) -> nbformat.NotebookNode:
    """Return a copy of a chapter's blank notebook to hand out with these chapters.

    The explained solutions are left out, and so are links to other chapters. Cells of exercises and checks carry the
    metadata of nbgrader, schema 3 (nbgrader.readthedocs.io, "Assignment metadata"); JupyterLab neither deletes them
    nor lets a check be edited.
    """
    notebook = deepcopy(blank)
    kept_cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = _EXPLAINED.sub("", cell.source)
            cell.source = _LINK.sub(lambda link: link[0] if link[2] in chapters else link[1], text).strip()
            if not cell.source:
                continue
        else:
            cell.metadata.update(_metadata(cell))
        kept_cells.append(cell)
    notebook.cells = kept_cells
    return notebook


def _metadata(cell):
    tags = cell.metadata.get("tags", ())
    if "exercise" in tags:
        return {"deletable": False, "nbgrader": _nbgrader(cell.id, solution=True)}
    if "check" in tags:
        points = exercise(cell.metadata["exercise"]).points
        return {"deletable": False, "editable": False, "nbgrader": _nbgrader(cell.id, grade=True, points=points)}
    if "setup" in tags:
        return {"deletable": False, "editable": False, "nbgrader": _nbgrader(cell.id)}
    return {}


def _nbgrader(id, solution=False, grade=False, **points):
    locked = not solution
    return dict(schema_version=3, grade_id=id, solution=solution, grade=grade, locked=locked, task=False, **points)

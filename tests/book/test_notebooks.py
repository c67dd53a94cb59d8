"""The book's own notebooks are what their sources say, and hold nothing of the machine they were built on."""

import json

import nbformat
import pytest

from labkit import places
from labkit.book.build import build
from labkit.book.chapter import CHECKED
from labkit.exercises.contents import book_contents

NOTEBOOKS = places.folder("notebooks")
ALL = sorted([*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("solutions/*.ipynb")])


def test_every_notebook_is_built_from_its_source():
    assert build(check=True) == [], "run `make notebooks` and commit what it changes"


def test_every_chapter_has_its_two_notebooks():
    chapters = [chapter.name for chapter in book_contents().chapters]
    assert [path.stem for path in ALL] == chapters * 2


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(NOTEBOOKS)))
def test_outputs_stand_only_in_compared_cells_of_the_solutions_and_are_plain(path):
    solved = path.parent.name == "solutions"
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not (solved and CHECKED in cell.metadata.get("tags", ())):
            assert (cell.outputs, cell.execution_count) == ([], None)
        for output in cell.get("outputs", ()):
            assert output.output_type in ("stream", "execute_result", "display_data")
            assert output.get("name") != "stderr", output
            said = json.dumps(output)
            assert "widget" not in said
            assert str(places.CHECKOUT) not in said

"""Numbers follow from the table of contents: inserting a chapter is a file and a line, and ids stay."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from labkit import places
from labkit.book.contents import SourceError, read_contents
from labkit.exercises import exercise, exercise_ids, known_ids
from labkit.exercises.contents import CONTENTS_FILE, book_contents, retired_exercises

NOTEBOOKS = places.folder("notebooks")
SOURCES = sorted(NOTEBOOKS.glob("source/*.md"))
TINY = """# A tiny chapter

After [](chapter:flash-attention-2-and-3), before [the decoding of chapter {}](chapter:decoding-and-few-bits) and
[](exercise:verify-a-draft).
"""


def test_the_package_has_the_contents_of_the_sources():
    assert CONTENTS_FILE.read_text(encoding="utf-8") == read_contents(NOTEBOOKS).to_json(), "run `make notebooks`"


def test_every_exercise_stands_in_a_chapter_or_is_retired_and_is_called_as_its_file():
    files = [path for path in CONTENTS_FILE.parent.glob("*.py") if "\nEXERCISE = " in path.read_text(encoding="utf-8")]
    assert sorted(path.stem.replace("_", "-") for path in files) == sorted(known_ids())
    assert all(exercise(id).id == id for id in known_ids())
    assert {*retired_exercises().values()} <= {chapter.slug for chapter in book_contents().chapters}


def test_the_ids_of_cells_are_short_enough_for_a_notebook():
    assert max(len(f"exercise-{id}") for id in exercise_ids()) <= 64
    assert max(len(f"{chapter.slug}-code-001") for chapter in book_contents().chapters) <= 64


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_source_names_chapters_and_exercises_by_slug(path):
    """A number would be wrong as soon as a chapter is inserted before; chapters of other people's books are meant."""
    numbers = "|".join(chapter.number for chapter in book_contents().chapters)
    text = path.read_text(encoding="utf-8")
    assert not re.findall(rf"\b[Cc]hapters? (?:{numbers})\b|\b[Ee]xercises? \d\d\.\d|\]\(\d\d-[^)]*ipynb", text)


@pytest.fixture
def book(tmp_path):
    (tmp_path / "source").mkdir()
    for name in ("first", "second"):
        (tmp_path / "source" / f"{name}.md").write_text(f"# The {name}\n", encoding="utf-8")

    def write(toc):
        (tmp_path / "toc.yml").write_text(toc, encoding="utf-8")
        return tmp_path

    return write


def test_a_part_may_leave_numbers_free(book):
    found = read_contents(book("- {part: A, from: 0, chapters: [second]}\n- {part: B, from: 90, chapters: [first]}\n"))
    assert [chapter.name for chapter in found.chapters] == ["00-second", "90-first"]


@pytest.mark.parametrize(
    ("toc", "said"),
    [
        ("- {part: A, chapters: [first]}", r"source/second\.md is not in toc\.yml"),
        ("- {part: A, chapters: [first, second, third]}", r"third has no source/third\.md"),
        ("- {part: A, chapters: [first, second, first]}", "the chapter first stands twice"),
        ("- {part: A, from: 3, chapters: [first]}\n- {part: B, from: 3, chapters: [second]}", "B begins at 03"),
    ],
)
def test_a_faulty_table_of_contents_is_refused_with_what_to_change(book, toc, said):
    with pytest.raises(SourceError, match=said):
        read_contents(book(toc))


def test_an_exercise_stands_in_one_chapter(book):
    folder = book("- {part: A, chapters: [first, second]}")
    for name in ("first", "second"):
        cell = "```{code-cell} ipython3\n:tags: [exercise]\n:exercise: pad-the-tile\n```\n"
        (folder / "source" / f"{name}.md").write_text(cell, encoding="utf-8")
    with pytest.raises(SourceError, match="the exercise pad-the-tile stands twice"):
        read_contents(folder)


BOOK = read_contents(NOTEBOOKS)
BEFORE = BOOK.chapter("flash-attention-2-and-3")
DECODING = int(BOOK.chapter("decoding-and-few-bits").number)  # in the book; in the longer one it is the tiny chapter's
DRAFT = f"{DECODING + 1}.{BOOK.number('verify-a-draft').partition('.')[2]}"


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A copy of the book, built, with a chapter more before the last, of which title, setup and exercises are left."""
    folder = tmp_path_factory.mktemp("book")
    hidden = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("labkit", "notebooks", "kernels"):
        shutil.copytree(places.CHECKOUT / name, folder / name, ignore=hidden)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(places.CHECKOUT / name, folder)
    (folder / "notebooks" / "source" / "tiny.md").write_text(TINY, encoding="utf-8")
    decoding = folder / "notebooks" / "source" / "decoding-and-few-bits.md"
    text = decoding.read_text(encoding="utf-8")
    setup_end, exercises, summary = (text.index(mark) for mark in ("\n```\n", "\n## Exercises\n", "\n## Summary\n"))
    decoding.write_text(text[: setup_end + 5] + text[exercises:summary], encoding="utf-8")
    toc = (folder / "notebooks" / "toc.yml").read_text(encoding="utf-8")
    line = "  - decoding-and-few-bits: "
    assert toc.count(line) == 1
    toc = toc.replace(line, f"  - tiny: a dwarf\n{line}")
    (folder / "notebooks" / "toc.yml").write_text(toc, encoding="utf-8")
    run = [sys.executable, "-m", "labkit.cli", "build"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(run, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return folder / "notebooks"


def cells(path):
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}


@pytest.mark.skipif(places.CHECKOUT is None, reason="builds a copy of a checkout")
def test_a_chapter_is_inserted_by_a_file_and_a_line(longer):
    names = [path.stem for path in sorted(longer.glob("*.ipynb"))]
    tiny, decoding = DECODING, f"{DECODING + 1}-decoding-and-few-bits"
    assert names == [path.stem for path in sorted(longer.glob("solutions/*.ipynb"))]
    assert {f"{tiny}-tiny", decoding} <= {*names} and f"{DECODING}-decoding-and-few-bits" not in names
    readme = (longer.parent / "README.md").read_text(encoding="utf-8")
    assert f"\n| {tiny} | A tiny chapter | a dwarf |\n| {DECODING + 1} | Decoding, and few bits | pages of" in readme
    (cell,) = cells(longer / f"{tiny}-tiny.ipynb").values()
    assert cell.source == (
        f"# {tiny} · A tiny chapter\n\nAfter [chapter {BEFORE.number}]({BEFORE.name}.ipynb), before "
        f"[the decoding of chapter {DECODING + 1}]({decoding}.ipynb) and\n[exercise {DRAFT}]({decoding}.ipynb)."
    )


@pytest.mark.skipif(places.CHECKOUT is None, reason="builds a copy of a checkout")
def test_what_stands_behind_it_has_new_numbers_and_the_same_ids(longer):
    old, new = f"{DECODING}-decoding-and-few-bits", f"{DECODING + 1}-decoding-and-few-bits"
    before, after = cells(NOTEBOOKS / "solutions" / f"{old}.ipynb"), cells(longer / "solutions" / f"{new}.ipynb")
    of_exercises = [id for id in before if id.startswith(("exercise-", "check-"))]
    assert of_exercises and of_exercises == [id for id in after if id.startswith(("exercise-", "check-"))]
    assert after["check-verify-a-draft"].source == before["check-verify-a-draft"].source
    title = exercise("verify-a-draft").title
    assert f"### Exercise {DRAFT} · {title} (" in "\n".join(cell.source for cell in after.values())
    assert f"✓ {DRAFT} {title}: solved" in str(after["check-verify-a-draft"].outputs)
    elsewhere = "\n".join(cell.source for cell in cells(longer / f"{BEFORE.name}.ipynb").values())
    assert f"({new}.ipynb)" in elsewhere and old not in elsewhere

"""Builds every chapter's two notebooks from its source; the same source gives the same bytes."""

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from labkit import places
from labkit.book.chapter import CHECKED, read_chapter
from labkit.book.contents import SourceError, read_contents, source
from labkit.book.readme import update_readme
from labkit.exercises.contents import CONTENTS_FILE, NOTEBOOK_GLOB, book_contents
from labkit.table import json_lines

CELL_TIMEOUT_S = 300


def build(
    notebooks: Path | None = None, *, only: tuple[str, ...] = (), check: bool = False, force: bool = False
) -> list[str]:
    """Bring the built notebooks up to date with their sources; the book's also with its contents and README's table.

    A chapter is run (on the simulator) only where its code or its number has changed. The solved notebook stores the
    outputs that nbval compares; a learner's notebook holds none, which would give results away.

    Parameters
    ----------
    notebooks
        The folder that holds `toc.yml` and `source/` and receives the notebooks and `solutions/`; if None, the
        book's own, whose contents are then also written to the package's `exercises/contents.json`.
    only
        Slugs of chapters to build; all where empty.
    check
        Change nothing, run nothing; only say what is out of date.
    force
        Run every chapter anew, for instance after a change to labkit itself.

    Returns
    -------
    list of str
        The files that changed or were deleted. With `check`, those that would be; of a chapter that must run only the
        solved notebook.
    """
    changed = []
    book = read_contents(notebooks or places.folder("notebooks"))
    if notebooks is None:
        notebooks = places.folder("notebooks")
        if CONTENTS_FILE.read_text(encoding="utf-8") != book.to_json():
            changed.append(CONTENTS_FILE.name)
            if not check:
                CONTENTS_FILE.write_text(book.to_json(), encoding="utf-8", newline="\n")
                book_contents.cache_clear()
        readme = notebooks.parent / "README.md"  # of a checkout
        if (
            readme.exists()
            and (text := update_readme(before := readme.read_text(encoding="utf-8"), notebooks, book)) != before
        ):
            changed.append(readme.name)
            if not check:
                readme.write_text(text, encoding="utf-8", newline="\n")
    changed += _remove_stale(notebooks, book, check)
    for slug in [chapter.slug for chapter in book.chapters if not only or chapter.slug in only]:
        chapter = read_chapter(source(notebooks, slug), book)
        solved_path = notebooks / "solutions" / f"{chapter.name}.ipynb"
        blank_path = notebooks / f"{chapter.name}.ipynb"
        if force or not _take_outputs(chapter.solved, solved_path):
            if check:
                changed.append(str(solved_path.relative_to(notebooks)))
                continue
            _execute(chapter.solved, f"{slug}.md")
        for path, notebook in ((solved_path, chapter.solved), (blank_path, chapter.blank)):
            text = _notebook_text(notebook)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                changed.append(str(path.relative_to(notebooks)))
                if not check:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", newline="\n")
    return changed


def _notebook_text(notebook) -> str:
    """Return the notebook as JSON with one cell per line, for review and comparison."""
    nbformat.validate(notebook)
    options: dict[str, Any] = {"ensure_ascii": False, "sort_keys": True}
    rest = {name: value for name, value in notebook.items() if name != "cells"}
    return f'{{"cells": {json_lines(notebook.cells, **options)},\n{json.dumps(rest, **options)[1:]}\n'


def _remove_stale(notebooks, book, check):
    """Remove notebooks that were built under a number that their chapter no longer has."""
    names = {chapter.name for chapter in book.chapters}
    stale = [path for folder in (notebooks, notebooks / "solutions") for path in sorted(folder.glob(NOTEBOOK_GLOB))]
    stale = [path for path in stale if path.stem not in names]
    for path in stale if not check else ():
        path.unlink()
    return [str(path.relative_to(notebooks)) for path in stale]


def _checked_cells(notebook):
    return [cell for cell in notebook.cells if CHECKED in cell.metadata.get("tags", ())]


def _code(notebook):
    return [(cell.id, cell.source, cell.metadata.get("tags")) for cell in notebook.cells if cell.cell_type == "code"]


def _take_outputs(notebook, built_path):
    """Take the outputs of the notebook built before; False where its code is not the same."""
    if not _checked_cells(notebook):
        return True
    if not built_path.exists():
        return False
    built = nbformat.read(built_path, as_version=4)
    if _code(built) != _code(notebook):
        return False
    _copy_outputs(built, notebook)
    return True


def _execute(notebook, name):
    """Run all cells on the simulator; keep the outputs of the cells that nbval compares, and nothing else."""
    run = deepcopy(notebook)
    # Streams are stored whole, since prints are split at random; the kernel's own warnings are noise here.
    options = {"timeout": CELL_TIMEOUT_S, "coalesce_streams": True, "extra_arguments": ["--log-level=ERROR"]}
    try:
        NotebookClient(run, **options).execute(env={**os.environ, "LABKIT_DEVICE": "simulator"})
    except CellExecutionError as error:
        raise SourceError(f"{name}: a cell fails: {error.ename}: {error.evalue}\n{error}") from error
    _copy_outputs(run, notebook)


def _copy_outputs(source, target):
    """Copy the outputs of the cells that nbval compares in `target`."""
    by_id = {cell.id: cell for cell in source.cells}
    for cell in _checked_cells(target):
        cell.outputs, cell.execution_count = by_id[cell.id].outputs, by_id[cell.id].execution_count

"""Solved chapters with what their cells show: each is run once, and kept for the pages and for the tests."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from labkit import places
from labkit.book.contents import SourceError

CELL_TIMEOUT_S = 300


def run_chapters(chapters: Iterable[Path], folder: Path) -> list[nbformat.NotebookNode]:
    """Return solved notebooks with their outputs, from `folder` where they were kept, else run on the simulator.

    Raises
    ------
    SourceError
        A cell fails.
    """
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        return list(executor.map(lambda path: _executed(path, folder / path.name), chapters))


def keep(notebook: nbformat.NotebookNode, solved: Path, folder: Path) -> None:
    """Keep the run of a solved notebook as long as its cells and the package stay as they are."""
    notebook.metadata["labkit"]["run_of"] = _key(solved)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / solved.name
    unfinished = path.with_suffix(f".{os.getpid()}")
    nbformat.write(notebook, unfinished)
    unfinished.replace(path)


def _executed(solved, kept):
    if kept.exists():
        notebook = nbformat.read(kept, as_version=4)
        if notebook.metadata["labkit"].get("run_of") == _key(solved):
            return notebook
    notebook = nbformat.read(solved, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        coalesce_streams=True,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],
    )
    try:
        client.execute(env={**os.environ, "LABKIT_DEVICE": "simulator"})
    except Exception as error:
        raise SourceError(f"{solved.name} does not run: {error}") from error
    keep(notebook, solved, kept.parent)
    return notebook


def _key(solved):
    return sha256(solved.read_bytes() + _package()).hexdigest()


@cache
def _package():
    """Return a digest of all that a chapter's cells run: the package's Python and its records."""
    digest = sha256()
    for path in sorted([*places.PACKAGE.rglob("*.py"), *(places.PACKAGE / "results").rglob("*.json")]):
        digest.update(path.read_bytes())
    return digest.digest()

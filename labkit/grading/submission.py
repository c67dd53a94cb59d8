"""Reads what learners hand in: the exercise cells' text, and nothing else of the file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Submission:
    """One notebook as handed in.

    `answers` holds the text of the answers by exercise id, `refused` the reason where an answer cannot be
    taken, `chapter` the number of the chapter that the file says it is, `complaint` why it could not be read.
    """

    path: Path
    answers: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    chapter: str = ""
    complaint: str = ""


def find_submissions(paths: list[Path]) -> list[Path]:
    """The files to grade: those named, and the notebooks in the folders named.

    Hidden folders, Jupyter's checkpoints among them, are passed over, and so are `book_solutions`.
    """
    found = [notebook for path in paths for notebook in (_notebooks_in(path) if path.is_dir() else [path])]
    solutions = book_solutions(paths)
    return [notebook for notebook in dict.fromkeys(found) if notebook not in solutions]


def book_solutions(paths: list[Path]) -> list[Path]:
    """The book's own solutions in the folders named: a fork of the book holds them, whoever wrote the rest."""
    within = [notebook for path in paths if path.is_dir() for notebook in _notebooks_in(path)]
    named = {path.resolve() for path in paths}
    return [
        notebook
        for notebook in dict.fromkeys(within)
        if notebook.resolve().parent.parts[-2:] == ("notebooks", "solutions")
        and not named & {notebook.resolve(), notebook.resolve().parent}
    ]


def _notebooks_in(folder):
    notebooks = sorted(folder.rglob("*.ipynb"))
    return [path for path in notebooks if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def read_submission(path: Path) -> Submission:
    """The answers in a notebook; a file that is none gives a complaint instead of an error."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = notebook["cells"]
        if not isinstance(cells, list):
            raise TypeError
    except FileNotFoundError:
        return Submission(path, complaint="There is no such file.")
    except (OSError, UnicodeDecodeError) as error:
        return Submission(path, complaint=f"The file cannot be read: {error}.")
    except (ValueError, RecursionError):
        return Submission(path, complaint="The file is not a notebook: save it from JupyterLab and hand it in again.")
    except (KeyError, TypeError):
        return Submission(path, complaint="The file is not a notebook: it has no list of cells.")
    texts = [(id, _text(cell)) for cell in cells if (id := _exercise_of(cell))]
    found = [(id, text) for id, text in texts if text is not None]
    chapter = str(_mapping(_mapping(notebook.get("metadata")).get("labkit")).get("chapter", ""))[:2]
    ids = [id for id, _ in found]
    twice = {id: f"{ids.count(id)} cells claim to be the answer: keep one." for id in ids if ids.count(id) > 1}
    return Submission(path, {id: text for id, text in found if id not in twice}, twice, chapter)


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value, or an empty mapping where a broken file holds something else."""
    return value if isinstance(value, dict) else {}


def _exercise_of(cell: Any) -> str | None:
    """The exercise that a cell answers, by the cell's id; Colab keeps that in the metadata."""
    cell = _mapping(cell)
    if cell.get("cell_type") != "code":
        return None
    name = cell.get("id") or _mapping(cell.get("metadata")).get("id", "")
    kind, *id = str(name).split("-")
    return ".".join(id) if kind == "exercise" and len(id) == 2 else None


def _text(cell: Mapping[str, Any]) -> str | None:
    """The cell's text, or None where it has none."""
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        return None
    return "".join(lines).encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be written again

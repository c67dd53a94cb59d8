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
    """The files to grade: those named, and the notebooks in the folders named."""
    found = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def read_submission(path: Path) -> Submission:
    """The answers in a notebook; a file that is none gives a complaint instead of an error."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        found = [(id, _text(cell)) for cell in notebook["cells"] if (id := _exercise_of(cell))]
        chapter = str(notebook.get("metadata", {}).get("labkit", {}).get("chapter", ""))[:2]
    except FileNotFoundError:
        return Submission(path, complaint="There is no such file.")
    except (OSError, UnicodeDecodeError) as error:
        return Submission(path, complaint=f"The file cannot be read: {error}.")
    except (ValueError, RecursionError):
        return Submission(path, complaint="The file is not a notebook: save it from JupyterLab and hand it in again.")
    except (KeyError, TypeError, AttributeError):
        return Submission(path, complaint="The file is not a notebook: it has no list of cells.")
    ids = [id for id, _ in found]
    twice = {id: f"{ids.count(id)} cells claim to be the answer: keep one." for id in ids if ids.count(id) > 1}
    return Submission(path, {id: text for id, text in found if id not in twice}, twice, chapter)


def _exercise_of(cell: Mapping[str, Any]) -> str | None:
    """The exercise that a cell answers, by the cell's id; Colab keeps that in the metadata."""
    if cell.get("cell_type") != "code":
        return None
    name = cell.get("id") or cell.get("metadata", {}).get("id", "")
    kind, *id = str(name).split("-")
    return ".".join(id) if kind == "exercise" and len(id) == 2 else None


def _text(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    text = source if isinstance(source, str) else "".join(source)
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be written again

"""Reads what learners hand in: the exercise cells' text, and nothing else of the file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.checking.as_text import MAX_CHARACTERS
from labkit.exercises import chapter_of, exercise, exercise_ids
from labkit.exercises.contents import current_id, slug_of
from labkit.grading.files import Found, Unreadable, find, read_bytes

MAX_CELLS = 5000
MAX_CELL_CHARACTERS = MAX_CHARACTERS + 1  # which is judged to be too long
_BY_NUMBER = re.compile(r"(\d\d)-(\d)")  # how an edition before ends the ids of cells
MAX_ALL_CHARACTERS = 1 << 20  # what they put out is not kept


@dataclass(frozen=True)
class Submission:
    """One notebook as handed in.

    `answers` holds the text of the answers by exercise id, `refused` the reason where an answer cannot be
    taken, `recovered` the ids of those that were found by the name of their function, `chapter` the slug of the
    chapter that the file says it is, `complaint` why it could not be read. `cells` are all of them, as kind and text.
    """

    path: Path
    answers: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    chapter: str = ""
    complaint: str = ""
    recovered: frozenset[str] = frozenset()
    cells: tuple[tuple[str, str], ...] = ()


def find_submissions(paths: list[Path]) -> tuple[list[Found], list[Path]]:
    """The files to grade, which are those named and the notebooks in the folders named, and those left out of them.

    The book's own solutions are left out, unless they are named: a fork of the book holds them, whoever wrote the rest.
    """
    found = {entry.path: entry for path in paths for entry in find(path)}
    named = {path.absolute() for path in paths}
    solutions = [
        path
        for path in found
        if path.absolute().parent.parts[-2:] == ("notebooks", "solutions")
        and not named & {path.absolute(), path.absolute().parent}
    ]
    return [entry for path, entry in found.items() if path not in solutions], solutions


def read_submission(path: Path) -> Submission:
    """The answers in a notebook; a file that is none gives a complaint instead of an error."""
    try:
        notebook = json.loads(read_bytes(path).decode("utf-8-sig"))
        cells = notebook["cells"]
        if not isinstance(cells, list):
            raise TypeError
    except Unreadable as error:
        return Submission(path, complaint=str(error))
    except UnicodeDecodeError as error:
        return Submission(path, complaint=f"The file cannot be read: {error.reason} at byte {error.start}; use UTF-8.")
    except (ValueError, RecursionError, MemoryError):
        return Submission(path, complaint="The file is not a notebook: save it from JupyterLab and hand it in again.")
    except (KeyError, TypeError):
        return Submission(path, complaint="The file is not a notebook: it has no list of cells.")
    if len(cells) > MAX_CELLS:
        return Submission(path, complaint=f"The notebook has more than {MAX_CELLS:,} cells: hand in the chapter alone.")
    kinds = ("code", "markdown")
    all_cells = tuple((kind, text) for cell in cells for kind in kinds if (text := _read_text(cell, kind)) is not None)
    if sum(len(text) for _, text in all_cells) > MAX_ALL_CHARACTERS:
        return Submission(
            path, complaint=f"The cells hold more than {MAX_ALL_CHARACTERS:,} characters: hand in the chapter alone."
        )
    chapter = slug_of(str(_as_mapping(_as_mapping(notebook.get("metadata")).get("labkit")).get("chapter", "")))
    texts = [(_identify_exercise(cell), text) for cell in cells if (text := _read_text(cell)) is not None]
    found: dict[str, dict[str, None]] = {}  # exercise -> its different texts
    for id, text in texts:
        if id:
            found.setdefault(id, {})[text] = None
    strays = [text for id, text in texts if id is None]
    recovered = _match_by_function(strays, _find_unmarked(found, chapter))
    found |= recovered
    twice = {id: f"{len(all)} cells claim to be the answer: keep one." for id, all in found.items() if len(all) > 1}
    answers = {id: next(iter(all)) for id, all in found.items() if id not in twice}
    return Submission(path, answers, twice, chapter, recovered=frozenset(recovered), cells=all_cells)


def _find_unmarked(found, chapter):
    """The exercises of the file's chapters that no cell is marked with; of all chapters where nothing tells which."""
    chapters = {chapter_of(id) for id in found} | {chapter}
    known = [id for id in exercise_ids() if chapter_of(id) in chapters] or exercise_ids()
    return [id for id in known if id not in found]


def _match_by_function(texts, lost):
    """The exercises whose function exactly these texts define, where one name means one exercise."""
    names: dict[str, list[str]] = {}
    for id in lost:
        names.setdefault(exercise(id).function, []).append(id)
    found: dict[str, dict[str, None]] = {}
    for text in texts:
        for name in re.findall(r"^def (\w+)\(", text, re.M):
            if len(names.get(name, ())) == 1:
                found.setdefault(names[name][0], {})[text] = None
    return found


def _as_mapping(value: Any) -> Mapping[str, Any]:
    """The value, or an empty mapping where a broken file holds something else."""
    return value if isinstance(value, dict) else {}


def _identify_exercise(cell: Any) -> str | None:
    """The exercise that a cell answers, by its id, or that in the metadata of Colab or nbgrader, or the book's own.

    Cells of an edition before name it by its number then. "" is another cell of the book, None one of which nothing is
    known.
    """
    metadata = _as_mapping(_as_mapping(cell).get("metadata"))
    for name in (cell.get("id"), metadata.get("id"), _as_mapping(metadata.get("nbgrader")).get("grade_id")):
        kind, _, rest = str(name).partition("-")
        numbered = _BY_NUMBER.fullmatch(rest)
        id = current_id(".".join(numbered.groups())) if numbered else rest
        if kind in ("exercise", "check") and (numbered or id in exercise_ids()):
            return id if kind == "exercise" and id in exercise_ids() else ""
        if re.fullmatch(r"[a-z0-9-]+-code-\d{3}", str(name)):
            return ""
    tags, id = metadata.get("tags"), current_id(str(metadata.get("exercise")))
    return id if isinstance(tags, list) and "exercise" in tags and id in exercise_ids() else None


def _read_text(cell: Any, kind: str = "code") -> str | None:
    """The text of a cell of this kind, cut where it is endless, or None where it is none or has none."""
    if _as_mapping(cell).get("cell_type") != kind:
        return None
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        return None
    text = "".join(lines).replace("\r\n", "\n").replace("\r", "\n")[:MAX_CELL_CHARACTERS]
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be written again

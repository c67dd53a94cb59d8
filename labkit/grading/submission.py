"""The reader of submissions: it takes the text of exercise cells, and nothing else of the file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from labkit.checking.as_text import MAX_CHARACTERS
from labkit.exercises import chapter_of, exercise, known_ids
from labkit.exercises.contents import book_contents, current_id, slug_of
from labkit.grading.files import Found, Unreadable, find_notebooks, read_bytes

SAVE_AGAIN = "Open it in JupyterLab, save it, and hand it in again."
MAX_CELLS = 5000
MAX_CELL_CHARACTERS = MAX_CHARACTERS + 1  # one more, so that it is judged to be too long
_BY_NUMBER = re.compile(r"(\d\d)-(\d)")  # the end of cell ids in an earlier edition
MAX_ALL_CHARACTERS = 1 << 20  # without outputs


@dataclass(frozen=True)
class Submission:
    """One notebook as handed in."""

    path: Path
    answers: Mapping[str, str] = field(default_factory=dict)  # text by exercise id
    refused: Mapping[str, str] = field(default_factory=dict)  # reason by exercise id, if an answer cannot be taken
    chapter: str = ""  # slug of the chapter that the file says it is, or seems to be if it cannot be read
    complaint: str = ""  # the reason why it could not be read
    recovered: frozenset[str] = frozenset()  # ids of answers that were found by the name of their function
    cells: tuple[tuple[str, str], ...] = ()  # kind and text of all cells


def find_submissions(paths: list[Path]) -> tuple[list[Found], list[Path]]:
    """Find the files to grade: the named files and the notebooks in the named folders; and the files left out.

    The book's own solutions are left out unless they are named, because every fork of the book holds them.
    """
    found = {entry.path: entry for path in paths for entry in find_notebooks(path)}
    named_paths = {path.absolute() for path in paths}
    solutions = [
        path
        for path in found
        if path.absolute().parent.parts[-2:] == ("notebooks", "solutions")
        and not named_paths & {path.absolute(), path.absolute().parent}
    ]
    return [entry for path, entry in found.items() if path not in solutions], solutions


def read_submission(path: Path) -> Submission:
    """Read the answers in a notebook; a file that is not a notebook gives a complaint instead of an error."""
    whole = ""
    try:
        content = read_bytes(path)
        whole = content.decode(json.detect_encoding(content))
        notebook = json.loads(whole)
        cells = notebook["cells"]
        if not isinstance(cells, list):
            raise TypeError
    except Unreadable as error:
        return refuse_file(path, str(error))
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} is not {error.encoding.upper()}"
        complaint = f"The file cannot be read: it is saved as Latin-1 or in another encoding ({where}). {SAVE_AGAIN}"
        return refuse_file(path, complaint, content.decode("latin-1"))
    except (ValueError, RecursionError, MemoryError) as error:
        return refuse_file(path, _explain_no_json(whole, error), whole)
    except (KeyError, TypeError):
        return refuse_file(path, "The file is not a notebook: it has no list of cells.", whole)
    if len(cells) > MAX_CELLS:
        return refuse_file(path, f"The notebook has more than {MAX_CELLS:,} cells: hand in the chapter alone.", whole)
    kinds = ("code", "markdown")
    all_cells = tuple((kind, text) for cell in cells for kind in kinds if (text := _read_text(cell, kind)) is not None)
    if sum(len(text) for _, text in all_cells) > MAX_ALL_CHARACTERS:
        complaint = f"The cells hold more than {MAX_ALL_CHARACTERS:,} characters: hand in the chapter alone."
        return refuse_file(path, complaint, whole)
    chapter = slug_of(str(_as_mapping(_as_mapping(notebook.get("metadata")).get("labkit")).get("chapter", "")))
    texts = [(_identify_exercise(cell), text) for cell in cells if (text := _read_text(cell)) is not None]
    found: dict[str, dict[str, None]] = {}  # exercise -> its different texts
    for id, text in texts:
        if id:
            found.setdefault(id, {})[text] = None
    strays = [text for id, text in texts if id is None]
    recovered = _match_by_function(strays, _find_unmarked(found, chapter))
    found |= recovered
    counts = {id: len(versions) for id, versions in found.items() if len(versions) > 1}
    refused = {id: f"{count} cells claim to be the answer: keep one." for id, count in counts.items()}
    answers = {id: next(iter(versions)) for id, versions in found.items() if id not in refused}
    return Submission(path, answers, refused, chapter, recovered=frozenset(recovered), cells=all_cells)


def refuse_file(path: Path, complaint: str, text: str = "") -> Submission:
    """Return the submission of a file that cannot be read, with its chapter by its name or what can be seen of it."""
    named = [chapter.slug for chapter in book_contents().chapters if chapter.slug in path.stem]
    seen = [slug_of(name) for name in re.findall(r'"chapter": *"([\w-]{1,99})"', text)]
    seen += [chapter_of(id) for id in re.findall(r'"exercise-([\w-]{1,99})"', text) if id in known_ids()]
    chapters = [max(named, key=len)] if named else [slug for slug in seen if book_contents().chapter(slug)]
    return Submission(path, chapter=chapters[0] if chapters else "", complaint=complaint)


def _explain_no_json(text: str, error: Exception) -> str:
    if conflict := re.search(r"^<<<<<<< ", text, re.M):
        line = text.count("\n", 0, conflict.start()) + 1
        return f"The file has conflict markers of git, first in line {line}: resolve the conflict. {SAVE_AGAIN}"
    if not text.strip():
        return f"The file is empty, and not a notebook. {SAVE_AGAIN}"
    where = f": {error.msg}, line {error.lineno}, column {error.colno}" if isinstance(error, JSONDecodeError) else ""
    return f"The file is not a notebook, or was cut off{where}. {SAVE_AGAIN}"


def _find_unmarked(answered_ids, chapter):
    """Return the exercises of the file's chapters that mark no cell; of all chapters if its chapters are unknown."""
    chapters = {chapter_of(id) for id in answered_ids} | {chapter}
    ids = [id for id in known_ids() if chapter_of(id) in chapters] or known_ids()
    return [id for id in ids if id not in answered_ids]


def _match_by_function(texts, ids):
    """Match texts to exercises by the function that they define, if its name belongs to only one exercise."""
    names: dict[str, list[str]] = {}
    for id in ids:
        names.setdefault(exercise(id).function, []).append(id)
    found: dict[str, dict[str, None]] = {}
    for text in texts:
        for name in re.findall(r"^def (\w+)\(", text, re.M):
            if len(names.get(name, ())) == 1:
                found.setdefault(names[name][0], {})[text] = None
    return found


def _as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value, or an empty mapping if a broken file holds something else."""
    return value if isinstance(value, dict) else {}


def _identify_exercise(cell: Any) -> str | None:
    """Return the exercise that a cell answers, by its id or its metadata from Colab, nbgrader or the book.

    Cells of an earlier edition name it by its number then. "" means another cell of the book, None an unknown cell.
    """
    metadata = _as_mapping(_as_mapping(cell).get("metadata"))
    for name in (cell.get("id"), metadata.get("id"), _as_mapping(metadata.get("nbgrader")).get("grade_id")):
        kind, _, id_or_number = str(name).partition("-")
        numbered = _BY_NUMBER.fullmatch(id_or_number)
        id = current_id(".".join(numbered.groups())) if numbered else id_or_number
        if kind in ("exercise", "check") and (numbered or id in known_ids()):
            return id if kind == "exercise" and id in known_ids() else ""
        if re.fullmatch(r"[a-z0-9-]+-code-\d{3}", str(name)):
            return ""
    tags, id = metadata.get("tags"), current_id(str(metadata.get("exercise")))
    return id if isinstance(tags, list) and "exercise" in tags and id in known_ids() else None


def _read_text(cell: Any, kind: str = "code") -> str | None:
    """Return the text of a cell, cut if it is too long; None if it is of another kind or has no text."""
    if _as_mapping(cell).get("cell_type") != kind:
        return None
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        return None
    text = "".join(lines).replace("\r\n", "\n").replace("\r", "\n")[:MAX_CELL_CHARACTERS]
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be written again

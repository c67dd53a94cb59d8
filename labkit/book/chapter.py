"""A chapter's source, MyST notebook text, as two notebooks: exercises solved, and blank."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labkit.book import glossary
from labkit.book.contents import SourceError
from labkit.book.folding import folded_cells
from labkit.book.links import number_title, resolve_references
from labkit.exercises import exercise
from labkit.exercises.contents import Contents, book_contents

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CHECKED = "nbval-check-output"
_SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n(.*?)^ *### END SOLUTION\n?", re.M | re.S)


@dataclass(frozen=True)
class Chapter:
    """The two notebooks of a chapter, without outputs."""

    name: str
    solved: nbformat.NotebookNode
    blank: nbformat.NotebookNode


def read_chapter(path: Path, book: Contents | None = None) -> Chapter:
    """Read both notebooks of the source file `slug.md`, in a book of these contents; this book if None."""
    book = book or book_contents()
    chapter = book.chapter(path.stem)
    assert chapter is not None, f"{path.name} is in no table of contents"
    cells = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst").cells
    if not cells:
        raise SourceError(f"{path.name}: it is empty; begin it with a title, `# Title`.")
    _require_exercises(path.name, cells)
    cells[0].source = number_title(cells[0].source, chapter)
    if chapter.slug == glossary.SLUG:
        words = glossary.list_words(glossary.glossary(path.parent.parent))
        cells[-1].source = cells[-1].source.replace(glossary.PLACE, words)
    for cell in cells:
        cell.source = resolve_references(cell.source, chapter, book, is_code=cell.cell_type == "code")
    _link_words(path, cells, chapter, book)
    ids = _cell_ids(chapter.slug, cells)
    solved = [_cell(cell, id, _keep_solution(cell.source)) for cell, id in zip(cells, ids, strict=True)]
    blank = [_cell(cell, id, _replace_solution(cell.source)) for cell, id in zip(cells, ids, strict=True)]
    for index in folded_cells(cells):  # JupyterLab folds the source, and shows what the cell returns
        for notebook in (solved, blank):
            notebook[index].metadata["jupyter"] = {"source_hidden": True}
    for cell in solved:
        if "check" in cell.metadata.get("tags", ()):
            cell.metadata["tags"].append(CHECKED)
    return Chapter(chapter.name, _notebook(chapter, solved), _notebook(chapter, blank))


def _link_words(path, cells, chapter, book):
    """Link words of earlier chapters to the glossary, where there is one beside the chapter."""
    page = book.chapter(glossary.SLUG)
    if page is None or chapter == page or not path.with_name(f"{page.slug}.md").exists():
        return
    words = glossary.earlier_words(glossary.glossary(path.parent.parent), chapter.slug, book)
    seen = set()
    for cell in cells:
        if cell.cell_type != "code":
            cell.source = glossary.link_words(cell.source, words, page.name, seen)


def read_solutions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the solutions in a chapter's source: exercise, and text that learners do not get."""
    for cell in jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst").cells:
        if "exercise" in cell.metadata.get("tags", ()):
            for region in _SOLUTION.finditer(cell.source):
                yield cell.metadata["exercise"], "".join(_lines(region, are_marked=False))


def exercise_cell_id(exercise: str) -> str:
    """Return the id of the cell that an exercise's answer is written in."""
    return f"exercise-{exercise}"


def check_cell_id(exercise: str) -> str:
    """Return the id of the cell that checks an exercise."""
    return f"check-{exercise}"


def _notebook(chapter, cells):
    return new_notebook(cells=cells, metadata={**METADATA, "labkit": {"chapter": chapter.slug}})


def _cell(cell, id, source):
    metadata = {key: cell.metadata[key] for key in ("tags", "exercise", "jupyter") if key in cell.metadata}
    if "tags" in metadata:
        metadata["tags"] = list(metadata["tags"])
    make = new_code_cell if cell.cell_type == "code" else new_markdown_cell
    return make(source, id=id, metadata=metadata)


def _cell_ids(slug, cells):
    """Return cell ids; text and code are counted separately, so that a new paragraph renames no code cell."""
    count = Counter()
    ids = []
    for cell in cells:
        tags = cell.metadata.get("tags", ())
        kind = "code" if cell.cell_type == "code" else "text"
        count[kind] += 1
        if "exercise" in tags:
            ids.append(exercise_cell_id(cell.metadata["exercise"]))
        elif "check" in tags:
            ids.append(check_cell_id(cell.metadata["exercise"]))
        else:
            ids.append(f"{slug}-{kind}-{count[kind]:03d}")
    return ids


def _require_exercises(file, cells):
    """Raise a SourceError unless every exercise has one cell to write in and one check cell after it."""
    found = []
    for cell in cells:
        rest = _SOLUTION.sub("", cell.source)
        if "### BEGIN SOLUTION" in rest or "### END SOLUTION" in rest:
            raise SourceError(f"{file}: a `### BEGIN SOLUTION` has no `### END SOLUTION`, or the reverse:\n{rest}")
        for tag in {"exercise", "check"} & set(cell.metadata.get("tags", ())):
            id = cell.metadata.get("exercise")
            if not isinstance(id, str):
                raise SourceError(f"{file}: a cell tagged `{tag}` needs its exercise, `:exercise: pad-the-tile`.")
            try:
                exercise(id)
            except ValueError as error:
                raise SourceError(f"{file}: {error}") from error
            found.append((tag, id))
    wanted = [(tag, id) for id in dict.fromkeys(id for _, id in found) for tag in ("exercise", "check")]
    if found != wanted:
        faults = [f"{tag} cell of {id} missing" for tag, id in wanted if (tag, id) not in found]
        faults += [
            f"{tag} cell of {id} too many" for tag, id in found if found.count((tag, id)) > wanted.count((tag, id))
        ]
        raise SourceError(f"{file}: {'; '.join(dict.fromkeys(faults)) or 'its exercises are out of order'}.")


def _keep_solution(source):
    return _SOLUTION.sub(lambda region: "".join(_lines(region, are_marked=False)), source).rstrip("\n")


def _replace_solution(source):
    return _SOLUTION.sub(_stub, source).rstrip("\n")


def _stub(region):
    """Return the lines marked `#|`, such as a bug to find, else `...`; a lone `#|` is no line."""
    lines = _lines(region, are_marked=True)
    unmarked = [re.sub(r"#\| ?", "", line, count=1) for line in lines if line.strip() != "#|"]
    return "".join(unmarked) if lines else f"{region[1]}...\n"


def _lines(region, are_marked):
    """Return the lines of a region that are marked `#|`, or those that are not."""
    return [line for line in region[2].splitlines(keepends=True) if line.lstrip().startswith("#|") == are_marked]

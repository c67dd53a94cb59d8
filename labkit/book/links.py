"""References by slug in a source, written out with numbers, titles and points: chapters, exercises and tasks.

- `[](chapter:tiled-gemm)` becomes "chapter 03", linked; in `[Chapter {}](chapter:tiled-gemm)` the number takes the
  braces' place.
- `[](exercise:pad-the-tile)` becomes "exercise 03.2", and as a heading "Exercise 03.2 · Pad the tile (2 points)".
- `[](task:pad-the-tile)` becomes the exercise's task.

In code there are no links, only numbers.
"""

import re

from labkit.book.contents import SourceError
from labkit.exercises import exercise
from labkit.exercises.contents import Chapter, Contents

_HEADING = re.compile(r"^### \[\]\(exercise:([\w-]+)\)$", re.M)
_REFERENCE = re.compile(r"\[([^\]\n]*)\]\((chapter|exercise|task):([\w-]*)\)")
_TITLE = re.compile(r"\A# (.+)")


def number_title(text: str, chapter: Chapter) -> str:
    """Return the chapter's first cell with the number in its title."""
    return _TITLE.sub(rf"# {chapter.number} · \1", text)


def resolve_references(text: str, chapter: Chapter, book: Contents, is_code: bool) -> str:
    """Return the text of a cell of this chapter with its references by slug written out."""

    def reference(match):
        words, kind, slug = match.groups()
        if kind == "task":
            return exercise(slug).task
        there = book.chapter(slug) if kind == "chapter" else book.chapter_with(slug)
        if there is None:
            raise SourceError(f"{chapter.slug}.md: {match[0]} leads nowhere; {slug!r} is no {kind} of the book.")
        number = there.number if kind == "chapter" else book.number(slug)
        words = (words or f"{kind} {{}}").replace("{}", number)
        return words if is_code or there == chapter else f"[{words}]({there.name}.ipynb)"

    try:
        if not is_code:
            text = _HEADING.sub(lambda match: f"### {_heading(match[1], book)}", text)
        return _REFERENCE.sub(reference, text)
    except ValueError as error:
        raise SourceError(f"{chapter.slug}.md: {error}") from error


def _heading(id, book):
    rules = exercise(id)
    points = "1 point" if rules.points == 1 else f"{rules.points} points"
    return f"Exercise {book.number(id)} · {rules.title} ({points})"

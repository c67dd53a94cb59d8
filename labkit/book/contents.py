"""The table of contents, `notebooks/toc.yml`, from which the chapters' numbers and exercises are derived."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml

from labkit import places
from labkit.exercises.contents import Chapter, Contents
from labkit.exercises.own import find_exercises, own_sources

TOC = "toc.yml"


class SourceError(Exception):
    """A chapter's source or the table of contents that cannot be built; the message says what to change."""


@dataclass(frozen=True)
class Entry:
    """A chapter's line in the table of contents: its slug, and a sentence on what a reader will see ("" if none)."""

    slug: str
    sentence: str


@dataclass(frozen=True)
class Part:
    """A part of the book: its name, the number of its first chapter if that is stated, and its chapters."""

    name: str
    first: int | None
    chapters: tuple[Entry, ...]


def read_toc(notebooks: Path) -> list[Part]:
    """Read `toc.yml`. A chapter is `slug` or `slug: sentence`."""
    parts = yaml.safe_load((notebooks / TOC).read_text(encoding="utf-8"))
    return [
        Part(
            part["part"],
            part.get("from"),
            tuple(Entry(*(*line.items(),)[0] if isinstance(line, dict) else (line, "")) for line in part["chapters"]),
        )
        for part in parts
    ]


def read_contents(notebooks: Path) -> Contents:
    """Read the chapters of `toc.yml`, their numbers and the exercises of their sources, in order."""
    chapters = []
    number = 0
    for part in read_toc(notebooks):
        first = number if part.first is None else part.first
        if first < number:
            raise SourceError(f"{TOC}: {part.name} begins at {first:02}, and {number - 1:02} is taken; raise `from`.")
        for number, slug in enumerate((entry.slug for entry in part.chapters), first):
            path = source(notebooks, slug)
            if not path.is_file():
                raise SourceError(f"{TOC}: {slug} has no source/{slug}.md; write it, or take the line out.")
            chapters.append(Chapter(slug, f"{number:02}", find_exercises(path)))
        number = first + len(part.chapters)
    _require_once([chapter.slug for chapter in chapters], "the chapter")
    _require_once([id for chapter in chapters for id in chapter.exercises], "the exercise")
    unlisted = {path.stem for path in (notebooks / "source").glob("*.md")} - {chapter.slug for chapter in chapters}
    if unlisted:
        raise SourceError(f"source/{min(unlisted)}.md is not in {TOC}; give it a line there.")
    return Contents(tuple(chapters))


def source(notebooks: Path, slug: str) -> Path:
    """Return the source file of a chapter."""
    return notebooks / "source" / f"{slug}.md"


def source_of(slug: str) -> Path:
    """Return the source file of a chapter of this book, or of an instructor's own chapter."""
    return next((path for path in own_sources() if path.stem == slug), source(places.folder("notebooks"), slug))


def title_of(path: Path) -> str:
    """Return the title of the chapter with this source."""
    return path.read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]


def _require_once(names, what):
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{what} {twice[0]} stands twice in the book; keep one.")

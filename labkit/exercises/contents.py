"""The table of contents: chapters and exercises in order, read from `contents.json`, which the build writes.

Ids are slugs and never change; numbers follow from the order and are only shown.
"""

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("contents.json")
NOTEBOOKS = "[0-9][0-9]-*.ipynb"  # names of built notebooks
_NUMBERED = re.compile(r"\d\d-")


@dataclass(frozen=True)
class Chapter:
    """A chapter: its slug, the number that is shown ("03"), and its exercises in order."""

    slug: str
    number: str
    exercises: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file name of its notebooks, without the suffix: "03-tiled-gemm"."""
        return f"{self.number}-{self.slug}"


@dataclass(frozen=True)
class Contents:
    """All chapters in the book's order."""

    chapters: tuple[Chapter, ...]

    def chapter(self, slug: str) -> Chapter | None:
        """Return the chapter with this slug, if there is one."""
        return next((chapter for chapter in self.chapters if chapter.slug == slug), None)

    def chapter_with(self, exercise: str) -> Chapter | None:
        """Return the chapter that has an exercise, if there is one."""
        return next((chapter for chapter in self.chapters if exercise in chapter.exercises), None)

    def number(self, exercise: str) -> str:
        """Return the number shown of an exercise, "03.2"; "" if it is in no chapter."""
        chapter = self.chapter_with(exercise)
        return f"{chapter.number}.{chapter.exercises.index(exercise) + 1}" if chapter else ""

    def to_json(self) -> str:
        """Return the text of `contents.json`, one line per chapter."""
        rows = [json.dumps(asdict(chapter)) for chapter in self.chapters]
        return "[\n" + ",\n".join(rows) + "\n]\n"


@cache
def book_contents() -> Contents:
    """Return the table of contents of this book."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return Contents(tuple(Chapter(row["slug"], row["number"], tuple(row["exercises"])) for row in rows))


def chapter_number(slug: str) -> str:
    """Return a chapter of this book as a sentence names it, "chapter 03"."""
    chapter = book_contents().chapter(slug)
    assert chapter is not None, f"{slug} is no chapter"
    return f"chapter {chapter.number}"


def slug_of(name: str) -> str:
    """Return the slug in a chapter's name as any edition writes it: "tiled-gemm", "03-tiled-gemm"."""
    return _NUMBERED.sub("", name, count=1) if _NUMBERED.match(name) else name


@cache
def _old_ids() -> dict[str, str]:
    """Return the ids of the edition that named exercises by number, each with the slug of the same exercise."""
    return json.loads(FILE.with_name("old_ids.json").read_text(encoding="utf-8"))


def current_id(id: str) -> str:
    """Return the id of an exercise by its id in any edition: "03.2" means what it meant in the first edition."""
    return _old_ids().get(id, id)

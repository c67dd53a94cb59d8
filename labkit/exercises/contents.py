"""The chapters and their exercises in order, with the numbers that are shown: `contents.json`, which the build writes.

Ids are slugs and stay; numbers follow from the order and are only shown.
"""

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from labkit.exercises.own import NUMBERS, find_exercises, own_sources
from labkit.table import json_lines

CONTENTS_FILE = Path(__file__).with_name("contents.json")
NOTEBOOK_GLOB = "[0-9][0-9]-*.ipynb"  # names of built notebooks
_NUMBERED = re.compile(r"\d\d-")


@dataclass(frozen=True)
class Chapter:
    """A chapter: its slug, the number that is shown ("03"), and its exercises in order."""

    slug: str
    number: str
    exercises: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its notebooks, without the suffix."""
        return f"{self.number}-{self.slug}"


@dataclass(frozen=True)
class Contents:
    """All chapters in the book's order."""

    chapters: tuple[Chapter, ...]

    def chapter(self, slug: str) -> Chapter | None:
        """The chapter of that slug, if there is one."""
        return next((chapter for chapter in self.chapters if chapter.slug == slug), None)

    def chapter_with(self, exercise: str) -> Chapter | None:
        """The chapter that an exercise is in, if it is in one."""
        return next((chapter for chapter in self.chapters if exercise in chapter.exercises), None)

    def number(self, exercise: str) -> str:
        """The number that is shown of an exercise, "03.2"; "" where it is in no chapter."""
        chapter = self.chapter_with(exercise)
        return f"{chapter.number}.{chapter.exercises.index(exercise) + 1}" if chapter else ""

    def to_json(self) -> str:
        """Return the text of `contents.json`, one line per chapter."""
        return json_lines(map(asdict, self.chapters)) + "\n"


def package_contents() -> Contents:
    """Return the contents of the book as it is in the package."""
    rows = json.loads(CONTENTS_FILE.read_text(encoding="utf-8"))
    return Contents(tuple(Chapter(row["slug"], row["number"], tuple(row["exercises"])) for row in rows))


@cache
def book_contents() -> Contents:
    """Return the contents of this book, with an instructor's own chapters before the appendices."""
    own = [Chapter(path.stem, str(number), find_exercises(path)) for number, path in zip(NUMBERS, own_sources())]
    return Contents(tuple(sorted([*package_contents().chapters, *own], key=lambda chapter: chapter.number)))


def chapter_number(slug: str) -> str:
    """A chapter of this book as a sentence names it, "chapter 03"."""
    chapter = book_contents().chapter(slug)
    assert chapter is not None, f"{slug} is no chapter"
    return f"chapter {chapter.number}"


def slug_of(name: str) -> str:
    """The slug in a chapter's name as any edition writes it: "tiled-gemm", "03-tiled-gemm"."""
    return _NUMBERED.sub("", name, count=1) if _NUMBERED.match(name) else name


@cache
def _old_ids() -> dict[str, str]:
    """The ids of the edition that named exercises by number, each with the slug of the same exercise."""
    return json.loads(CONTENTS_FILE.with_name("old_ids.json").read_text(encoding="utf-8"))


@cache
def retired_exercises() -> dict[str, str]:
    """The exercises that earlier editions had and no chapter has now, each with the slug of its chapter then."""
    return json.loads(CONTENTS_FILE.with_name("retired.json").read_text(encoding="utf-8"))


def current_id(id: str) -> str:
    """The id of an exercise that any edition may have named: "03.2" is always what it was in the first edition."""
    return _old_ids().get(id, id)

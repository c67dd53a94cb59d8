"""An instructor's own chapters and exercises, in a folder that labkit reads beside the book.

FOLDER/source/SLUG.md
    A chapter, written as those of the book.
FOLDER/exercises/SLUG_WITH_UNDERSCORES.py
    An exercise of such a chapter, or what several of them share.
FOLDER/answers/SLUG_WITH_UNDERSCORES.py
    Answers whose verdicts prove its check (`labkit prove`).

The instructor names the folder. Nothing of a submission does, and no file of a submission is imported.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path

from labkit import places

NUMBERS = range(60, 90)  # of own chapters: after those of the book, and before its appendices
_SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_EXERCISE = re.compile(r"^:tags: \[exercise\]\n:exercise: (\S+)$", re.M)


class OwnCourseError(Exception):
    """A folder that cannot be added to the book; the message says what to change."""


def own_folder() -> Path | None:
    """Return the folder with the instructor's own chapters and exercises, if one was named."""
    folder = os.environ.get(places.OWN_COURSE)  # the processes that judge inherit it
    return Path(folder) if folder else None


def own_sources(folder: Path | None = None) -> list[Path]:
    """Return the sources of the own chapters, in the order of their names."""
    folder = folder or own_folder()
    return sorted(folder.glob("source/*.md")) if folder else []


def own_modules(folder: Path | None = None) -> list[Path]:
    """Return the files of the own exercises, and of what they share."""
    folder = folder or own_folder()
    return sorted(folder.glob("exercises/*.py")) if folder else []


def find_exercises(source: Path) -> tuple[str, ...]:
    """Return the ids of the exercises in the source of a chapter, in order."""
    return tuple(_EXERCISE.findall(source.read_text(encoding="utf-8")))


def require_own_names(folder: Path, chapters: Collection[str], ids: Collection[str], modules: Collection[str]) -> None:
    """Raise OwnCourseError unless the folder has chapters, and names of its own for them and for its exercises.

    Parameters
    ----------
    chapters, ids, modules
        The slugs of the book's chapters, the ids of its exercises, and the names of its exercises' modules.
    """
    sources = own_sources(folder)
    if not sources:
        raise OwnCourseError(f"{folder} has no chapter: write one to source/SLUG.md there")
    if len(sources) > len(NUMBERS):
        raise OwnCourseError(
            f"{folder} has {len(sources)} chapters, and {len(NUMBERS)} are the limit: make two courses"
        )
    for path in sources:
        _require_name(path, path.stem, chapters)
        for id in find_exercises(path):
            _require_exercise(folder, path.name, id, ids)
    found = [id for path in sources for id in find_exercises(path)]
    if twice := [id for id in found if found.count(id) > 1]:
        raise OwnCourseError(f"the exercise {twice[0]} stands twice in {folder}; keep one")
    for path in own_modules(folder):
        _require_name(path, path.stem.replace("_", "-"), [module.replace("_", "-") for module in modules])


def _require_exercise(folder: Path, source: str, id: str, taken: Collection[str]) -> None:
    file = f"exercises/{id.replace('-', '_')}.py"
    if not _SLUG.fullmatch(id):
        raise OwnCourseError(f"source/{source}: name the exercise {id} as `{id.lower().replace('_', '-')}` is written")
    if id in taken:
        raise OwnCourseError(f"source/{source}: the book has an exercise {id}; give yours another name")
    if not (folder / file).is_file():
        raise OwnCourseError(f"source/{source} has the exercise {id}, and there is no {file}: write it")


def _require_name(path: Path, slug: str, taken: Collection[str]) -> None:
    name = f"{path.parent.name}/{path.name}"
    if not _SLUG.fullmatch(slug):
        raise OwnCourseError(f"{name}: name it with lower-case letters and digits, such as {_example(path)}")
    if slug in taken:
        raise OwnCourseError(f"{name}: labkit has a file of this name; give yours another one")


def _example(path: Path) -> str:
    return "warm-up.md" if path.suffix == ".md" else "warm_up.py"

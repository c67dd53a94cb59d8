"""The course that this labkit came with, and how chapters and assignments are named."""

import re
from collections.abc import Iterable
from pathlib import Path

from labkit import places
from labkit.exercises.contents import slug_of
from labkit.grading.course import FILE, Course

NOTEBOOKS = "notebooks"  # the folder of a release that students work in
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_SPAN = re.compile(r"(\d\d)(?:-(\d\d))?")


class CourseError(Exception):
    """A release, submission or collection that is refused; the message says what to do, in one sentence."""


def current() -> tuple[Course, Path] | None:
    """Return this labkit's course and its folder; None in the book's own checkout and in a wheel."""
    folder = places.CHECKOUT
    return (Course.read(folder / FILE), folder) if folder and (folder / FILE).is_file() else None


def check_name(assignment: str) -> str:
    """Return the name of an assignment if it is valid, else raise a CourseError."""
    if not _NAME.fullmatch(assignment):
        raise CourseError(f"{assignment!r} cannot name an assignment: use letters, digits, - and _, such as hw2")
    return assignment


def select_chapters(chapters: Iterable[str], selection: str) -> list[str]:
    """Return the chapters, named like their notebooks, of a selection such as "02-05" or "01,roofline"."""
    chapters = list(chapters)
    wanted: set[str] = set()
    for part in selection.split(","):
        part = part.strip()
        span = _SPAN.fullmatch(part)
        if span is None and not re.fullmatch(r"[a-z][a-z0-9-]*", part):
            raise CourseError(
                f"{selection!r} names no chapters: write numbers, spans and names, such as 02-05 or 01,roofline"
            )
        first, last = (span[1], span[2] or span[1]) if span else ("", "")
        found = {name for name in chapters if first <= name[:2] <= last or slug_of(name) == part}
        if not found:
            raise CourseError(f"there is no chapter {part}; there are {', '.join(name[:2] for name in chapters)}")
        wanted |= found
    return [name for name in chapters if name in wanted]

"""Safe search and reading of files that strangers hand in: odd ones (links, devices, endless files) give a reason."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 16 << 20  # per notebook
MAX_NOTEBOOKS = 1000  # per student, when they are collected too
MAX_DEPTH = 32
LATE = "(late)"  # the folder of a collection with a folder per student for late commits; no student can be named so


class Unreadable(Exception):
    """A file cannot be read; the message says why in a sentence."""


@dataclass(frozen=True)
class Found:
    """A file to grade, or the reason why it cannot be graded; `root` is the path under which it was found."""

    path: Path
    root: Path
    complaint: str = ""


def find_notebooks(root: Path) -> Iterator[Found]:
    """Yield the notebooks at a path, sorted; what only has a notebook's name gets a complaint.

    Links are not followed, and hidden folders, Jupyter's checkpoints among them, are skipped. Each folder directly at
    the path may be a student's, so the limit of notebooks holds for it.
    """
    if root.is_symlink() or not root.is_dir():
        yield Found(root, root)
        return
    counts = Counter()
    for found in _scan(root, root, 0):
        parts = found.path.relative_to(root).parts
        student = () if len(parts) < 2 else parts[:2] if parts[0] == LATE else parts[:1]
        counts[student] += 1
        if counts[student] <= MAX_NOTEBOOKS:
            yield found
        elif counts[student] == MAX_NOTEBOOKS + 1:
            complaint = f"More than {MAX_NOTEBOOKS:,} notebooks are here: the rest was left out."
            yield Found(found.path, root, complaint)


def _scan(folder, root, depth):
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        yield Found(folder, root, f"The folder cannot be read: {error.strerror}.")
        return
    for entry in entries:
        path = folder / entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith("."):
            continue
        if entry.name.lower().endswith(".ipynb"):
            yield Found(path, root, "This is a folder: hand in a notebook." if is_folder else "")
        elif is_folder and depth == MAX_DEPTH:
            yield Found(path, root, f"More than {MAX_DEPTH} folders stand in one another here: the rest was left out.")
        elif is_folder:
            yield from _scan(path, root, depth + 1)


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file of moderate size; opening it never blocks and follows no link."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    try:
        mode = os.lstat(path).st_mode  # before it is opened, for that does something to some devices
        if why := _explain_irregular(mode):
            raise Unreadable(why)
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise Unreadable("There is no such file.") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"The file cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    with open(handle, "rb") as file:
        if why := _explain_irregular(os.fstat(handle).st_mode):
            raise Unreadable(why)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Unreadable(f"The file has more than {MAX_BYTES >> 20} MB: clear its outputs and hand it in again.")
    return content


def _explain_irregular(mode):
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISLNK(mode):
        return "This is a link: hand in the file itself."
    return "This is a folder: hand in a notebook." if stat.S_ISDIR(mode) else "This is not a file: hand in a notebook."


def name_roots(roots: Iterable[Path]) -> dict[Path, str]:
    """Return a name for each path: its last parts, as few as tell it from the others."""
    parts = {root: root.absolute().parts for root in roots}

    def tells_apart(root, count):
        return sum(other[-count:] == parts[root][-count:] for other in parts.values()) == 1

    names = {}
    for root, own in parts.items():
        count = next((count for count in range(1, len(own)) if tells_apart(root, count)), len(own))
        names[root] = "/".join(own[-count:])
    return names


def printable_path(path: Path | str) -> str:
    """Return a path as text that can be printed and is unique: odd characters are escaped."""
    text = path.as_posix() if isinstance(path, Path) else path
    return "".join(c if c.isprintable() and c != "\\" else ascii(c)[1:-1] for c in text)

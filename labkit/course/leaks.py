"""Solutions that stand in what students get."""

import re
from collections.abc import Iterable, Iterator, Mapping

import nbformat

TELLING = 40  # characters: shorter solutions, such as `TILE = 16`, are the language of the book


def find_leaks(solutions: Iterable[tuple[str, str]], files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the exercise and the file of each solution that stands in a file; layout does not count.

    A solution is the id of its exercise, and its text.
    """
    telling = [(id, text) for id, text in ((id, _flatten(text)) for id, text in solutions) if len(text) > TELLING]
    for name, content in files.items():
        shown = _flatten(read_text(name, content))
        yield from ((id, name) for id, text in telling if text in shown)


def read_text(name: str, content: bytes) -> str:
    """Return what a reader of a file sees; of a notebook, the sources of its cells."""
    text = content.decode("utf-8", "replace")
    return "\n".join(cell.source for cell in nbformat.reads(text, 4).cells) if name.endswith(".ipynb") else text


def _flatten(text):
    return re.sub(r"\s+", " ", text).strip()

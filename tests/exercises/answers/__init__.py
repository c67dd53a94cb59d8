"""Other answers to the exercises, a file each: wrong ones with the reason that they must get, and right ones.

A file has up to four tuples:

VARIANTS
    Small changes of the solution, each with what the check must say of it.
RIGHT
    Right kernels in other clothes: constants written in other ways, helpers, and other ways to the same end.
WRONG
    Kernels that are wrong in a way that is easily missed: beyond the sizes published, or for some factors only.
SHORTCUTS
    Right results that do not do what the exercise is about, in ways that once paid or might.
"""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Answer:
    """Another answer, and what the check must say of it: "solved", or the reason why not.

    It is the solution with `edits` made (old text, new text), or a whole `cell` of its own.
    """

    what: str
    reason: str
    edits: tuple[tuple[str, str], ...] = ()
    cell: str = ""

    def source(self, solution: str) -> str:
        """The text of the cell; each old text must stand in the solution exactly once."""
        text = self.cell or solution
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"answer {self.what!r}: {old!r} stands {text.count(old)} times in the solution")
            text = text.replace(old, new)
        return text


def right(what, *edits, cell=""):
    return Answer(what, "solved", edits, cell)


def wrong(what, *edits):
    return Answer(what, "wrong", edits)


def shortcut(what, *edits, cell=""):
    return Answer(what, "shortcut", edits, cell)


def answers(id: str, kind: str) -> tuple[Answer, ...]:
    """The answers of one kind ("VARIANTS", "RIGHT", "WRONG" or "SHORTCUTS") to an exercise."""
    return getattr(import_module(f"{__name__}.{id.replace('-', '_')}"), kind, ())


def variants(id: str) -> tuple[Answer, ...]:
    """The small changes of an exercise's solution."""
    return answers(id, "VARIANTS")

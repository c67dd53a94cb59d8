"""Other answers to the exercises, one file per exercise: wrong ones with the reason they must get, and right ones.

A file has up to four tuples:

VARIANTS
    Small changes of the solution, each with what the check must say of it.
RIGHT
    Right kernels written in other ways: other constants, helpers, other algorithms.
WRONG
    Kernels with an error that is easily missed: only beyond the published sizes, or only for some factors.
SHORTCUTS
    Kernels with right results that avoid what the exercise is about.
"""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Answer:
    """Another answer, and the reason that its verdict must have ("solved" if it is right).

    It is the solution with `edits` made (old text, new text), or a whole `cell` of its own. `mistake` is the cause that
    the verdict must name, if the exercise knows the mistake.
    """

    what: str
    reason: str
    edits: tuple[tuple[str, str], ...] = ()
    cell: str = ""
    mistake: str = ""

    def source(self, solution: str) -> str:
        """Return the text of the cell; each old text must be in the solution exactly once."""
        text = self.cell or solution
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"answer {self.what!r}: {old!r} stands {text.count(old)} times in the solution")
            text = text.replace(old, new)
        return text


def right(what, *edits, cell=""):
    return Answer(what, "solved", edits, cell)


def wrong(what, *edits, mistake=""):
    return Answer(what, "wrong", edits, mistake=mistake)


def shortcut(what, *edits, cell=""):
    return Answer(what, "shortcut", edits, cell)


def answers(id: str, kind: str) -> tuple[Answer, ...]:
    """Return the answers of one kind ("VARIANTS", "RIGHT", "WRONG" or "SHORTCUTS") to an exercise."""
    return getattr(import_module(f"{__name__}.{id.replace('-', '_')}"), kind, ())


def variants(id: str) -> tuple[Answer, ...]:
    """Return the small changes of an exercise's solution."""
    return answers(id, "VARIANTS")

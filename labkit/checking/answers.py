"""Answers to an exercise whose verdicts are known: what its check is proven by.

A file of answers has up to four tuples:

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

KINDS = "VARIANTS", "RIGHT", "WRONG", "SHORTCUTS"
REFUSED = "wrong", "shortcut"  # in place of a reason: whichever it is, and perhaps only on some random sizes


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
        if text == solution:
            raise ValueError(f"answer {self.what!r} is the solution as it stands")
        return text


def right(what: str, *edits: tuple[str, str], cell: str = "") -> Answer:
    """Make a right answer."""
    return Answer(what, "solved", edits, cell)


def wrong(what: str, *edits: tuple[str, str], mistake: str = "") -> Answer:
    """Make a wrong answer, refused for whatever reason."""
    return Answer(what, "wrong", edits, mistake=mistake)


def shortcut(what: str, *edits: tuple[str, str], cell: str = "") -> Answer:
    """Make a shortcut, refused for whatever reason."""
    return Answer(what, "shortcut", edits, cell)

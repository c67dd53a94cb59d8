"""Other answers to the exercises, a file each: wrong ones with the reason that they must get, and right ones."""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Variant:
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
                raise ValueError(f"variant {self.what!r}: {old!r} stands {text.count(old)} times in the solution")
            text = text.replace(old, new)
        return text


def variants(id: str) -> tuple[Variant, ...]:
    """The other answers to an exercise."""
    return import_module(f"{__name__}.e{id.replace('.', '_')}").VARIANTS

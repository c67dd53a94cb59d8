"""Other answers to the book's exercises, one file per exercise; `labkit.checking.answers` says what a file holds."""

from importlib import import_module

from labkit.checking.answers import Answer, right, shortcut, wrong

__all__ = ["Answer", "answers", "right", "shortcut", "variants", "wrong"]


def answers(id: str, kind: str) -> tuple[Answer, ...]:
    """Return the answers of one kind ("VARIANTS", "RIGHT", "WRONG" or "SHORTCUTS") to an exercise."""
    return getattr(import_module(f"{__name__}.{id.replace('-', '_')}"), kind, ())


def variants(id: str) -> tuple[Answer, ...]:
    """Return the small changes of an exercise's solution."""
    return answers(id, "VARIANTS")

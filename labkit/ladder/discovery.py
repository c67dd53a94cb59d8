"""Finds ladders in the folders of operations: the kernels for one computation, from naive to fastest, a file each."""

from functools import cache
from inspect import getfile
from pathlib import Path

from labkit.ladder.step import Ladder, load_module
from labkit.places import STEPS, operations


@cache
def ladders(operation: str) -> tuple[Ladder, ...]:
    """Return the ladders of an operation."""
    package = load_module(f"labkit.{operation}")
    folder = Path(getfile(package)).parent
    names = sorted({path.parent.name for path in folder.glob(f"*/{STEPS}")})
    own = [Ladder(operation, "", package)] if any(folder.glob(STEPS)) else []
    return (*own, *(Ladder(operation, name, load_module(f"{package.__name__}.{name}")) for name in names))


def ladder(operation: str, name: str = "") -> Ladder:
    """Return a ladder of an operation by its name, `ladder("gemm", "fp32")`; a KeyError lists the existing ones."""
    by_name = {ladder.name: ladder for ladder in ladders(operation)}
    if name not in by_name:
        raise KeyError(f"there is no ladder {name!r} of {operation}; there is {', '.join(by_name)}")
    return by_name[name]


def every_ladder() -> list[Ladder]:
    """Return all ladders of all operations."""
    return [ladder for operation in operations() for ladder in ladders(operation)]

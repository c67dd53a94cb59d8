"""A row of a table of functions: its name, its typing, and what it does to the values of all lanes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numba.core import typing

from labkit.simulator import numba_types


@dataclass(frozen=True)
class Function:
    """A function of scalars.

    Parameters
    ----------
    name
        As a kernel writes it, such as `math.sqrt`.
    run
        What lanes do: it takes a NumPy scalar or an array an argument, of the types that the typing asks for, and
        gives one value or, for a tuple, several.
    typed_as
        The Python function that numba's own typing knows.
    cases
        Where numba-cuda types the call by a list of signatures of its own: `cases("float32(float32)")`.
    flops
        Floating-point operations of a call in one lane, where the hardware counts them.
    lacks_code
        Tells of types of arguments that numba-cuda has a typing for, and no code.
    """

    name: str
    run: Callable
    typed_as: object = None
    cases: tuple = ()
    flops: int = 0
    lacks_code: Callable = lambda kinds: False

    def resolve(self, kinds):
        """(result type, argument types after conversion) of a call, or None if numba has none."""
        if self.lacks_code(kinds):
            return None
        if self.cases:
            return numba_types.resolve_overload(self.name, self.cases, kinds)
        return numba_types.resolve(self.typed_as, kinds)


def from_numpy(names: str) -> dict[str, Callable]:
    """Return NumPy's functions of these names, separated by spaces."""
    return {name: getattr(np, name) for name in names.split()}


def cases(*written):
    """Signatures from text: `float64(float64, int32)`, or `float32, int32 (float32)` for a tuple of results."""
    return tuple(_signature(text) for text in written)


@cache
def _signature(text):
    results, arguments = text.rstrip(")").split("(")
    results = [numba_types.type_named(name) for name in _names(results)]
    arguments = [numba_types.type_named(name) for name in _names(arguments)]
    result = results[0] if len(results) == 1 else numba_types.types.Tuple(results)
    return typing.signature(result, *arguments)


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]

"""A row of a table of scalar functions: its name, its typing, and its computation on all lanes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.seam import signature, types


@dataclass(frozen=True)
class Function:
    """A function of scalars. `run` takes a NumPy scalar or array per argument, of the types that the typing gives."""

    name: str  # in a kernel, such as `math.sqrt`
    run: Callable  # the computation on lanes; returns one value or a tuple of values
    typed_as: object = None  # the Python function that numba's own typing knows
    cases: tuple = ()  # signatures, where numba-cuda types the call by its own list: `cases("float32(float32)")`
    flops: int = 0  # floating-point operations of a call in one lane, as the hardware counts them
    lacks_code: Callable = lambda kinds: False  # whether numba-cuda types arguments of these types, but has no code

    def resolve(self, kinds):
        """Return (result type, argument types after conversion) of a call, or None if numba has none."""
        if self.lacks_code(kinds):
            return None
        if self.cases:
            return numba_types.resolve_overload(self.cases, kinds)
        return numba_types.resolve(self.typed_as, kinds)


def from_numpy(names: str) -> dict[str, Callable]:
    """Return NumPy's functions of these names, separated by spaces."""
    return {name: getattr(np, name) for name in names.split()}


def cases(*texts):
    """Parse signatures: `float64(float64, int32)`, or `float32, int32 (float32)` for a tuple of results."""
    return tuple(_signature(text) for text in texts)


@cache
def _signature(text):
    results, arguments = text.rstrip(")").split("(")
    results = [numba_types.type_named(name) for name in _names(results)]
    arguments = [numba_types.type_named(name) for name in _names(arguments)]
    result = results[0] if len(results) == 1 else types.Tuple(results)
    return signature(result, *arguments)


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]

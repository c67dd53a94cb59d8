"""Elementwise operations: each output from the inputs at its own place, at the speed of memory.

>>> from labkit import elementwise
>>> y = elementwise.geglu(gate, up)
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.elementwise.gated_gelu.problem import GEGLU

ladder = partial(_ladder.ladder, "elementwise")

# What is loaded when it is asked for: it stands on the ladders.
_PLACES = {"geglu": "labkit.elementwise.gated_gelu.operation:geglu"}
__all__ = ["GEGLU", "ladder", *_PLACES]


def __getattr__(name):
    if name in _PLACES:
        globals()[name] = found = resolve_name(_PLACES[name])  # the next call finds it at once
        return found
    raise AttributeError(f"module 'labkit.elementwise' has no attribute {name!r}")


def __dir__():
    return __all__

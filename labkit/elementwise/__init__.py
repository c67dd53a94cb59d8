"""Elementwise operations: each output depends on the inputs at its own index; memory bandwidth limits them.

>>> from labkit import elementwise
>>> y = elementwise.geglu(gate, up)
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.elementwise.gated_gelu.problem import GEGLU

ladder = partial(_ladder.ladder, "elementwise")

# Loaded on first access, since it imports the ladders.
_PLACES = {"geglu": "labkit.elementwise.gated_gelu.operation:geglu"}
__all__ = ["GEGLU", "ladder", *_PLACES]


def __getattr__(name):
    if name in _PLACES:
        globals()[name] = value = resolve_name(_PLACES[name])  # cached for the next access
        return value
    raise AttributeError(f"module 'labkit.elementwise' has no attribute {name!r}")


def __dir__():
    return __all__

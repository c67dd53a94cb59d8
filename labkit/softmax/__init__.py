"""Softmax of rows: the problems, ladders of kernels with one idea per step, and the public calls.

>>> from labkit import softmax
>>> problem = softmax.Forward(rows=8192, columns=4096)
>>> operands = problem.operands()
>>> softmax.ladder("forward").step("on_chip").launch(*operands)
>>> y = softmax.softmax(x)
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.softmax.problem import Backward, Forward

ladder = partial(_ladder.ladder, "softmax")

# Loaded on first access, since it imports the ladders.
_PLACES = {name: f"labkit.softmax.interface:{name}" for name in ("softmax", "softmax_backward")}
_PLACES["plan"] = "labkit.calls.plan:plan"
__all__ = ["Backward", "Forward", "ladder", *_PLACES]


def __getattr__(name):
    if name in _PLACES:
        globals()[name] = value = resolve_name(_PLACES[name])  # cached for the next access
        return value
    raise AttributeError(f"module 'labkit.softmax' has no attribute {name!r}")


def __dir__():
    return __all__

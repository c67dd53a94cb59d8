"""Layouts of images: the same elements in another order, at the speed of a copy.

>>> from labkit import layouts
>>> images = layouts.Conversion(N=64, C=256, H=56, W=56, source="NCHW", target="NHWC")
>>> x, y, images = images.operands()
>>> layouts.ladder("transpose").step("swizzled").launch(x, y, images)
>>> layouts.convert(x, "NCHW", "NCHW_VECT_C", vector=32)
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.layouts.problem import Conversion

ladder = partial(_ladder.ladder, "layouts")

# What is loaded when it is asked for: it stands on the ladder.
_PLACES = {name: f"labkit.layouts.interface.conversion:{name}" for name in ("convert", "plan")}
__all__ = ["Conversion", "ladder", *_PLACES]


def __getattr__(name):
    if name in _PLACES:
        globals()[name] = found = resolve_name(_PLACES[name])  # the next call finds it at once
        return found
    raise AttributeError(f"module 'labkit.layouts' has no attribute {name!r}")


def __dir__():
    return __all__

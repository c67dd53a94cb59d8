"""Layouts of images: conversion to another order of elements, at the speed of a copy.

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

# loaded on first use, since these functions import the ladder
_LAZY = {name: f"labkit.layouts.interface.conversion:{name}" for name in ("convert", "plan")}
__all__ = ["Conversion", "ladder", *_LAZY]


def __getattr__(name):
    if name in _LAZY:
        globals()[name] = value = resolve_name(_LAZY[name])  # later look-ups skip this function
        return value
    raise AttributeError(f"module 'labkit.layouts' has no attribute {name!r}")


def __dir__():
    return __all__

"""Layouts of images: the same elements in another order, at the speed of a copy.

>>> from labkit import layouts
>>> images = layouts.Conversion(N=64, C=256, H=56, W=56, source="NCHW", target="NHWC")
>>> x, y, images = images.operands()
>>> layouts.ladder("transpose").step("naive").launch(x, y, images)
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.layouts.problem import Conversion

ladder = partial(_ladder.ladder, "layouts")
__all__ = ["Conversion", "ladder"]

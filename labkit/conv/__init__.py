"""Convolution: the problem, and ladders of kernels, one idea a step.

>>> from labkit import conv
>>> layer = conv.Forward(N=128, C=3, H=128, W=128, K=96, R=11, S=11)
>>> x, w, y, layer = layer.operands()
"""

from functools import partial

from labkit import ladder as _ladder
from labkit.conv.fft.circular import Circular, circular
from labkit.conv.problem import BackwardData, BackwardFilter, Convolution, Forward, output_size, pads

ladder = partial(_ladder.ladder, "conv")

__all__ = [
    "BackwardData",
    "BackwardFilter",
    "Circular",
    "Convolution",
    "Forward",
    "circular",
    "ladder",
    "output_size",
    "pads",
]

"""Convolution: the problem, ladders of kernels, and functions that choose among their algorithms.

>>> from labkit import conv
>>> layer = conv.Forward(N=128, C=3, H=128, W=128, K=96, R=11, S=11)
>>> x, w, y, layer = layer.operands()
>>> conv.forward(x, w)  # by the fastest algorithm, measured or predicted
>>> conv.heuristic(layer), conv.find(layer)
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.conv.problem import BackwardData, BackwardFilter, Convolution, Forward, output_size, pads

ladder = partial(_ladder.ladder, "conv")

# loaded on first use, since the public functions import all ladders
_LAZY = {
    **{name: f"labkit.conv.layers:{name}" for name in "RESNET_50_1X1 RESNET_50_3X3 TABLE_2 VGG_16 batched".split()},
    "Circular": "labkit.conv.fft.circular:Circular",
    "circular": "labkit.conv.fft.circular:circular",
    "spectra": "labkit.conv.fft.spectra:spectra",
    "spectrum": "labkit.conv.fft.spectra:spectrum",
    "comparisons": "labkit.conv.comparisons",
    "divisor": "labkit.parts.division:make_divisor",
    "transforms": "labkit.conv.winograd.transforms:transforms",
    "backward_data": "labkit.conv.interface.convolution:backward_data",
    "backward_filter": "labkit.conv.interface.convolution:backward_filter",
    "find": "labkit.conv.interface.finder:find",
    "forward": "labkit.conv.interface.convolution:forward",
    "heuristic": "labkit.conv.interface.choices:heuristic",
    "question": "labkit.conv.interface.choices:question",
    "records": "labkit.conv.records",
    "plan": "labkit.conv.interface.convolution:plan",
}
__all__ = ["BackwardData", "BackwardFilter", "Convolution", "Forward", "ladder", "output_size", "pads", *_LAZY]


def __getattr__(name):
    if name in _LAZY:
        globals()[name] = value = resolve_name(_LAZY[name])  # later look-ups skip this function
        return value
    raise AttributeError(f"module 'labkit.conv' has no attribute {name!r}")


def __dir__():
    return __all__

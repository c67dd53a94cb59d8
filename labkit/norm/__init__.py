"""Normalisation: the problems, ladders of kernels with one idea per step, and the public calls.

>>> from labkit import norm
>>> layer = norm.BatchForward(N=64, C=256, H=56, W=56)
>>> operands = layer.operands()
>>> norm.ladder("batch").step("fused").launch(*operands)
>>> y = norm.batch_norm(x, weight, bias, running_mean=mean, running_variance=variance, relu=True)
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.norm.backward import BatchBackward
from labkit.norm.inference import BatchInference
from labkit.norm.problem import BatchForward, average_factor
from labkit.norm.residual.problem import ResidualBackward, ResidualForward
from labkit.norm.rows.problem import RowForward
from labkit.norm.rows_backward.problem import RowBackward

ladder = partial(_ladder.ladder, "norm")

# Loaded on first access, since it imports the ladders.
_PLACES = {
    "batch_norm": "labkit.norm.interface.batch_norm:batch_norm",
    "batch_norm_backward": "labkit.norm.interface.batch_norm_backward:batch_norm_backward",
    "layer_norm": "labkit.norm.interface.row_norms:layer_norm",
    "layer_norm_backward": "labkit.norm.interface.row_norms_backward:layer_norm_backward",
    "rms_norm_backward": "labkit.norm.interface.row_norms_backward:rms_norm_backward",
    "rms_norm": "labkit.norm.interface.row_norms:rms_norm",
    "fold": "labkit.norm.folding:fold",
    "plan": "labkit.calls.plan:plan",
}
__all__ = [
    "BatchBackward",
    "BatchForward",
    "BatchInference",
    "ResidualBackward",
    "ResidualForward",
    "RowBackward",
    "RowForward",
    "average_factor",
    "ladder",
    *_PLACES,
]


def __getattr__(name):
    if name in _PLACES:
        globals()[name] = value = resolve_name(_PLACES[name])  # cached for the next access
        return value
    raise AttributeError(f"module 'labkit.norm' has no attribute {name!r}")


def __dir__():
    return __all__

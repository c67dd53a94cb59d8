"""Attention: the problem, and ladders of kernels, one idea per step.

>>> from labkit import attention
>>> problem = attention.AttentionForward(batch=8, heads=16, queries=2048, head_dim=128, causal=True)
>>> operands = problem.operands()
>>> attention.ladder("forward").step("q_outer").launch(*operands)
>>> O = attention.attend(Q, K, V, lse=lse, causal=True)
>>> dQ, dK, dV = attention.attend_backward(dO, Q, K, V, O, lse, causal=True)
>>> O = attention.attend_cached(Q, K, V, lengths)  # a few queries per sequence
>>> codes_and_scales = attention.quantise(Q, K, V)  # for the ladder "fp8"
"""

from functools import partial
from pkgutil import resolve_name

from labkit import ladder as _ladder
from labkit.attention import traffic
from labkit.attention.backward.problem import AttentionBackward
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.fp8.problem import AttentionFP8
from labkit.attention.problem import AttentionForward

ladder = partial(_ladder.ladder, "attention")

# Loaded at the first use, since these need the ladders.
_LAZY = {
    "attend": "labkit.attention.interface.attend:attend",
    "attend_backward": "labkit.attention.interface.attend_backward:attend_backward",
    "attend_cached": "labkit.attention.interface.cached:attend_cached",
    "cache_errors": "labkit.attention.rotation:cache_errors",
    "error_study": "labkit.attention.errors:error_study",
    "plan": "labkit.attention.interface.attend:plan",
    "plan_cached": "labkit.attention.interface.cached:plan_cached",
    "quantise": "labkit.attention.interface.quantise:quantise",
    "rotation_study": "labkit.attention.rotation:rotation_study",
}
__all__ = ["AttentionBackward", "AttentionDecode", "AttentionFP8", "AttentionForward", "ladder", "traffic", *_LAZY]


def __getattr__(name):
    if name in _LAZY:
        globals()[name] = value = resolve_name(_LAZY[name])
        return value
    raise AttributeError(f"module 'labkit.attention' has no attribute {name!r}")


def __dir__():
    return __all__

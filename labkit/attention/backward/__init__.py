"""Attention backward: the gradients of Q, K and V, whose scores are computed again, one idea a step.

Kernels see arrays as matrices of rows of head_dim, as those of attention forward do. All steps give the same bits each
time, since no two blocks add to the same number.
"""

from labkit.attention.backward.problem import AttentionBackward
from labkit.attention.forward import COMPARED as COMPARED
from labkit.formats import BF16, FP16

PROBLEM = AttentionBackward
FORMATS = BF16, FP16
EXAMPLES = (
    (1, 2, 70, 64, 70, 1, True),
    (1, 6, 33, 40, 130, 2, False, None, None, "BSHD"),
    (2, 2, 80, 64, 48, 1, True, 40, 0.2),
    (1, 1, 40, 128, 140, 1, False, None, -0.1, "BHSD", "rising"),
    (1, 1, 70, 64, 70, 1, False, 20, None, "BHSD", "huge"),
)
STANDING = (1, 1, 128, 64)
BENCHED = ()

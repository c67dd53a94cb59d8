"""Attention backward: the gradients of Q, K and V, with recomputed scores, one idea per step.

Kernels see arrays as matrices of rows of head_dim, as in attention forward. The same call returns the same bits each
time, since no two blocks add to the same number; only in `bulk_reduction` they do, and dQ may differ in its last bits.
"""

from labkit.attention.backward.problem import AttentionBackward
from labkit.attention.forward import COMPARED as COMPARED
from labkit.attention.forward import EXAMPLES as EXAMPLES
from labkit.attention.forward import LENGTHS, benched
from labkit.formats import BF16, FP16

PROBLEM = AttentionBackward
FORMATS = BF16, FP16
ROOFLINE_PROBLEM = (1, 1, 128, 64)  # batch, heads, queries, head_dim: small enough for the simulator
BENCHED = tuple(  # timed sizes
    sizes for head_dim in (128, 64) for causal in (False, True) for sizes in benched(head_dim, causal, *LENGTHS)
)
RECORD = "attention_backward"  # of timings, in labkit/results

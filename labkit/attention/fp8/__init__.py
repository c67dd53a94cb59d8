"""Attention forward of e4m3 operands with a scale per block, at twice the tensor cores' rate in bfloat16."""

from labkit.attention.forward import LENGTHS, benched
from labkit.attention.fp8.problem import AttentionFP8
from labkit.formats import E4M3

PROBLEM = AttentionFP8
FORMATS = (E4M3,)
EXAMPLES = (  # tested sizes: batch, heads, queries, head_dim, keys, kv_heads, causal, window, scale, layout, hard
    (1, 2, 70, 64, 70, 1, True),
    (1, 6, 33, 48, 130, 2),
    (2, 2, 80, 64, 300, 1, True, 40, 0.2),
    (1, 1, 140, 128, 300, 1, False, None, -0.1, "BHSD", "rising"),
    (1, 1, 270, 64, 140, 1, True, None, None, "BHSD", "huge"),
)
BENCHED = tuple(sizes for causal in (False, True) for sizes in benched(128, causal, *LENGTHS))  # timed sizes
COMPARED = benched(128, False, 16384)[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = (1, 1, 128, 64)  # batch, heads, queries, head_dim: small enough for the simulator
RECORD = "attention_fp8"  # of timings, in labkit/results

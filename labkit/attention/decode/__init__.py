"""Attention of a few queries to a long cache: from one block per head to equal work for all blocks of the GPU.

A score costs equally many bytes of K and of V, and hardly any arithmetic: the time is that of reading the cache. The
queries of all heads that share a head of K are rows of one tile, so the cache is read once for all of them. All steps
return the same bits each time.
"""

from labkit.attention.decode.problem import AttentionDecode
from labkit.formats import BF16, FP16

PROBLEM = AttentionDecode
FORMATS = BF16, FP16
# batch, heads, queries, head_dim, keys, kv_heads, causal, window, scale, layout, hard, page, ragged
EXAMPLES = (  # tested sizes
    (1, 8, 1, 128, 200, 1),
    (5, 4, 2, 64, 90, 1, True, None, 0.2, "BSHD", "", None, True),
    (4, 3, 4, 40, 70, 3, True, None, None, "BHSD", "rising", 16, True),
    (3, 8, 3, 128, 100, 2, False, None, -0.1, "BSHD", "huge", 32, True),
    (1, 2, 10, 64, 400, 1, True, None, None, "BHSD", "huge"),
)
LONG, SHORT = 32768, 2048  # keys


def benched(batch: int, keys: int, *options) -> tuple:
    """Sizes of a benchmark: one query per sequence, 32 heads of 128 elements that share 8 heads of the cache."""
    return (batch, 32, 1, 128, keys, 8, *options)


COMPARED = benched(1, LONG)  # the timed size by which steps are compared
BENCHED = (  # timed sizes
    COMPARED,
    benched(8, LONG),
    benched(64, LONG),
    benched(64, SHORT),
    benched(64, LONG, False, None, None, "BHSD", "", None, True),
    benched(8, LONG, False, None, None, "BSHD", "", 64),
)
ROOFLINE_PROBLEM = (1, 4, 1, 64, 256, 1)  # small enough for the simulator
RECORD = "attention_decode"  # of timings, in labkit/results

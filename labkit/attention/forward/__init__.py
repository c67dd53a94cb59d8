"""Attention forward: from the matrix of scores in memory to tiles that never leave the chip, one idea per step.

Kernels see Q, K, V and O as matrices of rows of head_dim. `strides` has the strides of batch, head and position of each
of these arrays, in rows, which is all of a layout. Query i sees keys i + window[0] to i + window[1].
"""

from labkit.attention.problem import AttentionForward
from labkit.formats import BF16, FP16

PROBLEM = AttentionForward
FORMATS = BF16, FP16
EXAMPLES = (  # tested sizes: batch, heads, queries, head_dim, keys, kv_heads, causal, window, scale, layout, hard
    (1, 2, 70, 64, 70, 1, True),
    (1, 6, 33, 40, 130, 2, False, None, None, "BSHD"),
    (2, 2, 80, 64, 48, 1, True, 40, 0.2),
    (1, 1, 40, 128, 140, 1, False, None, -0.1, "BHSD", "rising"),
    (1, 1, 70, 64, 70, 1, False, 20, None, "BHSD", "huge"),
)
LENGTHS = 2048, 4096, 8192, 16384  # of benchmarked sequences
TOKENS, WIDTH = 16384, 2048  # of all sequences together, and of all heads together


def benched(head_dim: int, causal: bool, *lengths: int) -> tuple:
    """Sizes of a benchmark: 16k tokens of a model of width 2048, in sequences of these lengths."""
    heads = WIDTH // head_dim
    return tuple((TOKENS // length, heads, length, head_dim, length, heads, causal) for length in lengths)


BENCHED = tuple(  # timed sizes
    sizes
    for head_dim, lengths in ((128, LENGTHS), (64, LENGTHS), (256, (4096,)))
    for causal in (False, True)
    for sizes in benched(head_dim, causal, *lengths)
)
COMPARED = benched(128, False, 4096)[0]  # the timed size by which steps are compared
ROOFLINE_PROBLEM = (1, 1, 128, 64)  # batch, heads, queries, head_dim: small enough for the simulator
RECORD = "attention"  # of timings, in labkit/results

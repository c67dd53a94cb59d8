"""Pieces of a row that a thread keeps as memory holds them: eight bfloat16 take four registers in place of eight.

A kernel that calls these functions is made for four float32 at once; `suited` gives its copy for other rows, as
`labkit.parts.row_pieces` does, whose `load` and `store` it may call as well. `kept` is an array of the thread, of a row
of `WORDS` elements of type `WORD` for each piece.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.formats import BF16
from labkit.parts import row_pieces

FORMAT = ptx.BF16


@cuda.jit(device=True)
def fetch(x, row, i, kept, k):
    """Reads the piece at column i of a row into `kept[k]`."""
    kept[k, 0], kept[k, 1], kept[k, 2], kept[k, 3] = ptx.load4(x, (row, i))


@cuda.jit(device=True)
def spread(kept, k, own):
    """What `kept[k]` stands for, into `own[0]`."""
    own[0, 0], own[0, 1], own[0, 2], own[0, 3] = kept[k, 0], kept[k, 1], kept[k, 2], kept[k, 3]


@cuda.jit(device=True)
def fetch_one(x, row, i, kept, k):
    kept[k, 0] = x[row, i]


@cuda.jit(device=True)
def spread_one(kept, k, own):
    own[0, 0] = kept[k, 0]


@cuda.jit(device=True)
def fetch_words(x, row, i, kept, k):
    kept[k, 0], kept[k, 1], kept[k, 2], kept[k, 3] = ptx.load4(x, (row, i // 2))


@cuda.jit(device=True)
def spread_words(kept, k, own):
    own[0, 0], own[0, 1] = ptx.unpack2(kept[k, 0], FORMAT)
    own[0, 2], own[0, 3] = ptx.unpack2(kept[k, 1], FORMAT)
    own[0, 4], own[0, 5] = ptx.unpack2(kept[k, 2], FORMAT)
    own[0, 6], own[0, 7] = ptx.unpack2(kept[k, 3], FORMAT)


@cuda.jit(device=True)
def spread_bits(kept, k, own):
    own[0, 0], _ = ptx.unpack2(kept[k, 0], FORMAT)


WAYS = {  # by whether arrays hold bfloat16, and whether a piece is one element
    (False, False): {"fetch": fetch, "spread": spread, "WORD": np.float32, "WORDS": 4},
    (False, True): {"fetch": fetch_one, "spread": spread_one, "WORD": np.float32, "WORDS": 1},
    (True, False): {"fetch": fetch_words, "spread": spread_words, "WORD": np.uint32, "WORDS": 4},
    (True, True): {"fetch": fetch_one, "spread": spread_bits, "WORD": np.uint32, "WORDS": 1},
}


def suited(kernel, dtype, width: int, bounds: int | tuple[int, int], cluster: int = 1, **constants):
    """As `labkit.parts.row_pieces.suited`, for a kernel that calls functions of this file too."""
    return row_pieces.suited(
        kernel, dtype, width, bounds, cluster, **WAYS[dtype == BF16.dtype, width == 1], **constants
    )

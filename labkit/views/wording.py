"""Words and look-ups that several views share."""

import numpy as np

from labkit.trace import Trace


def block_name(index) -> str:
    """A block as a learner writes it: (1, 0), not (1, 0, 0)."""
    kept = list(index)
    while len(kept) > 2 and kept[-1] == 0:
        kept.pop()
    return f"({', '.join(map(str, kept))})"


def join(parts) -> str:
    """One, two, or "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def recorded_block(trace: Trace, block=None):
    """A recorded block's index (the first if none is asked for) and its rows in the samples."""
    recorded = trace.samples.blocks
    if not recorded:
        raise ValueError("This trace recorded no block; simulate with record=((0, 0, 0),) to see one.")
    wanted = recorded[0] if block is None else tuple((*block, 0, 0)[:3])
    if wanted not in recorded:
        raise ValueError(
            f"Block {block_name(wanted)} was not recorded, only {join([block_name(b) for b in recorded])}; "
            f"simulate with record=({wanted},)."
        )
    return wanted, np.flatnonzero(trace.samples.block == recorded.index(wanted))

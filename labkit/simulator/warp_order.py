"""Orders of a launch's blocks and warps other than lockstep.

In lockstep all warps of a chunk come to a statement together. Here they run in several sets, one after another up to
the next wait; the chunks follow in the same order.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

MAX_SETS = 32  # of a chunk
MAX_ALL_SETS = 256  # of a launch


@dataclass(frozen=True)
class WarpOrder:
    """An order, and `name`, which says in words how its warps run.

    `seed` shuffles warps, blocks and chunks; None leaves them in turn. `backwards` runs the last first.
    """

    name: str
    backwards: bool = False
    seed: int | None = None

    def arrange(self, waves: Iterable[list]) -> list[list]:
        """Return the chunks of all waves in this order."""
        chunks = [chunk for wave in waves for chunk in wave]
        if self.seed is not None:
            chunks = [chunks[i] for i in np.random.default_rng(self.seed).permutation(len(chunks))]
        return [chunks[::-1] if self.backwards else chunks]

    def rank_warps(self, blocks: list[int], warps_per_block: int, blocks_in_grid: int) -> Int64[np.ndarray, "B W"]:
        """Return the turn of each warp of each block of a chunk; warps of one turn run in lockstep.

        A warp has a turn to itself where they are few.
        """
        count = len(blocks)
        sets = max(1, min(MAX_SETS, MAX_ALL_SETS * count // blocks_in_grid) // warps_per_block)
        groups = min(count, sets)
        block_turns = np.arange(count) * groups // count
        turns = block_turns[:, None] * warps_per_block + np.arange(warps_per_block)
        if self.seed is not None:
            rng = np.random.default_rng((self.seed, blocks[0]))
            turns = rng.permutation(groups * warps_per_block)[rng.permutation(turns)]
        return -turns if self.backwards else turns


ORDERS = (
    WarpOrder("one warp after another"),
    WarpOrder("one warp after another, the last first", backwards=True),
    WarpOrder("the warps in a random order", seed=0),
    WarpOrder("the warps in another random order", seed=1),
)

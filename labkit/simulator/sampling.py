"""The blocks of a sample, for a grid too large to run whole, and estimates from them.

A stratified cluster sample (Cochran, Sampling Techniques, 3rd edition, chapters 5 and 9A). The strata are the positions
of a block: along each axis first, last or between, so that each corner is a stratum of its own. In each, blocks are
drawn at random. The blocks that share an SM with it run too, so that its L1 sees the same accesses as in the whole
grid; those of its stratum are one cluster. A stratum's total is its size times the mean of its clusters' means. The
spread of these gives the standard error.
"""

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from jaxtyping import Float64, Int64

MIN_CLUSTERS = 2  # per stratum, if it has as many: one alone gives no standard error


@dataclass(frozen=True)
class Stratum:
    """The blocks of one position: the first of them (x, y, z), their count along each axis, the clusters that run."""

    position: tuple[int, int, int]  # along each axis: 0 first, 1 between, 2 last
    first: tuple[int, int, int]
    extent: tuple[int, int, int]
    clusters: dict[int, Int64[np.ndarray, " n"]]  # blocks, by the first of their group

    @property
    def size(self) -> int:
        return prod(self.extent)

    @property
    def blocks_run(self) -> int:
        """Number of its blocks that run and count."""
        return sum(map(len, self.clusters.values()))


class Plan:
    """The groups of blocks that run, each the blocks that one SM holds at a time, and the strata that they represent.

    Parameters
    ----------
    grid
        Blocks along x, y, z.
    sms, resident
        SMs of the GPU, and blocks that each holds at a time.
    min_blocks
        Least number of blocks to run; every stratum gets its clusters even so.
    required
        Blocks (linear) that must run in any case.
    seed
        Seed of the choice of blocks.
    """

    def __init__(self, grid, sms: int, resident: int, min_blocks: int, required=(), seed: int = 0):
        self.grid, self.sms, self.wave = grid, sms, sms * resident
        self.blocks = prod(grid)
        self._groups: dict[int, Int64[np.ndarray, " n"]] = {}
        for block in required:
            self._add_group(block)
        axes = [[(0, 0, 1), (1, 1, n - 2), (2, n - 1, int(n > 1))] for n in grid]  # position, first block, count
        parts = [zip(*axis) for axis in product(*axes) if min(count for *_, count in axis) > 0]
        self.strata = [Stratum(*map(tuple, part), {}) for part in parts]
        rng = np.random.default_rng(seed)
        for stratum in self.strata:
            for _ in range(MIN_CLUSTERS):
                self._draw(rng, stratum)
        largest = max(self.strata, key=lambda stratum: stratum.size)
        while self.blocks_run < min_blocks and largest.blocks_run < largest.size:
            self._draw(rng, largest)

    @property
    def groups(self) -> list[Int64[np.ndarray, " n"]]:
        return list(self._groups.values())

    @property
    def blocks_run(self) -> int:
        """Number of blocks that run."""
        return sum(map(len, self._groups.values()))

    def _draw(self, rng, stratum):
        """Add a cluster to a stratum, if any is left."""
        while stratum.blocks_run < stratum.size:
            x, y, z = (int(f + rng.integers(n)) for f, n in zip(stratum.first, stratum.extent))
            key = self._add_group(x + self.grid[0] * (y + self.grid[1] * z))
            if key not in stratum.clusters:
                group = self._groups[key]
                stratum.clusters[key] = group[(self._positions_of(group) == stratum.position).all(axis=1)]
                return

    def _add_group(self, block):
        """Add the group of this block; return the group's first block, which names it."""
        start = block // self.wave * self.wave
        first = start + (block - start) % self.sms
        self._groups.setdefault(first, np.arange(first, min(start + self.wave, self.blocks), self.sms))
        return first

    def _positions_of(self, blocks):
        """Return the position of each block along each axis: 0 first, 1 between, 2 last."""
        x, y, _ = self.grid
        index = (blocks % x, blocks // x % y, blocks // (x * y))
        return np.stack([np.where(i == 0, 0, np.where(i == n - 1, 2, 1)) for i, n in zip(index, self.grid)], axis=1)

    def estimate(
        self, counts: dict[int, Int64[np.ndarray, " counts"]]
    ) -> tuple[Float64[np.ndarray, " counts"], Float64[np.ndarray, " counts"]]:
        """Return the grid's totals of the counts of each block, and their standard errors."""
        total = variance = 0.0
        for stratum in self.strata:
            means = [np.mean([counts[b] for b in cluster.tolist()], axis=0) for cluster in stratum.clusters.values()]
            total = total + stratum.size * np.mean(means, axis=0)
            if stratum.blocks_run < stratum.size:
                share_left_out = 1 - stratum.blocks_run / stratum.size
                variance = variance + stratum.size**2 * share_left_out * np.var(means, axis=0, ddof=1) / len(means)
        return total, np.sqrt(variance)

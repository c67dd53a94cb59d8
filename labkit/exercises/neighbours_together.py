"""Four neighbours per thread, which scatter the accesses of a warp."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, expect, grid_for, last_block_size, shared_among_threads, with_zeros
from labkit.ladder import Expected
from labkit.table import count_text

PER_THREAD = 4


def make_launch(rng, size, threads):
    x = with_zeros(rng.standard_normal(size, np.float32))
    sectors = -(-size // 8)
    index, grid = np.arange(size), grid_for((size,), (PER_THREAD * threads,))
    end = (grid[0] + PER_THREAD - 1) * threads  # of blocks that overlap

    def double_where(is_stored):
        return {1: expect(np.where(is_stored, 2 * x.astype(float), np.nan))}

    return Launch(
        label=f"{count_text(size, 'element')}, {PER_THREAD} per thread, blocks of {threads}",
        args=(x, unwritten_array((size,))),
        outputs={1: expect(2 * x.astype(np.float64))},
        grid=grid,
        block=(threads,),
        budgets=(
            Budget("sectors loaded", 2 * sectors, "elements / 4: each sector of 8 elements twice, as by x[i] + x[i]"),
            Budget("sectors stored", sectors, "elements / 8: each sector once"),
        ),
        mistakes=(
            Mistake(
                "the index were added to each element",
                lambda: {1: Expected(x.astype(float) + index, EPS * (abs(x) + index))},
            ),
            Mistake("each thread doubled one element", lambda: double_where(index % (PER_THREAD * threads) < threads)),
            Mistake(
                "each block began where the first quarter of the one before it ended", lambda: double_where(index < end)
            ),
        ),
        duties=(shared_among_threads(last_block_size(size, PER_THREAD * threads), PER_THREAD),),
    )


EXERCISE = Exercise(
    title="Neighbours together",
    task="Each thread doubles four elements. Change which four, so that a warp always accesses 32 neighbours.",
    points=2,
    function="double",
    make_launch=make_launch,
    sizes=((1024, 64), (1000, 64)),  # elements, threads per block
    random_sizes=(
        (range(1101, 2000, 2), range(96, 257, 32)),
        ((1, 3, 7, 31), (64,)),
        (Above(2000), (32, 128)),
        ((65_537, 65_599), (256,)),
    ),
)

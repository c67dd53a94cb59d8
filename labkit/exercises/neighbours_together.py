"""Four neighbours per thread, which scatter the accesses of a warp."""

from functools import partial

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

    block, thread, step = np.ogrid[: grid[0], :threads, :PER_THREAD]
    slips = list_slips(block, thread, step, threads)
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
                "Add the value to itself.",
            ),
            Mistake(
                "each block doubled the first quarter of its elements alone",
                lambda: double_where(index % (PER_THREAD * threads) < threads),
                "Let a thread go on by as many elements as its block has threads, in all steps of the loop.",
            ),
            Mistake(
                "each block began where the first quarter of the one before it ended",
                lambda: double_where(index < end),
                "A block covers PER_THREAD elements for each of its threads: begin it that much after the one before.",
            ),
            *(Mistake(cause, partial(double_where, np.isin(index, places)), cure) for cause, places, cure in slips),
        ),
        duties=(shared_among_threads(last_block_size(size, PER_THREAD * threads), PER_THREAD),),
    )


def list_slips(block, thread, step, threads):
    """Yield usual slips in the index: the cause, the elements that are doubled, and the cure."""
    own = "Begin at the block's first element, plus the number of the thread in its block."
    first = block * threads * PER_THREAD
    yield "the thread's own number were left out of `start`", first + step * threads + 0 * thread, own
    yield "the block were left out of `start`", thread + step * threads + 0 * block, own
    yield "blocks began four elements apart", block * PER_THREAD + thread + step * threads, own
    yield "neighbouring threads began four elements apart", first + thread * PER_THREAD + step * threads, own
    on = "The next element of a thread is as many elements further on as its block has threads."
    yield "each thread took neighbours", first + thread + step, on
    yield "the elements of a thread were four apart", first + thread + step * PER_THREAD, on
    yield "the elements of a thread were 32 apart", first + thread + step * 32, on


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

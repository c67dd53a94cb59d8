"""Blocks that take one job after another, whose tiles TMA brings into a ring that never starts again."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Duty, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, EXPOSED_LOADS, LOCAL_NUMBERS, SHARED_BYTES, STORING_THREADS
from labkit.exercises.problems import random_matrix
from labkit.ladder import Expected
from labkit.ptx.tensor_copies import TensorMap
from labkit.table import count_text

ROWS, COLUMNS, WARP = 8, 32, 32  # of a box; threads per warp
CONSUMERS = 2  # warps, each with a box of every tile
TILE_BYTES, BARRIER_BYTES = 4 * ROWS * COLUMNS * CONSUMERS, 8
STAGE_BYTES = TILE_BYTES + 2 * BARRIER_BYTES
MAX_STAGES = 3


def make_launch(rng, jobs, longest, blocks):
    tiles = rng.integers(0, longest + 1, jobs)  # of each job
    tiles[rng.integers(jobs)] = longest
    begins = rng.integers(1, 4) + np.concatenate([[0], np.cumsum(tiles)])  # the tiles before belong to no job
    total, width = int(tiles.sum()), CONSUMERS * COLUMNS
    A = random_matrix(rng, int(begins[-1] + 1) * ROWS, width) - np.float32(
        2
    )  # so that some jobs are below zero everywhere
    A *= np.float32(10 ** rng.uniform(-1, 3))
    is_swizzled = np.arange(len(A))[:, None] % ROWS * 4 ^ np.arange(width)  # column at which an element is stored

    def expect_largest(A=A, skipped=0, first=-np.inf):
        """Expect the largest of `first` and the columns of each job, which ends `skipped` tiles early."""
        ends = np.maximum(begins[1:] - skipped, begins[:-1])
        parts = (A[begin * ROWS : end * ROWS] for begin, end in zip(begins[:-1], ends, strict=True))
        largest = np.array([part.max(0, initial=first) for part in parts], float)
        return {2: Expected(largest, np.zeros_like(largest))}

    def expect_running():
        (largest,) = expect_largest().values()
        running = [np.max(largest.value[job % blocks : job + 1 : blocks], 0) for job in range(jobs)]
        return {2: Expected(np.array(running), largest.bound)}

    def rows_of_tiles():
        """Return A with each tile replaced by 8 rows that begin at the tile's number."""
        tile, row = np.divmod(np.arange(len(A)), ROWS)
        return A[tile + row]

    return Launch(
        label=f"{count_text(jobs, 'job')} of up to {count_text(longest, 'tile')}, {count_text(blocks, 'block')}",
        args=(TensorMap(A, (ROWS, COLUMNS)), begins.astype(np.int32), unwritten_array((jobs, width))),
        outputs=expect_largest(),
        grid=(blocks,),
        block=(WARP, 1 + CONSUMERS),
        budgets=(
            Budget(
                "global loads",
                total * ROWS * width + 4 * jobs * WARP * (1 + CONSUMERS),
                "each tile once, and the ends of a job twice per thread",
                {"A_map": total * ROWS * width, "begins": 4 * jobs * WARP * (1 + CONSUMERS)},
            ),
            Budget("global stores", jobs * width, "each maximum once"),
            Budget(SHARED_BYTES, MAX_STAGES * STAGE_BYTES, "a ring of 3 stages, with two barriers each"),
            Budget(
                EXPOSED_LOADS,
                -(-50 * (total + blocks) // max(total, 1)),
                "every second tile: a ring of two stages is filled while it is used",
            ),
            Budget(BARRIERS, blocks, "one per block, after its mbarriers are set up"),
            Budget(LOCAL_NUMBERS, ROWS, "those of a column of a tile"),
            NO_FLOAT64,
        ),
        duties=(
            Duty(SHARED_BYTES, 2 * STAGE_BYTES, "a ring of 2 stages, with two barriers each"),
            Duty(STORING_THREADS, CONSUMERS * WARP, "one thread per column"),
            Duty(
                "requests to mbarriers",
                total * (1 + CONSUMERS),
                "for each tile the producer announces bytes, and each consumer waits for them",
            ),
        ),
        mistakes=(
            Mistake(
                "the last tile of each job were left out",
                lambda: expect_largest(skipped=1),
                "A job's tiles end before begins[job + 1]: give `range` both ends, in producer and consumers.",
            ),
            Mistake(
                "each job had the tile after it, too",
                lambda: expect_largest(skipped=-1),
                "Tile begins[job + 1] is the next job's: let the loops of producer and consumers end before it.",
            ),
            Mistake(
                "0 were in every job",
                lambda: expect_largest(first=0),
                "Begin the maximum of each job at -np.inf: all numbers may be below 0.",
            ),
            Mistake(
                "rows were not swizzled",
                lambda: expect_largest(np.take_along_axis(A, is_swizzled, 1)),
                "Read the column of a tile at `at(row, column)`, where TMA has stored it.",
            ),
            Mistake(
                "both boxes were the left one",
                lambda: expect_largest(np.tile(A[:, :COLUMNS], CONSUMERS)),
                "In the `tma_load` of the producer, the column at which a box begins follows the box.",
            ),
            Mistake(
                "each job held the jobs that its block had before",
                expect_running,
                "Begin the maximum anew for each job, inside the loop over the jobs.",
            ),
            Mistake(
                "tile n began in row n of A",
                lambda: expect_largest(rows_of_tiles()),
                "A tile has 8 rows: in `tma_load`, its first row is 8 times its number.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="The ring goes on",
    task="Jobs have different lengths: job j has the tiles begins[j] to begins[j + 1] - 1 of A. A block takes one job "
    "after another. Its producer copies tiles of the next job while the consumers are busy with the last one. Find "
    "the largest number of each column of each job.",
    points=4,
    function="largest_of_jobs",
    make_launch=make_launch,
    sizes=((1, 4, 1), (7, 5, 2), (6, 1, 1), (3, 0, 3)),  # jobs, tiles of the longest, blocks; first one job
    random_sizes=(
        (range(4, 9), range(3, 8), (2, 3)),
        ((1,), range(257, 290), (1,)),  # so that a count of stages that begins again shows
        (Above(9), (1, 2, 3), (1, 2, 3, 4)),
    ),
)

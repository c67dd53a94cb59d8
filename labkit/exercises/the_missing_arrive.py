"""A producer warp and two consumer warps, with one arrival missing and one too early."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Dependence, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import BARRIERS, EXPOSED_LOADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.ladder import Expected
from labkit.simulator.disturbance import COPIES
from labkit.table import count_text

TILE, CONSUMERS, WARP = 16, 2, 32  # keys per tile, warps, threads per warp
TILE_BYTES, BARRIER_BYTES = 4 * TILE * HEAD_DIM, 8
MAX_STAGES = 4
OFFSET = 112  # scores this many times as far from zero: only minus infinity works as first maximum


def make_launch(rng, queries, keys):
    Q, K = random_queries_and_keys(rng, queries, keys)
    K[:, 1] *= OFFSET
    rows = CONSUMERS * WARP
    blocks, tiles = -(-queries // rows), -(-keys // TILE)

    def expect_largest(K):
        return Expected((Q.astype(float) @ K.T).max(1), np.zeros(queries))

    def expected_results(disturbance):
        return [expect_largest(disturbance.disturb(COPIES, K))]

    return Launch(
        label=f"{queries} quer{'y' if queries == 1 else 'ies'} and {keys} key{'s' * (keys > 1)}",
        args=(Q.T.copy(), K, unwritten_array((queries,))),
        outputs={2: expect_largest(K)},
        grid=(blocks,),
        block=(WARP, 1 + CONSUMERS),
        budgets=(
            Budget("global loads", (queries + blocks * keys) * HEAD_DIM, "a query once, and a key once per block"),
            Budget("global stores", queries, "one per query"),
            Budget(LOCAL_NUMBERS, HEAD_DIM, "those of a query"),
            Budget(
                SHARED_BYTES,
                MAX_STAGES * (TILE_BYTES + 2 * BARRIER_BYTES),
                "a ring of 4 stages, with two barriers each, at most",
            ),
            Budget(
                EXPOSED_LOADS,
                min(100, -(-100 * MAX_STAGES // tiles)),
                f"those of {min(MAX_STAGES, tiles)} of {count_text(tiles, 'tile')}: "
                "during the others the next copy is in flight",
            ),
            Budget(BARRIERS, blocks, "one per block, after its mbarriers are set up"),
            NO_FLOAT64,
        ),
        duties=(
            Duty(SHARED_BYTES, 2 * (TILE_BYTES + 2 * BARRIER_BYTES), "a ring of 2 stages, with two barriers each"),
            Duty(
                "requests to mbarriers",
                blocks * tiles * (1 + CONSUMERS),
                "of each tile the producer says that it has come, and each consumer waits for that",
            ),
        ),
        dependences=(Dependence(COPIES, "bring the keys by `ptx.cp_async`", expected_results),),
    )


EXERCISE = Exercise(
    title="The missing arrive",
    task="Warp 0 loads tiles of keys into a ring of two stages, and lets the next copy run while it waits for the "
    "previous one. Two warps of consumers find the largest score of each query. One arrival "
    "at a barrier is missing, so the block hangs. Another comes too early, which a GPU shows only "
    "sometimes. Fix both; keep the ring, and the one `cuda.syncthreads()`.",
    points=3,
    function="largest_scores",
    make_launch=make_launch,
    sizes=((70, 90), (33, 37), (1, 1)),  # queries, keys
    random_sizes=((range(5, 99, 3), range(33, 120, 2)), ((1, 2, 65), Above(120)), (Above(90), (1, 2, 16, 17, 31))),
)

"""The tiled matmul, from a blank kernel, for any shape."""

from dataclasses import replace
from typing import Any

from labkit.checking import NO_FLOAT64, Budget, Duty, Exercise, Mistake
from labkit.checking.budget import BARRIERS, LOADING_THREADS
from labkit.exercises.matmuls import RANDOM_SIZES, USES_TILES, make_matmul_launch
from labkit.exercises.problems import last_block_size, multiply_transposed_tiles

TILE = 16


def make_launch(rng, M, N, K):
    tiles = -(-M // TILE) * -(-N // TILE) * -(-K // TILE)
    budgets = (
        Budget("global loads", 2 * TILE**2 * tiles, "2 per thread and tile, so that the edges have room"),
        Budget("global stores", M * N, "each element of C once"),
        Budget("sectors loaded", 6 * TILE * tiles, "3 per row of a tile, which 16 neighbours load together"),
        Budget(BARRIERS, 2 * tiles, "one pair per iteration of each block"),
        NO_FLOAT64,
    )
    last_side = min(last_block_size(M, TILE), last_block_size(N, TILE))
    loading = Duty(LOADING_THREADS, min(K, TILE) * last_side, "two global loads per thread and tile")
    limits: dict[str, Any] = {"budgets": budgets, "duties": (loading,), "dependences": (USES_TILES,)}
    launch = make_matmul_launch(rng, M, N, K, (TILE, TILE), "A.T @ B", step=TILE, **limits)
    A, B = launch.args[:2]
    transposed = Mistake("each tile of B were transposed", lambda: {2: multiply_transposed_tiles(A.T, B, TILE)})
    return replace(launch, mistakes=(*launch.mistakes, transposed))


EXERCISE = Exercise(
    title="Write the tiled matmul",
    task="- **Given**: A with K rows and M columns, B with K rows and N columns, float32.\n"
    "- **Write** C = A.T @ B with tiles in shared memory, in blocks of TILE x TILE threads; TILE stays 16.\n"
    "- **Limits**: two global loads per thread and tile, coalesced; two barriers per iteration; no float64.\n"
    "- **Sizes**: any M, N, K, also those that are not multiples of TILE.",
    points=4,
    function="tiled_matmul",
    make_launch=make_launch,
    sizes=((48, 80, 64), (37, 43, 70), (9, 33, 5)),  # M, N, K; two are ragged
    random_sizes=RANDOM_SIZES,
)

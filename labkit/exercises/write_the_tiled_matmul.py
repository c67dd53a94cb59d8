"""The tiled matmul, from a blank kernel, for any shape."""

from dataclasses import replace
from typing import Any

import numpy as np

from labkit.checking import NO_FLOAT64, Budget, Duty, Exercise, Mistake
from labkit.checking.budget import BARRIERS, LOADING_THREADS
from labkit.exercises.matmuls import RANDOM_SIZES, USES_TILES, make_matmul_launch
from labkit.exercises.problems import (
    expect_product,
    last_block_size,
    multiply_transposed_tiles,
    swap_rows_and_columns,
)
from labkit.ladder import Expected

TILE = 16
SAME = (
    "What is stored at [y, x] of a tile has row y there: use the indices of a tile in the same order where you read it."
)
STEP = "Let the loop over tiles go on by TILE rows in each step."
START = "Add the first row of the tile, `start`, to the row of B that a thread loads."


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
    slips = (
        Mistake("each tile of B were transposed", lambda: {2: multiply_transposed_tiles(A.T, B, TILE)}, SAME),
        Mistake("each tile of A were transposed", lambda: {2: multiply_by_transposed_tiles(A, B)}, SAME),
        Mistake("each tile began one row after the one before", lambda: {2: multiply_from_every_row(A, B)}, STEP),
        Mistake("every tile of B were the first", lambda: {2: multiply_by_first_rows(A, B)}, START),
        *swap_rows_and_columns(launch),
    )
    return replace(launch, mistakes=(*launch.mistakes, *slips))


def multiply_by_transposed_tiles(A, B):
    """Expect A.T @ B with each tile of A transposed."""
    product = multiply_transposed_tiles(B.T, A, TILE)
    return Expected(product.value.T, product.bound.T)


def multiply_from_every_row(A, B):
    """Expect A.T @ B with tiles that begin at rows 0, 1, 2, ..."""
    tiles = -(-len(A) // TILE)
    row = (np.arange(tiles)[:, None] + np.arange(TILE)).ravel()
    row = row[row < len(A)]
    return expect_product(np.ascontiguousarray(A[row].T), B[row])


def multiply_by_first_rows(A, B):
    """Expect A.T @ B with the first rows of B again and again."""
    row = np.arange(len(A)) % TILE
    return expect_product(np.ascontiguousarray(A.T), B[row])


EXERCISE = Exercise(
    title="Write the tiled matmul",
    task="- **Given**: A with K rows and M columns, B with K rows and N columns, float32.\n"
    "- **Write** C = A.T @ B with tiles in shared memory, in blocks of TILE x TILE threads; TILE stays 16.\n"
    "- **Limits**: two global loads per thread and tile, coalesced; two barriers per iteration; each element of "
    "C is stored once; no float64.\n"
    "- **Sizes**: any M, N, K, also those that are not multiples of TILE.",
    points=4,
    function="tiled_matmul",
    make_launch=make_launch,
    sizes=((48, 80, 64), (37, 43, 70), (9, 33, 5)),  # M, N, K; two are ragged
    random_sizes=RANDOM_SIZES,
)

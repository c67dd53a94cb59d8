"""The tile that is large enough to save loads and small enough for shared memory."""

from labkit.checking import Budget, Exercise
from labkit.checking.budget import BARRIERS, SHARED_BYTES
from labkit.exercises.matmuls import RANDOM_SIZES_AND_ALPHA, USES_TILES, make_matmul_launch, scale_by_alpha

MAX_BYTES = 3072


def make_launch(rng, M, N, K, alpha, TILE):
    tiles = -(-M // TILE) * -(-N // TILE) * -(-K // TILE)
    sectors = 2 * TILE * (TILE // 8 + 2) + 2 * -(-(TILE**2) // 32)
    shared = Budget(
        SHARED_BYTES,
        MAX_BYTES,
        "3 KB, so that many blocks fit on an SM",
        cure="Two tiles of TILE x TILE numbers take 4 bytes each: choose a smaller TILE.",
    )
    loads = Budget(
        "global loads",
        M * N * K // 8,
        "M * N * K / 8",
        cure="Each element that is loaded serves TILE products: choose a larger TILE.",
    )
    is_whole = M % 16 == N % 16 == K % 16 == 0
    budgets = (
        *(loads,) * is_whole,
        shared,
        Budget("sectors loaded", sectors * tiles, "those of each row of a tile once, and two more per warp"),
        Budget(BARRIERS, 2 * tiles, "one pair per iteration of each block"),
    )
    return scale_by_alpha(
        alpha, make_matmul_launch(rng, M, N, K, (TILE, TILE), step=TILE, budgets=budgets, dependences=(USES_TILES,))
    )


EXERCISE = Exercise(
    title="Choose the tile",
    task="- **Given**: a kernel for C = alpha * A @ B, launched in blocks of TILE x TILE threads.\n"
    "- **Choose** TILE.\n"
    "- **Limits**: at most M * N * K / 8 global loads; at most 3 KB of shared memory per block.\n"
    "- **Sizes**: any M, N, K.",
    points=2,
    function="tuned_matmul",
    make_launch=make_launch,
    sizes=((48, 80, 64, 1.5), (21, 58, 35, -41.0)),  # M, N, K, alpha; ragged ones have no budget of loads
    random_sizes=RANDOM_SIZES_AND_ALPHA,
    constants=("TILE",),
)

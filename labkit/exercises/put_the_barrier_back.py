"""A tiled matmul without the barrier that protects a tile while it is read."""

from labkit.checking import Budget, Dependence, Exercise
from labkit.checking.budget import BARRIERS
from labkit.exercises.matmuls import RANDOM_SIZES, USES_TILES, add_to_C, make_matmul_launch
from labkit.simulator import disturbance

TILE = 8


def make_launch(rng, M, N, K):
    blocks = -(-M // TILE) * -(-N // TILE)
    tiles = blocks * -(-K // TILE)
    budgets = (
        Budget(
            "sectors loaded",
            4 * TILE * tiles + 2 * TILE * blocks,
            "2 per row of a tile of A, B or C, which 8 neighbours load together",
        ),
        Budget(BARRIERS, 2 * tiles, "one pair per iteration of each block"),
    )
    # without tiles, or without barriers, a second run must come out otherwise
    dependences = USES_TILES, Dependence(disturbance.BARRIERS, "let the threads wait for one another's tiles")
    launch = make_matmul_launch(rng, M, N, K, (TILE, TILE), step=TILE, budgets=budgets, dependences=dependences)
    return add_to_C(rng, launch)


EXERCISE = Exercise(
    title="Put the barrier back",
    task="- **Given**: a kernel that adds A @ B to C. It has the first barrier; some threads overwrite a tile that "
    "others still read.\n"
    "- **Add** what is missing.\n"
    "- **Limits**: two barriers per iteration, and no more global loads than the kernel makes now.\n"
    "- **Sizes**: any M, N, K.",
    points=2,
    function="two_barriers",
    make_launch=make_launch,
    finds_fault=True,
    sizes=((24, 40, 32), (19, 26, 37)),  # M, N, K; the second is ragged
    random_sizes=RANDOM_SIZES,
)

"""A tiled matmul that prefetches its next tiles while it multiplies, with GELU as its epilogue."""

from math import erf

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Dependence, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS, EXPOSED_LOADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, grid_for, multiply_transposed_tiles, one_thread_per_element
from labkit.ladder import Expected
from labkit.simulator.disturbance import COPIES
from labkit.table import count_text

TILE, WARP = 16, 32
STAGE_BYTES = 2 * TILE * TILE * 4
PADDED_BYTES = 2 * TILE * (TILE + 1) * 4

GELU = "GELU of a sum is half of it times 1 plus `erf` of the sum divided by the root of 2."
EXACT = f"That is near, and this is exact: {GELU}"


def make_launch(rng, M, N, K):
    A, B = (rng.integers(-4, 5, shape) / np.float32(4) for shape in ((M, K), (K, N)))
    A, B = A.astype(np.float32), B.astype(np.float32)  # whose products add up exactly
    total = A.astype(float) @ B

    def mistake(cause, cure, activation):
        return Mistake(cause, lambda: {2: Expected(activation(total), 16 * EPS * (np.abs(total) + total**2))}, cure)

    grid, tiles = grid_for((N, M), (TILE, TILE)), -(-K // TILE)
    blocks, whole = grid[0] * grid[1], (tiles - 1) * TILE
    loads = {"A": M * K * grid[0], "B": K * N * grid[1]}

    def expected_results(disturbance):
        return [gelu(disturbance.disturb(COPIES, A).astype(float) @ disturbance.disturb(COPIES, B))]

    uses_copies = Dependence(COPIES, "bring both tiles by `ptx.cp_async`", expected_results)
    return Launch(
        label=f"A {M} x {K} times B {K} x {N}",
        args=(A, B, unwritten_array((M, N))),
        outputs={2: gelu(total)},
        grid=grid,
        block=(TILE, TILE),
        budgets=(
            Budget("global loads", sum(loads.values()), "each element of A and B once per tile of C", loads),
            Budget(
                "load requests",
                2 * blocks * tiles * TILE * TILE // WARP,
                "16 for the two tiles of a step, which neighbours copy together",
            ),
            Budget(
                "store requests to shared memory",
                2 * blocks * tiles * TILE * TILE // WARP
                + grid[0] * count_edge_warps(M, K)
                + grid[1] * count_edge_warps(K, N),
                "16 per step, and one per warp at an edge: each element once, and zeros may be stored separately",
            ),
            Budget("global stores", M * N, "each element of C once"),
            Budget(SHARED_BYTES, 2 * PADDED_BYTES, "two stages of two tiles, and a column of padding in each"),
            Budget(BARRIERS, blocks * tiles, "one per step and block"),
            Budget(
                EXPOSED_LOADS,
                -(-100 // tiles),
                f"those of the last of {count_text(tiles, 'step')}: before it the next tiles are on their way",
            ),
            Budget(LOCAL_NUMBERS, 0, "each thread has one sum"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((N, M), (TILE, TILE)),),
        dependences=(uses_copies,) if K % (2 * TILE) == 0 else (),  # otherwise zeros may pad the last tiles
        mistakes=(
            mistake("there were no GELU", f"Where C is stored: {GELU}", np.array),
            mistake("it were a ReLU", GELU, lambda x: np.maximum(x, 0)),
            mistake(
                "GELU were computed by tanh",
                EXACT,
                lambda x: x / 2 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
            ),
            mistake("GELU were computed by a sigmoid", EXACT, lambda x: x / (1 + np.exp(-1.702 * x))),
            mistake(
                "the argument of erf were not divided by the root of 2", GELU, lambda x: gelu(x * 2**0.5).value / 2**0.5
            ),
            mistake("the factor 1/2 were left out", GELU, lambda x: 2 * gelu(x).value),
            Mistake(
                "the last tile along K were left out",
                lambda: {2: gelu(A[:, :whole].astype(float) @ B[:whole])},
                "Look at the number of steps, and at the iteration that multiplies the last tiles.",
            ),
            Mistake(
                "each tile of B were transposed",
                lambda: {2: gelu(multiply_transposed_tiles(A, B, TILE).value)},
                "Look at the indices of the tile of B, where it is filled and where it is read: k is its row.",
            ),
        ),
    )


def count_edge_warps(rows, cols):
    """Count the warps that copy a part of a matrix and a part of what is outside of it, over all its tiles."""
    inside = np.zeros((-(-rows // TILE) * TILE, -(-cols // TILE) * TILE), bool)
    inside[:rows, :cols] = True
    warp_counts = inside.reshape(-1, WARP // TILE, inside.shape[1] // TILE, TILE).sum((1, 3))
    return int(((warp_counts > 0) & (warp_counts < WARP)).sum())


def gelu(x):
    return Expected(x / 2 * (1 + np.vectorize(erf)(x / 2**0.5)), 4 * EPS * np.abs(x))


EXERCISE = Exercise(
    title="GEMM and GELU in a pipeline",
    task="Store C = GELU(A @ B), where GELU(x) = x/2 (1 + erf(x / √2)). Blocks of 16 x 16 threads compute 16 x 16 of "
    "C. Load tiles of 16 x 16 of A and of B with `ptx.cp_async` into two stages. While one stage is multiplied, the "
    "copies into the other must be in flight. There is one barrier per pair of tiles, and each element of A and "
    "B is loaded once per block.",
    points=4,
    function="gemm_gelu",
    make_launch=make_launch,
    sizes=((37, 20, 64), (18, 35, 49), (1, 3, 5), (32, 32, 48)),  # M, N, K
    random_sizes=(
        (range(33, 50, 2), range(17, 40, 2), range(49, 96, 2)),
        ((1,), Above(40), (1, 2, 17)),
        (Above(40), (2, 5, 7), Above(96)),
    ),
)

"""Exercise 03.1: a tiled matmul without the barrier that protects the tile still being read."""

from labkit.exercises.exercise import Exercise, Launch, Variant
from labkit.exercises.problems import expect_product, matrix, unwritten

TILE = 8
SHAPES = ((24, 40, 32), (19, 26, 37))  # M, N, K; the second is ragged
SECOND_BARRIER = "            total += a[ty, k] * b[k, tx]\n        cuda.syncthreads()\n"


def launches(rng):
    for M, N, K in SHAPES:
        A, B = matrix(rng, M, K), matrix(rng, K, N)
        yield Launch(
            label=f"A {M} x {K} times B {K} x {N}, blocks of {TILE} x {TILE}",
            args=(A, B, unwritten((M, N))),
            outputs={2: expect_product(A, B)},
            grid=(-(-N // TILE), -(-M // TILE)),
            block=(TILE, TILE),
        )


EXERCISE = Exercise(
    id="03.1",
    title="Put the barrier back",
    task="This kernel reads tiles while other threads already overwrite them. Add what is missing; change nothing else.",
    points=2,
    function="tiled_matmul",
    launches=launches,
    variants=(
        Variant("no barrier after the products", "race", ((SECOND_BARRIER, SECOND_BARRIER.split("        cuda")[0]),)),
        Variant("the barrier inside the loop over k", "solved", ((SECOND_BARRIER, SECOND_BARRIER.replace("        cuda", "            cuda")),)),
        Variant(
            "no barrier after the loads",
            "race",
            (("        cuda.syncthreads()\n        for k", "        for k"),),
        ),
        Variant(
            "the barrier behind a condition",
            "barrier",
            ((SECOND_BARRIER, SECOND_BARRIER.replace("        cuda.", "        if tx < 4:\n            cuda.")),),
        ),
        Variant("loads without a guard", "bounds", (("A[row, k0 + tx] if row < M and k0 + tx < K else np.float32(0)", "A[row, k0 + tx]"),)),
    ),
)

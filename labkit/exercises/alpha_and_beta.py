"""C = alpha * A @ B + beta * C, as in BLAS."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.matmuls import USES_TILES, add_expected_results
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element, random_matrix
from labkit.gemm.problem import error_bound, oracle
from labkit.ladder import Expected

TILE = 16


def make_launch(rng, M, N, K, alpha, beta, held=1.0):
    """Make operands; unless `held` is 1, C begins with a NaN."""
    A, B = random_matrix(rng, M, K), random_matrix(rng, K, N)
    alpha, beta = np.array((alpha, beta), np.float32)
    C = random_matrix(rng, M, N) if beta else unwritten_array((M, N))
    if held != 1:
        C[0, 0] = np.nan
    addend = beta * C.astype(float) if beta else np.zeros((M, N))

    def combine(of_product, of_C):
        held = of_C * C.astype(float) if of_C else np.zeros((M, N))
        value = of_product * oracle(A, B) + held
        return {4: Expected(value, abs(of_product) * error_bound(A, B) + 4 * EPS * (np.abs(value) + np.abs(held)))}

    loads = {"A": M * K * -(-N // TILE), "B": K * N * -(-M // TILE), "C": M * N if beta else 0}
    C_loads = "and 1 of each element of C" if beta else "and none of C, since beta is 0"
    return Launch(
        label=f"A {M} x {K} times B {K} x {N}, alpha {alpha:g}, beta {beta:g}" + (held != 1) * ", C with a NaN",
        args=(alpha, A, B, beta, C),
        outputs=combine(alpha, beta),
        grid=grid_for((N, M), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget("global loads", sum(loads.values()), f"each element once per tile, {C_loads}", loads),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((N, M), (TILE, TILE)),),
        dependences=add_expected_results((USES_TILES,), A, B, alpha, addend) if held == 1 else (),
        mistakes=(
            Mistake("alpha were left out", lambda: combine(1, beta), "Multiply `total` by alpha where C is stored."),
            Mistake("beta were left out", lambda: combine(alpha, 1), "Multiply what C held by beta where C is stored."),
            Mistake("C were left out", lambda: combine(alpha, 0), "Where beta is not 0, add beta times what C held."),
            Mistake(
                "alpha scaled beta * C, too",
                lambda: combine(alpha, alpha * beta),
                "Multiply `total` alone by alpha, before the rest is added.",
            ),
            Mistake(
                "alpha and beta were exchanged",
                lambda: combine(beta, alpha),
                "alpha is the factor of `total`, and beta that of C.",
            ),
            Mistake(
                "the result were added to C",
                lambda: combine(alpha, 1 + beta),
                "Store with `=`, since beta * C already has what C held.",
            ),
        )
        * bool(beta),
    )


EXERCISE = Exercise(
    title="Alpha and beta",
    task="Store C = alpha * A @ B + beta * C. Where beta is 0, C is not read, whatever it holds.",
    points=2,
    function="blas_matmul",
    make_launch=make_launch,
    sizes=((48, 32, 48, 0.1, 1.5), (21, 43, 19, -1.25, 0.0)),  # M, N, K, alpha, beta
    random_sizes=(
        (range(33, 48, 2), range(17, 32, 2), range(49, 64, 2), (-37.0,), (1.0,)),
        ((1,), Above(48), (1,), (1.0,), (37.0,)),
        (Above(48), (2, 5, 7), Above(64), (37.0,), (-41.0,)),
        (range(17, 32, 2), range(33, 48, 2), range(17, 32, 2), (0.0,), (0.1, -0.001)),
        ((2, 19), (3, 33), (5, 21), (0.0,), (0.0,)),  # zeros are to be stored all the same
        ((2, 19), (3, 33), (0,), (-1.25,), (1e-7,)),  # a sum of no products, and a beta that only seems to be 0
        ((2, 19), (3, 33), (5, 21), (1.0,), (0.5,), (0.0,)),  # a NaN stays one where beta is not 0
    ),
)

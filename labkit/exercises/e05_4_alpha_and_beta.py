"""Exercise 05.4: C = alpha * A @ B + beta * C, as the BLAS has it."""

import numpy as np

from labkit.exercises.budget import FLOAT32_ALONE, Budget
from labkit.exercises.exercise import Exercise, Expected, Launch, Variant
from labkit.exercises.problems import grid_for, matrix, unwritten
from labkit.gemm.problem import error_bound, oracle

TILE = 16
SIZES = ((48, 32, 40, 3), (21, 43, 19, 0))  # M, N, K, and beta in halves


def launch(rng, M, N, K, halves):
    A, B = matrix(rng, M, K), matrix(rng, K, N)
    alpha, beta = np.float32(rng.uniform(0.5, 2)), np.float32(halves / 2)
    C = matrix(rng, M, N) if beta else unwritten((M, N))
    kept = beta * C.astype(float) if beta else np.zeros((M, N))
    value = alpha * oracle(A, B) + kept
    bound = alpha * error_bound(A, B) + 4 * np.finfo(np.float32).eps * (np.abs(value) + np.abs(kept))
    loads = {"A": M * K * -(-N // TILE), "B": K * N * -(-M // TILE), "C": M * N if beta else 0}
    of_C = "and 1 of each element of C" if beta else "and none of C, since beta is 0"
    return Launch(
        label=f"A {M} x {K} times B {K} x {N}, beta {beta:g}",
        args=(alpha, A, B, beta, C),
        outputs={4: Expected(value, bound)},
        grid=grid_for((N, M), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget("global loads", sum(loads.values()), f"each element once for each tile, {of_C}", loads),
            FLOAT32_ALONE,
        ),
    )


_IF = "        if beta == 0:\n            C[row, col] = alpha * total\n        else:\n    "
_STORE = "        C[row, col] = alpha * total + beta * C[row, col]"

EXERCISE = Exercise(
    id="05.4",
    title="Alpha and beta",
    task="Store C = alpha * A @ B + beta * C. Where beta is 0, C is not read, whatever it holds.",
    points=2,
    function="blas_matmul",
    launch=launch,
    sizes=SIZES,
    drawn=(
        (range(33, 48), range(17, 32), range(49, 64), range(-6, 0)),
        (range(17, 32), range(33, 48), range(17, 32), range(1)),
    ),
    variants=(
        Variant("C is read although beta is 0", "result", ((_IF, ""),)),
        Variant(
            "alpha forgotten",
            "result",
            (("alpha * total +", "total +"),),
        ),
        Variant("beta forgotten", "result", (("beta * C[row, col]", "C[row, col]"),)),
        Variant(
            "alpha for both",
            "result",
            (("alpha * total + beta * C[row, col]", "alpha * (total + beta * C[row, col])"),),
        ),
        Variant(
            "alpha and beta swapped",
            "result",
            (("alpha * total + beta * C[row, col]", "beta * total + alpha * C[row, col]"),),
        ),
        Variant("nothing of C", "result", ((" + beta * C[row, col]", ""),)),
        Variant(
            "added to C",
            "result",
            (("            C[row, col] = alpha * total + beta", "            C[row, col] += alpha * total + beta"),),
        ),
        Variant("a negative beta taken for none", "result", (("if beta == 0:", "if beta <= 0:"),)),
        Variant("a length of the book's", "result", (("range(0, K, TILE)", "range(0, min(K, 48), TILE)"),)),
        Variant("without a guard", "bounds", (("if row < M and col < N:", "if row < M:"),)),
        Variant("in float64", "budget", (("alpha * total + beta", "1.0 * alpha * total + beta"),)),
        Variant(
            "C is loaded and then dropped",
            "budget",
            (
                (
                    "            C[row, col] = alpha * total\n",
                    "            old = C[row, col]\n            C[row, col] = alpha * (total if old == 0 else total)\n",
                ),
            ),
        ),
        Variant(
            "alpha times each element of A",
            "solved",
            (
                ("A_tile[y, x] = A[row, start + x] if", "A_tile[y, x] = alpha * A[row, start + x] if"),
                ("C[row, col] = alpha * total\n", "C[row, col] = total\n"),
                ("alpha * total +", "total +"),
            ),
        ),
        Variant(
            "a value that is chosen first",
            "solved",
            (
                (
                    _IF + _STORE,
                    "        old = beta * C[row, col] if beta else zero\n        C[row, col] = alpha * total + old",
                ),
            ),
        ),
    ),
)

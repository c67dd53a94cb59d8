"""Launches that the exercises on matrix products share."""

import numpy as np

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Launch
from labkit.exercises.problems import expect_product, grid_for, matrix, unwritten


def matmul_launch(
    rng: np.random.Generator, M: int, N: int, K: int, block: tuple[int, int], budgets: tuple[Budget, ...] = ()
) -> Launch:
    """C = A @ B with one thread an output: columns along x, rows along y."""
    return product_launch(rng, M, N, K, block[::-1], block, budgets)


def product_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    tile: tuple[int, int],
    block: tuple[int, int],
    budgets: tuple[Budget, ...] = (),
) -> Launch:
    """C = A @ B with a tile (rows, columns) of C for each block of threads (along x, along y)."""
    A, B = matrix(rng, M, K), matrix(rng, K, N)
    return Launch(
        label=f"A {M} x {K} times B {K} x {N}, blocks of {block[0]} x {block[1]}",
        args=(A, B, unwritten((M, N))),
        outputs={2: expect_product(A, B)},
        grid=grid_for((N, M), tile[::-1]),
        block=block,
        budgets=budgets,
    )


def matmul_loop(rng: np.random.Generator, M: int, N: int, K: int, budgets: tuple[Budget, ...] = ()) -> Launch:
    """C = A @ B by a compiled loop."""
    A, B = matrix(rng, M, K), matrix(rng, K, N)
    return Launch(
        label=f"A {M} x {K} times B {K} x {N}",
        args=(A, B, unwritten((M, N))),
        outputs={2: expect_product(A, B)},
        budgets=budgets,
    )

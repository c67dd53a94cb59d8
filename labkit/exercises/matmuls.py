"""Launches that the exercises on matrix products share."""

import numpy as np

from labkit.exercises.budget import TENSOR_FLOPS, Budget, Duty
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


def half_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    part: tuple[int, int],
    block: tuple[int, int],
    budgets: tuple[Budget, ...] = (),
) -> Launch:
    """C = A @ B.T on tensor cores, A and B in float16, two a word; a block takes `part` (rows, columns) of C."""
    A, B = matrix(rng, M, K).astype(np.float16), matrix(rng, N, K).astype(np.float16)
    exact = A.astype(np.float32), B.T.astype(np.float32)
    return Launch(
        label=f"A {M} x {K} times B.T {K} x {N}, {part[0]} x {part[1]} of C a block",
        args=(A.view(np.uint32), B.view(np.uint32), unwritten((M, N))),
        outputs={2: expect_product(*exact)},
        grid=grid_for((N, M), part[::-1]),
        block=block,
        budgets=budgets,
        duties=(Duty(TENSOR_FLOPS, 2 * M * N * K, "2 M N K: every product by `ptx.mma`"),),
    )


def whole(size: int, step: int) -> int:
    """The size, rounded up to a multiple of `step`."""
    return -(-size // step) * step

"""Launches that the exercises on matrix products share."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from labkit.checking import Beyond, Budget, Dependence, Duty, Launch, unwritten_array
from labkit.checking.budget import PLAIN_FLOPS, TENSOR_FLOPS
from labkit.exercises.problems import EPS, expect_product, grid_for, matrix
from labkit.ladder import Expected
from labkit.simulator.disturbance import BARRIERS, PRODUCTS, SHARED_LOADS, Disturbance

FROM_TILES = Dependence(SHARED_LOADS, "take both factors of each product from the tiles in shared memory")
BY_TENSOR_CORES = Dependence(PRODUCTS, "leave every product to `ptx.mma`")
DRAWN = (  # M, N, K
    (range(33, 64, 2), range(65, 96, 2), range(41, 64, 2)),
    ((1,), Beyond(96), (1,)),
    (Beyond(64), (2, 5, 7), Beyond(100)),
)
WIDEST = 32  # rows of a tile, at most
ALPHAS = (0.0,), (0.1, -0.001), (37.0,)
DRAWN_SCALED = tuple((*sizes, alphas) for sizes, alphas in zip(DRAWN, ALPHAS, strict=True))  # as above, and alpha
DRAWN_WHOLE = (  # as above, of which M, N and K are rounded up to multiples of 16 or so
    (range(33, 64), range(33, 64), range(49, 96)),
    ((1,), Beyond(64, 8), (1,)),
    (Beyond(64, 16), (1, 17), Beyond(160, 16)),
)


def matmul_launch(
    rng: np.random.Generator, M: int, N: int, K: int, block: tuple[int, int], product: str = "A @ B", **limits: Any
) -> Launch:
    """C = A @ B with one thread an output: columns along x, rows along y."""
    return product_launch(rng, M, N, K, block[::-1], block, product, **limits)


def product_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    tile: tuple[int, ...],
    block: tuple[int, int],
    product: str = "A @ B",
    **limits: Any,
) -> Launch:
    """C = A @ B with a tile (rows, columns) of C for each block of threads (along x, along y).

    The product may be "A.T @ B" or "A @ B.T"; `limits` are a launch's budgets, duties and dependences.
    """
    launch = matmul_loop(rng, M, N, K, product, **limits)
    label = f"{launch.label}, blocks of {block[0]} x {block[1]}"
    return replace(launch, label=label, grid=grid_for((N, M), tile[::-1]), block=block)


def matmul_loop(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    product: str = "A @ B",
    dependences: tuple[Dependence, ...] = (),
    **limits: Any,
) -> Launch:
    """C = A @ B by a compiled loop; the product and the limits are as above."""
    A, B = matrix(rng, M, K), matrix(rng, K, N)
    left, right = product.split(" @ ")
    args = (np.ascontiguousarray(part.T) if name.endswith(".T") else part for name, part in ((left, A), (right, B)))
    return Launch(
        label=f"{left} {M} x {K} times {right} {K} x {N}",
        args=(*args, unwritten_array((M, N))),
        outputs={2: expect_product(A, B)},
        dependences=told(dependences, A, B),
        **limits,
    )


def scaled(alpha: float, launch: Launch) -> Launch:
    """The launch, with a first argument alpha that the product is multiplied by."""
    factor, product = np.float32(alpha), launch.outputs[2]
    A, B = launch.args[:2]
    return replace(
        launch,
        label=f"{launch.label}, alpha = {factor:g}",
        args=(factor, *launch.args),
        outputs={3: Expected(factor * product.value, 2 * abs(factor) * product.bound)},
        dependences=told(launch.dependences, A, B, factor),
    )


def added(rng: np.random.Generator, launch: Launch) -> Launch:
    """The launch, with a C to which the product is added."""
    A, B, C = launch.args
    C, product = matrix(rng, *C.shape), launch.outputs[2]
    rounding = EPS * (np.abs(C) + np.abs(product.value))
    expected = Expected(C + product.value, product.bound + (max(A.shape) + 1) * rounding)
    return replace(launch, args=(A, B, C), outputs={2: expected}, dependences=told(launch.dependences, A, B, kept=C))


def half_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    part: tuple[int, int],
    block: tuple[int, ...],
    budgets: tuple[Budget, ...] = (),
    dependences: tuple[Dependence, ...] = (BY_TENSOR_CORES,),
    duties: tuple[Duty, ...] = (),
) -> Launch:
    """C = A @ B.T on tensor cores, A and B in float16, two a word; a block takes `part` (rows, columns) of C."""
    A, B = matrix(rng, M, K).astype(np.float16), matrix(rng, N, K).astype(np.float16)
    grid = grid_for((N, M), part[::-1])
    few = 4 * int(np.prod(grid) * np.prod(part))  # so that parts of a sum may be added up
    exact = A.astype(np.float32), B.T.astype(np.float32)
    return Launch(
        label=f"A {M} x {K} times B.T {K} x {N}, {part[0]} x {part[1]} of C a block",
        args=(A.view(np.uint32), B.view(np.uint32), unwritten_array((M, N))),
        outputs={2: expect_product(*exact)},
        grid=grid,
        block=block,
        budgets=budgets,
        duties=(
            Duty(TENSOR_FLOPS, 2 * M * N * K, "2 M N K: every product by `ptx.mma`"),
            Duty(PLAIN_FLOPS, 0, "every product by `ptx.mma`", few),
            *duties,
        ),
        dependences=told(dependences, A, B.T),
    )


def told(
    dependences: Iterable[Any],
    A: Float[np.ndarray, "M K"],
    B: Float[np.ndarray, "K N"],
    alpha: float | np.floating = 1.0,
    kept: Float[np.ndarray, "M N"] | float = 0.0,
) -> tuple[Dependence, ...]:
    """The dependences with what disturbed runs make of alpha * A @ B + kept.

    There are none where that cannot be told: where alpha is 0, or where tiles may be filled up along K.
    """
    if A.shape[1] % 16 or not alpha:
        return ()

    def results(disturbance: Disturbance) -> list[Expected]:
        """Where alpha multiplies sums, or the elements of one of the two; `mma` takes A's or B's fragments first."""
        found = []
        for scale, left, right in ((alpha, A, B), (1.0, alpha * A, B), (1.0, A, alpha * B)):
            if disturbance.what == PRODUCTS:
                left, right = left.astype(np.float32), right.astype(np.float32)
            seen = disturbance.scaled(disturbance.what, left), disturbance.scaled(disturbance.what, right)
            ways = ((seen[0], right), (left, seen[1])) if disturbance.what == PRODUCTS else (seen,)
            for factors in ways:
                product = expect_product(*(factor.astype(np.float32) for factor in factors))
                bound = 4 * (abs(scale) * product.bound + A.shape[1] * EPS * np.abs(kept))
                padding = range(WIDEST if disturbance.what == SHARED_LOADS else 1)  # each zero counts as the shift
                found += [Expected(scale * (product.value + n * disturbance.shift**2) + kept, bound) for n in padding]
        return found

    return tuple(one if one.disturbed == BARRIERS else replace(one, results=results) for one in dependences)


def whole(size: int, step: int) -> int:
    """The size, rounded up to a multiple of `step`."""
    return -(-size // step) * step

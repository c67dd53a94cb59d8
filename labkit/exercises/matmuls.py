"""Launches that the exercises on matrix products share."""

from dataclasses import replace

import numpy as np

from labkit.exercises.budget import TENSOR_FLOPS, Budget
from labkit.exercises.duty import Dependence, Duty
from labkit.exercises.exercise import Beyond, Launch
from labkit.exercises.problems import expect_product, grid_for, matrix, unwritten
from labkit.ladder import Expected
from labkit.simulator.disturbance import PRODUCTS, SHARED_LOADS

FROM_TILES = Dependence(SHARED_LOADS, "take both factors of each product from the tiles in shared memory", powers=(2,))
BY_TENSOR_CORES = Dependence(PRODUCTS, "leave every product to `ptx.mma`", powers=(1,))
DRAWN = (  # M, N, K
    (range(33, 64, 2), range(65, 96, 2), range(41, 64, 2)),
    ((1,), Beyond(96), (1,)),
    (Beyond(64), (2, 5, 7), Beyond(100)),
)
DRAWN_SCALED = tuple(
    (*sizes, quarters) for sizes, quarters in zip(DRAWN, ((0,), (4, -4), range(-9, 0)), strict=True)
)  # as above, and alpha in quarters
DRAWN_WHOLE = (  # as above, of which M, N and K are rounded up to multiples of 16 or so
    (range(33, 64), range(33, 64), range(49, 96)),
    ((1,), Beyond(64, 8), (1,)),
    (Beyond(64, 16), (1, 17), Beyond(160, 16)),
)


def matmul_launch(
    rng: np.random.Generator, M: int, N: int, K: int, block: tuple[int, int], product: str = "A @ B", **limits: tuple
) -> Launch:
    """C = A @ B with one thread an output: columns along x, rows along y."""
    return product_launch(rng, M, N, K, block[::-1], block, product, **limits)


def product_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    tile: tuple[int, int],
    block: tuple[int, int],
    product: str = "A @ B",
    **limits: tuple,
) -> Launch:
    """C = A @ B with a tile (rows, columns) of C for each block of threads (along x, along y).

    The product may be "A.T @ B" or "A @ B.T"; `limits` are a launch's budgets, duties and dependences.
    """
    launch = matmul_loop(rng, M, N, K, product, **limits)
    label = f"{launch.label}, blocks of {block[0]} x {block[1]}"
    return replace(launch, label=label, grid=grid_for((N, M), tile[::-1]), block=block)


def matmul_loop(rng: np.random.Generator, M: int, N: int, K: int, product: str = "A @ B", **limits: tuple) -> Launch:
    """C = A @ B by a compiled loop; the product and the limits are as above."""
    A, B = matrix(rng, M, K), matrix(rng, K, N)
    left, right = product.split(" @ ")
    args = (np.ascontiguousarray(part.T) if name.endswith(".T") else part for name, part in ((left, A), (right, B)))
    return Launch(
        label=f"{left} {M} x {K} times {right} {K} x {N}",
        args=(*args, unwritten((M, N))),
        outputs={2: expect_product(A, B)},
        **limits,
    )


def scaled(quarters: int, launch: Launch) -> Launch:
    """The launch, with a first argument alpha, in quarters, that the product is multiplied by."""
    alpha, product = np.float32(quarters / 4), launch.outputs[2]
    return replace(
        launch,
        label=f"{launch.label}, alpha = {alpha:g}",
        args=(alpha, *launch.args),
        outputs={3: Expected(alpha * product.value, 2 * abs(alpha) * product.bound)},
        dependences=launch.dependences * bool(alpha),
    )


def added(rng: np.random.Generator, launch: Launch) -> Launch:
    """The launch, with a C to which the product is added."""
    A, B, C = launch.args
    C, product = matrix(rng, *C.shape), launch.outputs[2]
    rounding = np.finfo(np.float32).eps * (np.abs(C) + np.abs(product.value))
    expected = Expected(C + product.value, product.bound + (max(A.shape) + 1) * rounding)
    besides = tuple(replace(dependence, besides={2: C.astype(float)}) for dependence in launch.dependences)
    return replace(launch, args=(A, B, C), outputs={2: expected}, dependences=besides)


def half_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    part: tuple[int, int],
    block: tuple[int, int],
    budgets: tuple[Budget, ...] = (),
    dependences: tuple[Dependence, ...] = (BY_TENSOR_CORES,),
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
        dependences=dependences,
    )


def whole(size: int, step: int) -> int:
    """The size, rounded up to a multiple of `step`."""
    return -(-size // step) * step

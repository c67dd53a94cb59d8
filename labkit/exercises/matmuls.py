"""Launches that the exercises on matrix products share."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from labkit.checking import Above, Budget, Dependence, Duty, Launch, Mistake, unwritten_array
from labkit.checking.budget import PLAIN_FLOPS, STORING_THREADS, TENSOR_FLOPS
from labkit.checking.placed_cure import PlacedCure, ranges_to
from labkit.exercises.problems import (
    EPS,
    expect_product,
    grid_for,
    last_block_size,
    pad_to,
    random_matrix,
    shared_among_threads,
)
from labkit.ladder import Expected
from labkit.simulator.disturbance import BARRIERS, PRODUCTS, SHARED_LOADS, Disturbance

USES_TILES = Dependence(SHARED_LOADS, "take both factors of each product from the tiles in shared memory")
USES_TENSOR_CORES = Dependence(PRODUCTS, "leave every product to `ptx.mma`")
RANDOM_SIZES = (  # M, N, K
    (range(33, 64, 2), range(65, 96, 2), range(41, 64, 2)),
    ((1,), Above(128), (1,)),
    (Above(64), (2, 5, 7), Above(100)),
    ((2, 3), (35, 66), (0,)),  # a sum of no products
)
MAX_TILE_ROWS = 32  # of a tile that may be padded with zeros along K
ALPHAS = (0.0,), (0.1, -0.001), (37.0,), (-3.0,)  # for each entry of RANDOM_SIZES
RANDOM_SIZES_AND_ALPHA = tuple((*sizes, alphas) for sizes, alphas in zip(RANDOM_SIZES, ALPHAS, strict=True))
RANDOM_SIZES_TO_ROUND = (  # M, N and K, which are rounded up to multiples of 16 or so
    (range(33, 64), range(33, 64), range(49, 96)),
    ((1,), Above(64, 8), (1,)),
    (Above(64, 16), (1, 17), Above(160, 16)),
)


def make_matmul_launch(
    rng: np.random.Generator, M: int, N: int, K: int, block: tuple[int, int], product: str = "A @ B", **limits: Any
) -> Launch:
    """Make C = A @ B with one thread per output: columns along x, rows along y; parameters as in `make_loop_launch`."""
    return make_tiled_launch(rng, M, N, K, block[::-1], block, product, **limits)


def make_tiled_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    tile: tuple[int, ...],
    block: tuple[int, int],
    product: str = "A @ B",
    **limits: Any,
) -> Launch:
    """Make C = A @ B with one tile of C per block.

    Parameters
    ----------
    tile
        Rows and columns of a tile.
    block
        Threads along x and y.
    product
        "A @ B", "A.T @ B" or "A @ B.T".
    limits
        Budgets, duties and dependences of the launch, and the `step` of its sums, as in `make_loop_launch`.
    """
    launch = make_loop_launch(rng, M, N, K, product, **limits)
    label = f"{launch.label}, blocks of {block[0]} x {block[1]}"
    duties = *launch.duties, share_outputs(M, N, tile, block)
    return replace(launch, label=label, grid=grid_for((N, M), tile[::-1]), block=block, duties=duties)


def share_outputs(M: int, N: int, tile: tuple[int, ...], block: tuple[int, ...]) -> Duty:
    """Require that threads share the tile of C of each block."""
    last_outputs = last_block_size(M, tile[0]) * last_block_size(N, tile[1])
    return shared_among_threads(last_outputs, most_per_thread=prod(tile) // prod(block), counter=STORING_THREADS)


def make_loop_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    product: str = "A @ B",
    dependences: tuple[Dependence, ...] = (),
    step: int = 1,
    **limits: Any,
) -> Launch:
    """Make C = A @ B for a compiled loop; parameters as in `make_tiled_launch`.

    Parameters
    ----------
    step
        Products that each iteration of a sum adds up; the last ones may be padded with zeros.
    """
    A, B = random_matrix(rng, M, K), random_matrix(rng, K, N)
    left, right = product.split(" @ ")
    args = (np.ascontiguousarray(X.T) if name.endswith(".T") else X for name, X in ((left, A), (right, B)))
    return Launch(
        label=f"{left} {M} x {K} times {right} {K} x {N}",
        args=(*args, unwritten_array((M, N))),
        outputs={2: expect_product(A, B)},
        dependences=add_expected_results(dependences, A, B),
        mistakes=tuple(usual_mistakes_in_sums(A, B, step)),
        **limits,
    )


def usual_mistakes_in_sums(A: Float[np.ndarray, "M K"], B: Float[np.ndarray, "K N"], step: int) -> Iterator[Mistake]:
    """Make usual mistakes in the sums of A @ B, which go through K in steps."""
    M, K = A.shape
    padded = round_up(K, step)

    def mistake(cause: str, first: int, end: int, cure: str) -> Mistake:
        return Mistake(cause, lambda: {2: expect_product(A[:, first:end], B[first:end])}, cure)

    once = "Set the sum to 0 once, before the loops over K, and add each product to it with `+=`."
    yield mistake("only the last product of each sum were kept", padded - 1, padded, once)
    if step == 1:
        yield mistake(
            "the last product of each sum were left out", 0, K - 1, "A `range` leaves out its end: end it at K."
        )
        if M < K:
            common = "k goes along the axis that both factors share: end its loop at the length of that axis."
            yield mistake("k ended at M, not at K", 0, M, common)
        return
    if K % step:
        more = "Let the loop over the tiles go on to K, so that its last tile may be ragged."
        yield mistake("the end of K that fills no whole tile were left out", 0, K // step * step, more)
    common = "Let the loop over the tiles go on to K, the length of the axis that both factors share."
    yield mistake("the last tile along K were left out", 0, padded - step, common)


def change_results(
    mistakes: Iterable[Mistake], change: Callable[[Expected], dict[int, Expected]]
) -> tuple[Mistake, ...]:
    """Return mistakes in a product for a launch that makes something else of it."""
    return tuple(replace(m, make_outputs=partial(_change_result, m.make_outputs, change)) for m in mistakes)


def _change_result(make_outputs, change):
    (product,) = make_outputs().values()
    return change(product)


def scale_by_alpha(alpha: float, launch: Launch) -> Launch:
    """Give the launch a first argument alpha, by which the product is multiplied."""
    factor, product = np.float32(alpha), launch.outputs[2]
    A, B = launch.args[:2]

    def scale(product: Expected) -> dict[int, Expected]:
        return {3: Expected(factor * product.value, 2 * abs(factor) * product.bound)}

    left_out = Mistake("alpha were left out", lambda: {3: product}, "Multiply each sum by alpha before it is stored.")
    return replace(
        launch,
        label=f"{launch.label}, alpha = {factor:g}",
        args=(factor, *launch.args),
        outputs=scale(product),
        dependences=add_expected_results(launch.dependences, A, B, factor),
        mistakes=(left_out, *change_results(launch.mistakes, scale)),
    )


def add_to_C(rng: np.random.Generator, launch: Launch) -> Launch:
    """Give the launch a C that already holds numbers, to which the product is added."""
    A, B, C = launch.args
    C, product = random_matrix(rng, *C.shape), launch.outputs[2]

    def add(product: Expected) -> dict[int, Expected]:
        rounding = EPS * (np.abs(C) + np.abs(product.value))
        return {2: Expected(C + product.value, product.bound + (max(A.shape) + 1) * rounding)}

    lost = Mistake("what C held were lost", lambda: {2: product}, "Add to C with `+=` where a sum is stored.")
    return replace(
        launch,
        args=(A, B, C),
        outputs=add(product),
        dependences=add_expected_results(launch.dependences, A, B, addend=C),
        mistakes=(lost, *change_results(launch.mistakes, add)),
    )


def make_tensor_core_launch(
    rng: np.random.Generator,
    M: int,
    N: int,
    K: int,
    tile: tuple[int, int],
    block: tuple[int, ...],
    budgets: tuple[Budget, ...] = (),
    dependences: tuple[Dependence, ...] = (USES_TENSOR_CORES,),
    duties: tuple[Duty, ...] = (),
) -> Launch:
    """Make C = A @ B.T on tensor cores, A and B in float16, two per word, one tile (rows, columns) of C per block."""
    A, B = random_matrix(rng, M, K).astype(np.float16), random_matrix(rng, N, K).astype(np.float16)
    if M > 1:
        A[-1] = 0  # sums of 0 are to be stored, too
    grid = grid_for((N, M), tile[::-1])
    max_plain_flops = 4 * int(np.prod(grid) * np.prod(tile))  # so that parts of a sum may be added up
    return Launch(
        label=f"A {M} x {K} times B.T {K} x {N}, {tile[0]} x {tile[1]} of C per block",
        args=(A.view(np.uint32), B.view(np.uint32), unwritten_array((M, N))),
        outputs={2: expect_product(A.astype(np.float32), B.T.astype(np.float32))},
        grid=grid,
        block=block,
        budgets=budgets,
        duties=(
            Duty(TENSOR_FLOPS, 2 * M * N * K, "2 M N K: every product by `ptx.mma`"),
            Duty(PLAIN_FLOPS, 0, "every product by `ptx.mma`", at_most=max_plain_flops),
            share_outputs(M, N, tile, block),
            *duties,
        ),
        dependences=add_expected_results(dependences, A, B.T),
    )


def add_mistakes_in_fragments(launch: Launch) -> Launch:
    """Add usual mistakes in the registers of `mma` to a launch of `make_tensor_core_launch`."""
    A, B = (words.view(np.float16).astype(np.float32) for words in launch.args[:2])
    return replace(launch, mistakes=(*launch.mistakes, *usual_mistakes_in_fragments(A, B)))


def usual_mistakes_in_fragments(A: Float[np.ndarray, "M K"], B: Float[np.ndarray, "N K"]) -> Iterator[Mistake]:
    """Make usual mistakes in the registers of `mma`, whose A has 16 x 16 and whose B has 8 x 16 elements."""
    M, N, K = len(A), *B.shape
    quarters = pad_to((16, 16), A).reshape(-1, 2, 8, K // 16, 2, 8)  # registers a0 to a3, two elements in each
    words = pad_to((8, 16), B).reshape(-1, 8, K // 16, 8, 2)  # registers b0 and b1

    def mistake(cause: str, left: Callable[[], Any], right: Callable[[], Any], cure: str) -> Mistake:
        def make_outputs() -> dict[int, Expected]:
            product = expect_product(left().reshape(-1, K), right().reshape(-1, K).T)
            return {2: Expected(product.value[:M, :N], product.bound[:M, :N])}

        return Mistake(cause, make_outputs, cure)

    of_A = (
        "In the registers of A, a1 has row g + 8 and a0's words; a2 and a3 have the words 4 after those of a0 and a1."
    )
    of_B = "A lane loads row g of B: b0 is its word t, and b1 is the word 4 after that."
    yield mistake("a1 and a2 were exchanged", lambda: quarters.transpose(0, 4, 2, 3, 1, 5), lambda: B, of_A)
    yield mistake("a2 and a3 were a0 and a1 again", lambda: quarters[..., [0, 0], :], lambda: B, of_A)
    yield mistake("b1 were the word after b0", lambda: A, lambda: words[..., [0, 1, 2, 3, 1, 2, 3, 4], :], of_B)
    if N % 8 == 0:
        yield mistake("rows and words of B were exchanged", lambda: A, lambda: words.swapaxes(1, 3), of_B)
    yield Mistake(
        "only the first 16 of K were multiplied",
        lambda: {2: expect_product(A[:, :16], B[:, :16].T)},
        "Let the loop over k go on to the end of a row, one `mma` for each 16 elements.",
    )
    yield Mistake(
        "every second 16 of K were left out",
        lambda: {2: expect_product(*_every_second(A, B))},
        PlacedCure(
            "Words hold two elements each, and one `mma` takes 8 words of a row: step k by 8.", ranges_to("A.shape[1]")
        ),
    )


def _every_second(A, B):
    """Return the factors of the product without every second step of 16 along K."""
    is_taken = np.arange(A.shape[1]) % 32 < 16
    return A[:, is_taken], B[:, is_taken].T


def add_expected_results(
    dependences: Iterable[Any],
    A: Float[np.ndarray, "M K"],
    B: Float[np.ndarray, "K N"],
    alpha: float | np.floating = 1.0,
    addend: Float[np.ndarray, "M N"] | float = 0.0,
) -> tuple[Dependence, ...]:
    """Give the dependences the results of disturbed runs of alpha * A @ B + addend.

    None are left where these results are not known: if alpha is 0, if tiles may be padded along K, or K is 0.
    """
    if not A.size or A.shape[1] % 16 or not alpha:
        return ()

    def expected_results(disturbance: Disturbance) -> list[Expected]:
        """Alpha may multiply the sums, A or B; `mma` takes fragments of A or B first."""
        results = []
        for scale, left, right in ((alpha, A, B), (1.0, alpha * A, B), (1.0, A, alpha * B)):
            if disturbance.what == PRODUCTS:
                left, right = left.astype(np.float32), right.astype(np.float32)
            disturbed = [disturbance.disturb(disturbance.what, factor) for factor in (left, right)]
            either_one = (disturbed[0], right), (left, disturbed[1])
            for factors in either_one if disturbance.what == PRODUCTS else (disturbed,):
                product = expect_product(*(factor.astype(np.float32) for factor in factors))
                bound = 4 * (abs(scale) * product.bound + A.shape[1] * EPS * np.abs(addend))
                padding = range(MAX_TILE_ROWS if disturbance.what == SHARED_LOADS else 1)  # zeros count as the shift
                shifts = (n * disturbance.shift**2 for n in padding)
                results += [Expected(scale * (product.value + shift) + addend, bound) for shift in shifts]
        return results

    return tuple(
        dependence if dependence.disturbed == BARRIERS else replace(dependence, expected_results=expected_results)
        for dependence in dependences
    )


def round_up(size: int, step: int) -> int:
    """Round a size up to a multiple of `step`."""
    return -(-size // step) * step


def make_ldmatrix_launch(rng, M, N, K, budgets) -> Launch:
    """Make a launch of one warp per 16 x 8 of C, whose fragments come by `ldmatrix`; the sides are rounded up."""
    M, N, K = round_up(M, 16), round_up(N, 8), round_up(K, 64)
    loads = 3 * (M // 16) * (N // 8) * (K // 16)
    return make_tensor_core_launch(
        rng,
        M,
        N,
        K,
        tile=(16, 8),
        block=(32,),
        budgets=budgets,
        duties=(Duty("load requests to shared memory", 0, "3 per `ptx.mma`: load by `ldmatrix`", at_most=loads),),
        dependences=(USES_TILES, USES_TENSOR_CORES),
    )

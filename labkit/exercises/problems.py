"""Random problems for exercises: rectangular, so that a swapped row and column cannot pass."""

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np
from jaxtyping import Float, Float32, Int

from labkit.checking import Dependence, Duty, Launch, Mistake
from labkit.checking.budget import ACTIVE_THREADS, EXCHANGED, STORING_THREADS
from labkit.checking.placed_cure import PlacedCure, find_swap
from labkit.gemm.problem import error_bound, oracle
from labkit.ladder import Expected
from labkit.simulator.disturbance import SHARED_LOADS

EPS = float(np.finfo(np.float32).eps)
MIN_NORMAL = float(np.finfo(np.float32).tiny)


def random_matrix(rng: np.random.Generator, rows: int, columns: int) -> Float32[np.ndarray, "rows columns"]:
    """Draw a float32 matrix of both signs."""
    return rng.standard_normal((rows, columns), np.float32)


def with_zeros(X: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Make one element in 29 a zero, so that an answer that leaves zeros out shows."""
    X.reshape(-1)[3::29] = 0
    return X


def expect_product(A: Float32[np.ndarray, "M K"], B: Float32[np.ndarray, "K N"]) -> Expected:
    """Expect A @ B within K * eps * |A||B|, which bounds a float32 sum of K products in any order."""
    return Expected(oracle(A, B), error_bound(A, B))


def expect(value: Float[np.ndarray, "..."], operations: int = 0) -> Expected:
    """Expect a value within the roundings of this many float32 operations (0: exactly)."""
    return Expected(value, operations * EPS * np.abs(value))


def depends_on_tile(T: Float32[np.ndarray, "..."]) -> Dependence:
    """Require that the result is T, each element of which is loaded once from shared memory."""
    why = "take each element of T from the tile in shared memory"
    return Dependence(SHARED_LOADS, why, lambda disturbed: [expect(disturbed.disturb(SHARED_LOADS, T).astype(float))])


def shared_among_threads(elements: int, most_per_thread: int, counter: str = ACTIVE_THREADS) -> Duty:
    """Require that threads share the elements of the last block, and that each loads or stores at most this many.

    The first block has at least as many.
    """
    return Duty(counter, -(-elements // most_per_thread), "share the elements among all threads")


def one_thread_per_element(extent: tuple[int, ...], block: tuple[int, ...]) -> Duty:
    """Require a storing thread per element of the last block; extent and block are those of `grid_for`."""
    sizes = (last_block_size(size, threads) for size, threads in zip(extent, block, strict=True))
    return shared_among_threads(prod(sizes), most_per_thread=1, counter=STORING_THREADS)


def exchanged_among_threads(elements: int) -> Duty:
    """Require that threads load what others stored for at least half of the last block's elements."""
    return Duty(EXCHANGED, elements // 2, "let the threads exchange elements through shared memory")


def grid_for(extent: tuple[int, ...], block: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of blocks that cover the extent, along x first."""
    return tuple(-(-size // threads) for size, threads in zip(extent, block, strict=True))


def last_block_size(size: int, block: int) -> int:
    """Return the number of elements in the last block, at least 1."""
    return (size - 1) % block + 1


def swap_rows_and_columns(launch: Launch) -> tuple[Mistake, ...]:
    """Make the mistake by which the grid's x counts the rows of the output; none if it covers the output so, too."""
    ((position, expected),) = launch.outputs.items()
    rows, columns = (launch.grid[axis] * launch.block[axis] for axis in range(2))
    row, column = np.ogrid[: expected.value.shape[0], : expected.value.shape[1]]
    is_covered = (row < rows) & (column < columns)
    if is_covered.all():
        return ()
    cause = "row and column had changed places, in the grid or in the guard"
    cure = PlacedCure(
        "x comes first and counts along a row. Has the column it, and the row y, and does the guard compare each with "
        "its own length?",
        find_swap,
    )
    return (Mistake(cause, partial(_store_where, position, expected, is_covered), cure),)


def leave_out_blocks(launch: Launch) -> tuple[Mistake, ...]:
    """Make the mistake by which each block takes the elements of the first one; none if there is but one block."""
    ((position, expected),) = launch.outputs.items()
    row, column = np.ogrid[: expected.value.shape[0], : expected.value.shape[1]]
    is_covered = (row < launch.block[1]) & (column < launch.block[0])
    cause = "each block began at row 0 and column 0"
    cure = "Count threads in the whole grid, as `cuda.grid(2)` does, not within the block."
    mistake = Mistake(cause, partial(_store_where, position, expected, is_covered), cure)
    return () if is_covered.all() else (mistake,)


def slips_in_the_index(launch: Launch) -> tuple[Mistake, ...]:
    """Make usual mistakes in the index of an output along one axis, one element per thread."""
    ((position, expected),) = launch.outputs.items()
    (blocks,), (threads,) = launch.grid, launch.block
    block, thread = np.ogrid[:blocks, :threads]
    whole = "A thread's index in the grid is its block's number times `cuda.blockDim.x`, plus its own: `cuda.grid(1)`."
    slips = {
        "the elements of the first block alone were stored": thread + 0 * block,
        "the index were the number of the block alone": block,
        "each block began one element after the one before": block + thread,
        "blocks began `cuda.gridDim.x` elements apart": block * blocks + thread,
        "the numbers of block and thread were exchanged": block + thread * threads,
    }
    element = np.arange(expected.value.size)
    return tuple(
        Mistake(cause, partial(_store_where, position, expected, np.isin(element, index)), whole)
        for cause, index in slips.items()
    )


def _store_where(position, expected, is_stored):
    """Return an output of which only some elements are stored; none of them need be right if others are missing."""
    bound = expected.bound if is_stored.all() else np.full(expected.value.shape, np.inf)
    return {position: Expected(np.where(is_stored, expected.value, np.nan), bound)}


def move_in_tiles(
    rows: Float32[np.ndarray, "rows columns"],
    width: int,
    line: Int[np.ndarray, " rows"],
    make_output: Callable = np.asarray,
) -> tuple[Mistake, ...]:
    """Make the mistake by which elements are moved in a tile where they are stored, or where they are loaded alone.

    Parameters
    ----------
    width, line
        The length of a tile's lines, and the line that each row is in. Places are moved by a multiple of the line.
    make_output
        Makes argument 1 of the rows.
    """
    column = np.arange(rows.shape[1])
    first, place, line = column // width * width, column % width, line[:, None]
    places = [place ^ by * line for by in (1, 2, 4)] + [(place + by * line) % width for by in (-4, -1, 1, 4)]

    def make_outputs(source):
        return {1: expect(make_output(np.take_along_axis(rows, source, 1)).astype(float))}

    cause = "elements were stored at one place of the tile and loaded from another"
    sources = [first + moved for moved in places]  # a place that nothing was stored at has an error of its own
    cure = "Write the same index of the tile where it is stored to and where it is loaded, for the same element."
    inside = [source for source in sources if source.max() < rows.shape[1]]
    return tuple(Mistake(cause, partial(make_outputs, source), cure) for source in inside)


def pad_to(step: tuple[int, ...], X: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Append zeros to an array, so that each side is a multiple of its step."""
    return np.pad(X, [(0, -size % multiple) for size, multiple in zip(X.shape, step, strict=True)])


def multiply_transposed_tiles(A: Float[np.ndarray, "M K"], B: Float[np.ndarray, "K N"], tile: int) -> Expected:
    """Expect A @ B with each tile of B, of tile x tile elements, transposed."""
    M, N = len(A), B.shape[1]
    A, B = pad_to((tile, tile), A), pad_to((tile, tile), B)
    tiles = B.reshape(len(B) // tile, tile, B.shape[1] // tile, tile)
    product = expect_product(A, tiles.swapaxes(1, 3).reshape(B.shape))
    return Expected(product.value[:M, :N], product.bound[:M, :N])


def convolve(
    x: Float[np.ndarray, "C H W"],
    w: Float[np.ndarray, "K C R S"],
    extent: tuple[int, int],
    strides: tuple[int, int],
    start: tuple[int, int],
) -> Expected:
    """Expect `extent` outputs of each filter over an image with zeros around it.

    Parameters
    ----------
    start
        Rows and columns by which the first window begins before the image; negative if it begins inside of it.
    """
    R, S = w.shape[2:]
    around = [
        (abs(before) + window, size * step + window)
        for before, window, size, step in zip(start, (R, S), extent, strides, strict=True)
    ]
    padded = np.pad(x.astype(float), ((0, 0), *around))
    (top, left), (row, column) = ([before - by for (before, _), by in zip(around, start, strict=True)], strides)
    windows = np.lib.stride_tricks.sliding_window_view(padded[:, top:, left:], (R, S), (1, 2))
    windows = windows[:, ::row, ::column][:, : extent[0], : extent[1]]
    value, size = (np.einsum("cpqrs,kcrs->kpq", a, b) for a, b in ((windows, w), (abs(windows), abs(w))))
    return Expected(value, w[0].size * EPS * size)

"""What blocks read from L2 and write there, as functions of the tile: rows of queries x columns of keys.

A tile of scores that no query sees any part of is not computed, and neither are its keys and values read.
"""

import numpy as np
from jaxtyping import Int

from labkit.attention.problem import AttentionForward
from labkit.formats import FP32, Format


def tiles_of_rows(
    problem: AttentionForward, rows: int, columns: int
) -> tuple[Int[np.ndarray, " tiles"], Int[np.ndarray, " tiles"]]:
    """For each tile of queries the first tile of keys that some of them see, and the one behind the last."""
    top = np.arange(0, problem.queries, rows)
    first, _ = problem.seen(top)
    _, behind = problem.seen(np.minimum(top + rows, problem.queries) - 1)
    first = first // columns
    return first, np.maximum(-(-behind // columns), first)


def tiles_of_columns(
    problem: AttentionForward, rows: int, columns: int
) -> tuple[Int[np.ndarray, " tiles"], Int[np.ndarray, " tiles"]]:
    """For each tile of keys the first tile of queries that see some of them, and the one behind the last."""
    first, behind = tiles_of_rows(problem, rows, columns)
    tile, place = np.arange(-(-problem.keys // columns))[:, None], np.arange(len(first))
    meets = (first <= tile) & (tile < behind)
    some = meets.any(1)
    return np.where(some, meets.argmax(1), 0), np.where(some, place[-1] + 1 - meets[:, ::-1].argmax(1), 0)


def tiles(problem: AttentionForward, rows: int, columns: int) -> int:
    """How many tiles of scores of a head are computed."""
    first, behind = tiles_of_rows(problem, rows, columns)
    return int((behind - first).sum())


def bytes_stored(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> int:
    """Of three kernels with the scores in memory: Q K^T in tiles, the softmax of rows, P V in tiles of O.

    S is written once, read twice and written once more by the softmax, and read once by the last kernel; it holds
    float32, and the part of it that no query sees is not touched.
    """
    seen = tiles(problem, rows, columns) * rows * columns  # at edges fewer
    row = problem.head_dim * format.itemsize
    of_products = tiles(problem, rows, columns) * (rows + columns) * row + tiles(problem, rows, columns) * columns * row
    return problem.batch * problem.heads * (of_products + 5 * seen * FP32.itemsize + problem.queries * row)


def bytes_kv_outside(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> int:
    """Of FlashAttention's first loop order: for each tile of keys the block reads Q, and reads and writes O and both
    sums of each row. (Dao and others, FlashAttention, 2022, algorithm 1.)

    O is kept in float32 between tiles.
    """
    first, behind = tiles_of_columns(problem, rows, columns)
    visits = _rows_in(first, behind, rows, problem.queries)
    of_visit = problem.head_dim * (format.itemsize + 2 * FP32.itemsize) + 4 * FP32.itemsize
    of_keys = 2 * problem.keys * problem.head_dim * format.itemsize
    return problem.batch * problem.heads * (visits * of_visit + of_keys)


def bytes_q_outside(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> int:
    """Of the second loop order: Q is read and O written once, K and V once for each tile of queries that sees them.

    (Dao, FlashAttention-2, 2023, algorithm 1.)
    """
    first, behind = tiles_of_rows(problem, rows, columns)
    row = problem.head_dim * format.itemsize
    of_keys = 2 * _rows_in(first, behind, columns, problem.keys) * row
    of_queries = problem.queries * (2 * row + FP32.itemsize)
    return problem.batch * problem.heads * (of_keys + of_queries)


def _rows_in(first, behind, tile, rows) -> int:
    """Rows in tiles `first` to `behind`, of which the last may be cut off."""
    return int((np.minimum(behind * tile, rows) - np.minimum(first * tile, rows)).sum())

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
    first, _ = problem.key_range(top)
    _, behind = problem.key_range(np.minimum(top + rows, problem.queries) - 1)
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


def standard(problem: AttentionForward, tile: int, format: Format = FP32) -> dict[str, int]:
    """Bytes by array, of three kernels with the scores S in memory: products in tiles of tile x tile, softmax of rows.

    Of scores, which are float32, those are stored that lie in a tile of which some are seen. They are written, read
    three times and written by the softmax, and read again for each tile of columns of O.
    """
    first, behind = tiles_of_rows(problem, tile, tile)
    tops = np.arange(0, problem.queries, tile)
    rows = np.minimum(tops + tile, problem.queries) - tops
    keys = np.minimum(behind * tile, problem.keys) - np.minimum(first * tile, problem.keys)
    columns = -(-problem.head_dim // tile)
    of_scores = (5 + columns) * int((rows * keys).sum())
    visits = int((rows * (behind - first)).sum())
    return _bytes(problem, format, visits, int(keys.sum()), problem.queries) | {
        "S": problem.batch * problem.heads * of_scores * FP32.itemsize
    }


def kv_outer(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> dict[str, int]:
    """Bytes by array, of FlashAttention's first loop order: for each tile of keys Q is read, and O and both sums of
    each row are read and written. (Dao and others, FlashAttention, 2022, algorithm 1.)

    All of O and of the sums is written before the first tile, and the sums are read again for log-sum-exp.
    """
    first, behind = tiles_of_columns(problem, rows, columns)
    visits = _rows_in(first, behind, rows, problem.queries)
    visited = np.flatnonzero(first < behind)
    of_keys = _rows_in(visited, visited + 1, columns, problem.keys)
    of_sums = problem.batch * problem.heads * 4 * (visits + problem.queries) * FP32.itemsize
    return _bytes(problem, format, visits, of_keys, 2 * visits + problem.queries) | {"sums": of_sums}


def q_outer(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> dict[str, int]:
    """Bytes by array, of the second loop order: Q is read and O written once, K and V once for each tile of queries
    that sees them. (Dao, FlashAttention-2, 2023, algorithm 1.)
    """
    first, behind = tiles_of_rows(problem, rows, columns)
    return _bytes(problem, format, problem.queries, _rows_in(first, behind, columns, problem.keys), problem.queries)


def _bytes(problem, format, of_q, of_k, of_o) -> dict[str, int]:
    """Bytes by array, of so many rows of Q, of K and of V, and of O, of each head; log-sum-exp is written once."""
    planes, row = problem.batch * problem.heads, problem.head_dim * format.itemsize
    rows = {"Q": of_q, "K": of_k, "V": of_k, "O": of_o}
    found = {name: planes * count * row for name, count in rows.items()}
    return found | {"lse": planes * problem.queries * FP32.itemsize}


def _rows_in(first, behind, tile, rows) -> int:
    """Rows in tiles `first` to `behind`, of which the last may be cut off."""
    return int((np.minimum(behind * tile, rows) - np.minimum(first * tile, rows)).sum())

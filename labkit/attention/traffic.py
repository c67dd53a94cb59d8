"""Bytes that blocks move from and to L2, as functions of the tile: rows of queries x columns of keys.

Tiles of scores that are all masked are not computed, and their keys and values are not read.
"""

import numpy as np
from jaxtyping import Int

from labkit.attention.problem import AttentionForward
from labkit.formats import FP32, Format

Ranges = tuple[Int[np.ndarray, " tiles"], Int[np.ndarray, " tiles"]]  # first tiles, and ends


def key_tiles(problem: AttentionForward, rows: int, columns: int) -> Ranges:
    """Tiles of keys that each tile of queries sees: the first ones, and the ends."""
    q0 = np.arange(0, problem.queries, rows)
    first, _ = problem.key_range(q0)
    _, end = problem.key_range(np.minimum(q0 + rows, problem.queries) - 1)
    first = first // columns
    return first, np.maximum(-(-end // columns), first)


def query_tiles(problem: AttentionForward, rows: int, columns: int) -> Ranges:
    """Tiles of queries that see each tile of keys: the first ones, and the ends."""
    first, end = key_tiles(problem, rows, columns)
    tile = np.arange(-(-problem.keys // columns))[:, None]
    sees = (first <= tile) & (tile < end)
    is_seen = sees.any(1)
    return np.where(is_seen, sees.argmax(1), 0), np.where(is_seen, len(first) - sees[:, ::-1].argmax(1), 0)


def tiles(problem: AttentionForward, rows: int, columns: int) -> int:
    """Number of tiles of scores per head that are computed."""
    first, end = key_tiles(problem, rows, columns)
    return int((end - first).sum())


def standard(problem: AttentionForward, tile: int, format: Format = FP32) -> dict[str, int]:
    """Bytes by array of three kernels with the scores S in memory: products of tile x tile, softmax of rows.

    S is float32, without tiles that are all masked. It is written, read three times and written by the softmax, and
    read again for each tile of columns of O.
    """
    first, end = key_tiles(problem, tile, tile)
    q0 = np.arange(0, problem.queries, tile)
    rows = np.minimum(q0 + tile, problem.queries) - q0
    keys = np.minimum(end * tile, problem.keys) - np.minimum(first * tile, problem.keys)
    scores = (5 - (-problem.head_dim // tile)) * int((rows * keys).sum())
    moved = _bytes(problem, format, int((rows * (end - first)).sum()), int(keys.sum()), problem.queries)
    return moved | {"S": problem.batch * problem.heads * scores * FP32.itemsize}


def kv_outer(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> dict[str, int]:
    """Bytes by array with KV-outer loops: per tile of keys Q is read, and O, row_max and row_sum are read and written.

    O, row_max and row_sum are also written before the first tile; these two ("sums") are read again for log-sum-exp.
    (Dao and others, FlashAttention, 2022, algorithm 1.)
    """
    first, end = query_tiles(problem, rows, columns)
    visits = _rows_in(first, end, rows, problem.queries)
    visited = np.flatnonzero(first < end)
    keys = _rows_in(visited, visited + 1, columns, problem.keys)
    sums = problem.batch * problem.heads * 4 * (visits + problem.queries) * FP32.itemsize
    return _bytes(problem, format, visits, keys, 2 * visits + problem.queries) | {"sums": sums}


def q_outer(problem: AttentionForward, rows: int, columns: int, format: Format = FP32) -> dict[str, int]:
    """Bytes by array with Q-outer loops: Q is read and O written once, K and V once per tile of queries that sees them.

    (Dao, FlashAttention-2, 2023, algorithm 1.)
    """
    first, end = key_tiles(problem, rows, columns)
    return _bytes(problem, format, problem.queries, _rows_in(first, end, columns, problem.keys), problem.queries)


def _bytes(problem, format, q_rows, k_rows, o_rows) -> dict[str, int]:
    """Bytes by array, given the rows per head of Q, of K and of V, and of O; log-sum-exp is written once."""
    planes, row = problem.batch * problem.heads, problem.head_dim * format.itemsize
    rows = {"Q": q_rows, "K": k_rows, "V": k_rows, "O": o_rows}
    moved = {name: planes * count * row for name, count in rows.items()}
    return moved | {"lse": planes * problem.queries * FP32.itemsize}


def _rows_in(first, end, tile, rows) -> int:
    """Rows in the tiles from `first` to `end`; the last one may be cut off."""
    return int((np.minimum(end * tile, rows) - np.minimum(first * tile, rows)).sum())

"""The problem of decoding: attention of a few queries per sequence to the keys and values of a cache."""

from dataclasses import asdict, dataclass, fields
from math import prod
from numbers import Integral

import numpy as np
from jaxtyping import Int

from labkit import ladder
from labkit.attention.problem import Attention, AttentionForward, as_bhsd, from_bhsd
from labkit.formats import FP32, Format

LARGE = 2**22  # elements of K, above which some heads are checked
NO_PAGE = -1  # in a table, past the pages of a sequence


@dataclass(frozen=True)
class AttentionDecode(Attention):
    """O = softmax(scale Q K^T) V of the queries of each sequence, and log-sum-exp of their scores.

    Sequence b has `lengths[b]` keys in the cache; its last query is at the last of them. The cache is stored in
    pages: position p of sequence b is position p % page of page `table[b, p // page]`. A cache without pages has one
    page per sequence. (Kwon and others, Efficient Memory Management for Large Language Model Serving with
    PagedAttention, 2023, section 4.) A query that sees no key has O = 0 and a log-sum-exp of minus infinity.
    Scores must be within the bounds that `AttentionForward` states.

    Attributes
    ----------
    keys
        Maximum number of keys per sequence.
    page
        Positions per page; None for a cache without pages.
    ragged
        Whether the sequences of random operands differ in length; otherwise each has `keys` keys.
    pool
        Pages of the cache; None for the maximum number of the sequences.
    """

    page: int | None = None
    ragged: bool = False
    pool: int | None = None

    ARRAYS = "Q", "K", "V", "lengths", "table", "O", "lse"
    int32_arrays = "lengths", "table"

    def __post_init__(self):
        super().__post_init__()
        if self.page is not None:
            if not isinstance(self.page, Integral) or isinstance(self.page, bool):
                raise TypeError(f"page is {self.page!r}: give how many positions a page has, or None for no pages")
            if self.page < 1:
                raise ValueError(f"page is {self.page}, but a page has 1 position or more: give another size")
        if self.pool is None:
            object.__setattr__(self, "pool", self.batch * self.pages)

    def __str__(self):
        words = [super().__str__(), f"page={self.page}" * (self.page is not None), "ragged" * self.ragged]
        return " ".join(filter(None, words))

    @property
    def positions(self) -> int:
        """Positions per page."""
        return self.keys if self.page is None else self.page

    @property
    def pages(self) -> int:
        """Maximum number of pages per sequence."""
        return -(-self.keys // self.positions)

    @property
    def cached_heads(self) -> int:
        """Heads of K of all sequences together."""
        return self.batch * self.kv_heads

    @property
    def lengths(self) -> Int[np.ndarray, " batch"]:
        """Number of keys of each sequence, for random operands."""
        if not self.ragged:
            return np.full(self.batch, self.keys, np.int32)
        lengths = np.random.default_rng([self.batch, self.keys]).integers(0, self.keys + 1, self.batch)
        lengths[:3] = (1, 0, self.keys)[: self.batch]
        return lengths.astype(np.int32)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        sizes = {"B": self.batch, "D": self.head_dim, "H": self.heads, "S": self.queries, "P": self.pages}
        of_cache = sizes | {"B": self.pool, "H": self.kv_heads, "S": self.positions}
        by_name = {name: of_cache if name in self.KEY_ARRAYS else sizes for name in self.ARRAYS}
        return {name: tuple(by_name[name][axis] for axis in axes) for name, axes in self.axes.items()}

    @property
    def axes(self) -> dict[str, str]:
        return super().axes | {"lengths": "B", "table": "BP"}

    def of_sequence(self, length: int) -> AttentionForward:
        """The problem of one sequence of `length` keys, 1 or more."""
        sizes = {field.name: getattr(self, field.name) for field in fields(AttentionForward)}
        return AttentionForward(**sizes | {"batch": 1, "keys": int(length), "layout": "BHSD"})

    @property
    def flops(self) -> int:
        return sum(self.of_sequence(length).flops for length in self.lengths if length)

    def min_bytes(self, format: Format = FP32) -> int:
        """Bytes of all keys and values that sequences have, and of the other arrays, each read or written once."""
        rows = self.batch * self.heads * self.queries
        of_cache = 2 * int(self.lengths.sum()) * self.kv_heads * self.head_dim * format.itemsize
        of_queries = rows * self.head_dim * (format.itemsize + format.result.itemsize) + rows * FP32.itemsize
        return of_cache + of_queries + 4 * (self.batch + prod(self.shapes["table"]))

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random Q, K, V and lengths; pages in random order; NaN in place of missing keys, and in O and log-sum-exp."""
        sizes = asdict(self)
        page, *_ = (sizes.pop(name) for name in ("page", "ragged", "pool"))
        Q, *cache, O, lse, _ = AttentionForward(**sizes).operands(format, seed)
        lengths, blank = self.lengths, format.encode(np.nan)
        for b, length in enumerate(lengths):
            for X in cache:
                as_bhsd(X, self.layout)[b, :, length:] = blank
        if page is None:
            table = np.arange(self.batch, dtype=np.int32).reshape(-1, 1)
        else:
            order = np.random.default_rng([seed, self.batch, self.keys]).permutation(self.pool)
            table = order[: self.batch * self.pages].reshape(self.batch, self.pages).astype(np.int32)
            cache = [self._paged(X, table, blank) for X in cache]
            for b, length in enumerate(lengths):
                table[b, -(-length // page) :] = NO_PAGE
        return Q, *cache, lengths, table, O, lse, self

    def _paged(self, X, table, blank):
        """Copy the keys or values of sequences to the pages that the table names."""
        pages = np.full(self.shapes["K"], blank)
        target, source = (as_bhsd(array, self.layout) for array in (pages, X))
        if padding := self.pages * self.positions - self.keys:
            source = np.concatenate([source, np.full_like(source[:, :, :1], blank).repeat(padding, 2)], 2)
        target[table] = source.reshape(*source.shape[:2], self.pages, self.positions, -1).swapaxes(1, 2)
        return pages

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """O and log-sum-exp in float64, and the error bounds of `AttentionForward`, sequence by sequence."""
        Q, K, V, lengths, table, *_, problem = operands  # maybe a part of this one
        Q, K, V = (as_bhsd(np.asarray(X), problem.layout) for X in (Q, K, V))
        O = ladder.Expected(np.zeros(Q.shape), np.zeros(Q.shape))
        lse = ladder.Expected(np.full(Q.shape[:3], -np.inf), np.zeros(Q.shape[:3]))
        for b, length in enumerate(lengths):
            if not length:
                continue
            pages = table[b, : -(-length // problem.positions)]
            cache = [np.concatenate([X[page] for page in pages], 1)[None, :, :length] for X in (K, V)]
            sequence = problem.of_sequence(length)
            results = sequence.expected((Q[b : b + 1], *cache, None, None, sequence), format).values()
            for whole, one in zip((O, lse), results, strict=True):
                whole.value[b], whole.bound[b] = one.value[0], one.bound[0]
        O = ladder.Expected(*(from_bhsd(X, problem.layout) for X in (O.value, O.bound)))
        return {self.ARRAYS.index("O"): O, self.ARRAYS.index("lse"): lse}

    compared_outputs = AttentionForward.compared_outputs

    def checked_part(self, operands: tuple) -> tuple:
        """Last head of K of a large problem, and the heads of Q that share it, of two of the batch."""
        if prod(self.shapes["K"]) <= LARGE:
            return operands
        *arrays, _ = operands
        Q, K, V, lengths, table, O, lse = map(np.asarray, arrays)
        ends = slice(None, None, max(1, self.batch - 1))  # the first and last sequence
        Q, O = (from_bhsd(as_bhsd(X, self.layout)[ends, -self.heads_per_kv :], self.layout) for X in (Q, O))
        K, V = (from_bhsd(as_bhsd(X, self.layout)[:, -1:], self.layout) for X in (K, V))
        sizes = asdict(self) | {"batch": len(Q), "heads": self.heads_per_kv, "kv_heads": 1}
        return Q, K, V, lengths[ends], table[ends], O, lse[ends, -self.heads_per_kv :], AttentionDecode(**sizes)

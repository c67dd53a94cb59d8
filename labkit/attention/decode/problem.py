"""What every step of decoding computes: attention of a few queries a sequence, to the keys and values of a cache."""

from dataclasses import asdict, dataclass, fields
from math import prod
from numbers import Integral

import numpy as np
from jaxtyping import Int

from labkit import ladder
from labkit.attention.problem import Attention, AttentionForward, as_heads, in_layout
from labkit.formats import FP32, Format

LARGE = 2**22  # numbers of K, above which some heads tell the error
NOWHERE = -1  # what a table holds behind the pages of a sequence


@dataclass(frozen=True)
class AttentionDecode(Attention):
    """O = softmax(scale Q K^T) V of the queries of each sequence, and log-sum-exp of their scores.

    Sequence b has `lengths[b]` keys in the cache, and its last query stands at the last of them. The cache lies in
    pages: position p of sequence b is position p % page of page `table[b, p // page]`. A cache without pages has a
    page a sequence. (Kwon and others, Efficient Memory Management for Large Language Model Serving with
    PagedAttention, 2023, section 4.) A query that sees no key has O = 0 and a log-sum-exp of minus infinity.
    Scores are to lie within the bounds that `AttentionForward` states.

    Attributes
    ----------
    keys
        Of a sequence, at most.
    page
        Positions of a page; None for a cache without pages.
    ragged
        Whether the sequences of random operands differ in length; else each has `keys` keys.
    pool
        Pages of the cache; as many as the sequences have at most, if it is None.
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
        """Of a page."""
        return self.keys if self.page is None else self.page

    @property
    def pages(self) -> int:
        """Of a sequence, at most."""
        return -(-self.keys // self.positions)

    @property
    def cached_heads(self) -> int:
        """Heads of K of all sequences together."""
        return self.batch * self.kv_heads

    @property
    def lengths(self) -> Int[np.ndarray, " batch"]:
        """Keys of each sequence, of random operands."""
        if not self.ragged:
            return np.full(self.batch, self.keys, np.int32)
        lengths = np.random.default_rng([self.batch, self.keys]).integers(0, self.keys + 1, self.batch)
        lengths[:3] = (1, 0, self.keys)[: self.batch]
        return lengths.astype(np.int32)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        sizes = {"B": self.batch, "D": self.head_dim, "H": self.heads, "S": self.queries, "P": self.pages}
        of_cache = sizes | {"B": self.pool, "H": self.kv_heads, "S": self.positions}
        return {
            name: tuple((of_cache if name in self.OF_KEYS else sizes)[axis] for axis in axes)
            for name, axes in self.axes.items()
        }

    @property
    def axes(self) -> dict[str, str]:
        return super().axes | {"lengths": "B", "table": "BP"}

    def of_sequence(self, length: int) -> AttentionForward:
        """The attention of one sequence with so many keys, which are 1 or more."""
        known = {field.name: getattr(self, field.name) for field in fields(AttentionForward)}
        return AttentionForward(**known | {"batch": 1, "keys": int(length), "layout": "BHSD"})

    @property
    def flops(self) -> int:
        return sum(self.of_sequence(length).flops for length in self.lengths if length)

    def min_bytes(self, format: Format = FP32) -> int:
        """Each key and value of the sequences read once, and each other number once."""
        rows = self.batch * self.heads * self.queries
        of_cache = 2 * int(self.lengths.sum()) * self.kv_heads * self.head_dim * format.itemsize
        of_queries = rows * self.head_dim * (format.itemsize + format.result.itemsize) + rows * FP32.itemsize
        return of_cache + of_queries + 4 * (self.batch + prod(self.shapes["table"]))

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random Q, K and V, and the lengths; pages in any order; NaN where no key is, and in O and log-sum-exp."""
        known = asdict(self)
        page, *_ = (known.pop(name) for name in ("page", "ragged", "pool"))
        Q, *cache, O, lse, _ = AttentionForward(**known).operands(format, seed)
        lengths, blank = self.lengths, format.encode(np.nan)
        for b, length in enumerate(lengths):
            for X in cache:
                as_heads(X, self.layout)[b, :, length:] = blank
        if page is None:
            table = np.arange(self.batch, dtype=np.int32).reshape(-1, 1)
        else:
            order = np.random.default_rng([seed, self.batch, self.keys]).permutation(self.pool)
            table = order[: self.batch * self.pages].reshape(self.batch, self.pages).astype(np.int32)
            cache = [self._paged(X, table, blank) for X in cache]
            for b, length in enumerate(lengths):
                table[b, -(-length // page) :] = NOWHERE
        return Q, *cache, lengths, table, O, lse, self

    def _paged(self, X, table, blank):
        """Keys or values of sequences as pages where the table says."""
        pages = np.full(self.shapes["K"], blank)
        to, of = (as_heads(each, self.layout) for each in (pages, X))
        if behind := self.pages * self.positions - self.keys:
            of = np.concatenate([of, np.full_like(of[:, :, :1], blank).repeat(behind, 2)], 2)
        to[table] = of.reshape(*of.shape[:2], self.pages, self.positions, -1).swapaxes(1, 2)
        return pages

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """As `AttentionForward` has it, for each sequence with the keys that it has."""
        Q, K, V, lengths, table, *_, problem = operands  # which may be a part of this one
        Q, K, V = (as_heads(np.asarray(X), problem.layout) for X in (Q, K, V))
        found = {
            name: ladder.Expected(np.full(shape, instead), np.zeros(shape))
            for name, shape, instead in (("O", Q.shape, 0.0), ("lse", Q.shape[:3], -np.inf))
        }
        for b, length in enumerate(lengths):
            if not length:
                continue
            own = table[b, : -(-length // problem.positions)]
            cache = [np.concatenate([X[page] for page in own], 1)[None, :, :length] for X in (K, V)]
            known = problem.of_sequence(length)
            of_o, of_lse = known.expected((Q[b : b + 1], *cache, None, None, known), format).values()
            for name, one in (("O", of_o), ("lse", of_lse)):
                found[name].value[b], found[name].bound[b] = one.value[0], one.bound[0]
        of_o = ladder.Expected(*(in_layout(X, problem.layout) for X in (found["O"].value, found["O"].bound)))
        return {self.ARRAYS.index("O"): of_o, self.ARRAYS.index("lse"): found["lse"]}

    def compared_outputs(self, expected: dict[int, ladder.Expected]) -> dict[int, ladder.Expected]:
        """O alone: beside log-sum-exp its errors would be small."""
        return {place: one for place, one in expected.items() if self.ARRAYS[place] == "O"}

    def part(self, operands: tuple) -> tuple:
        """Of a large problem the last head of K, and the heads of Q that share it, of two of the batch."""
        if prod(self.shapes["K"]) <= LARGE:
            return operands
        *arrays, _ = operands
        Q, K, V, lengths, table, O, lse = map(np.asarray, arrays)
        some = slice(None, None, max(1, self.batch - 1))
        Q, O = (in_layout(as_heads(X, self.layout)[some, -self.group :], self.layout) for X in (Q, O))
        K, V = (in_layout(as_heads(X, self.layout)[:, -1:], self.layout) for X in (K, V))
        few = asdict(self) | {"batch": len(Q), "heads": self.group, "kv_heads": 1}
        return Q, K, V, lengths[some], table[some], O, lse[some, -self.group :], AttentionDecode(**few)

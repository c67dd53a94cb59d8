"""The problem that every kernel of attention forward computes: O = softmax(scale Q K^T) V, and log-sum-exp.

(Vaswani and others, Attention Is All You Need, 2017, section 3.2.1.)
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod, sqrt
from numbers import Integral, Real
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int, Shaped

from labkit import ladder
from labkit.arrays.views import as_strided
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

Layout = Literal["BHSD", "BSHD"]
LAYOUTS = "BHSD", "BSHD"
HARD = "", "huge", "rising"  # kinds of operands, see `Attention.hard`
MAX_SIZE = FAR = 2**30  # no limit: a key is never so far from a query
MAX_HEAD_DIM = 256
MAX_SCALE = 1e38  # times log2(e), which kernels multiply it by, it is a float32
EPS = float(np.finfo(np.float32).eps)
ARRAYS = "Q", "K", "V", "O", "lse"
HUGE = 60.0  # greatest factor of queries: scores of several hundred
RISE = 20.0  # of the mean score from the first key to the last
LARGE = 1024  # queries, above which SAMPLED of them are checked
SAMPLED = 64
SPREAD = 4  # standard deviations that a sum of roundings may be off, of a rounding that takes its whole bound


def check_options(causal: bool, window: int | None, scale: float | None, layout: Layout) -> None:
    """Raise TypeError or ValueError, with one sentence, if an option of `AttentionForward` has a wrong value."""
    if not isinstance(causal, bool | np.bool_):
        raise TypeError(f"causal is {causal!r}: say True or False")
    if window is not None and (not isinstance(window, Integral) or isinstance(window, bool)):
        raise TypeError(f"window is {window!r}: give how many positions a query sees, or None for all")
    if window is not None and window < 1:
        raise ValueError(f"window is {window}, but a query sees its own position at least: give 1 or more")
    if scale is not None:
        if not isinstance(scale, Real) or isinstance(scale, bool):
            raise TypeError(f"scale is {scale!r}: give a number, or None for 1 / sqrt(head_dim)")
        if not abs(scale) <= MAX_SCALE:
            limit = f"at most {MAX_SCALE:.0e} either way"
            raise ValueError(f"scale is {scale!r}: give a number of {limit}, or None for 1 / sqrt(head_dim)")
    if layout not in LAYOUTS:
        raise ValueError(f"there is no layout {layout!r}: say BHSD or BSHD")


@dataclass(frozen=True)
class Attention(ladder.Problem):
    """Sizes of an attention, forward or backward, and its mask.

    Query i is at position p = i + keys - queries: the last query is at the last key ("bottom-right aligned").

    Attributes
    ----------
    batch, heads, queries, head_dim
        Sizes of Q and O.
    keys
        Number of keys per head of K; None for `queries`.
    kv_heads
        Heads of K and V, each shared by heads / kv_heads neighbouring heads of Q; None for `heads`. (Ainslie and
        others, GQA: Training Generalized Multi-Query Transformer Models, 2023.)
    causal
        Whether keys past a query's position are masked.
    window
        A query at position p sees the keys j with `|p - j| < window`, which are 2 window - 1 and with `causal` the last
        `window`; None for all. (Beltagy, Peters and Cohan, Longformer, 2020, section 3.1.)
    scale
        Factor of the scores; None for 1 / sqrt(head_dim).
    layout
        Order of the axes in memory: "BHSD" or "BSHD", for batch, heads, positions, head_dim. Log-sum-exp is
        batch x heads x queries in both.
    hard
        "huge": scores of up to several hundred. "rising": each tile of keys has larger scores than those before it.

    Raises
    ------
    TypeError, ValueError
        The sizes make no attention; the message says why, and what to do.
    """

    batch: int
    heads: int
    queries: int
    head_dim: int
    keys: int | None = None
    kv_heads: int | None = None
    causal: bool = False
    window: int | None = None
    scale: float | None = None
    layout: Layout = "BHSD"
    hard: str = ""

    ARRAYS: ClassVar[tuple[str, ...]]  # in the order of operands
    KEY_ARRAYS: ClassVar[tuple[str, ...]] = "K", "V", "dK", "dV"  # have a row for each key, and kv_heads
    message_name, float32_arrays = "attention", ("lse",)
    needs_c_order = False  # strides may be any multiples of a row

    def __post_init__(self):
        for name, default in (("keys", self.queries), ("kv_heads", self.heads)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        for name in ("batch", "heads", "queries", "head_dim", "keys", "kv_heads"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not 1 <= size <= MAX_SIZE:
                raise ValueError(f"{name} is {size}, but it must be at least 1 and at most {MAX_SIZE}")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap
        if self.head_dim > MAX_HEAD_DIM:
            raise ValueError(f"head_dim is {self.head_dim}, but steps take up to {MAX_HEAD_DIM}: use more heads")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"Q has {self.heads} heads and K has {self.kv_heads}: each head of K serves as many heads of Q, "
                "so let the one be a multiple of the other"
            )
        check_options(self.causal, self.window, self.scale, self.layout)
        if self.hard not in HARD:
            raise ValueError(f"there are no operands {self.hard!r}: say huge or rising")

    def __str__(self):
        kv_heads = f"/{self.kv_heads}" if self.kv_heads != self.heads else ""
        keys = f"/{self.keys}" if self.keys != self.queries else ""
        words = [f"{self.batch}x{self.heads}{kv_heads}x{self.queries}{keys}x{self.head_dim}"]
        words += ["causal"] if self.causal else []
        words += [f"{name}={getattr(self, name)}" for name in ("window", "scale") if getattr(self, name) is not None]
        return " ".join(filter(None, (*words, "BSHD" * (self.layout == "BSHD"), self.hard)))

    # --- the mask ----------------------------------------------------------------------------------

    @property
    def heads_per_kv(self) -> int:
        """Heads of Q that share a head of K and V (GQA group)."""
        return self.heads // self.kv_heads

    @property
    def factor(self) -> float:
        """Factor of the scores: `scale`, or its default."""
        return 1 / sqrt(self.head_dim) if self.scale is None else float(self.scale)

    @property
    def window_bounds(self) -> tuple[int, int]:
        """Lowest and highest j - i of a key j that query i sees; without a limit, so far away that there is none."""
        reach = FAR if self.window is None else min(self.window - 1, FAR)
        diagonal = self.keys - self.queries
        lowest, highest = diagonal - reach, diagonal + (0 if self.causal else reach)
        return max(lowest, -FAR), min(highest, FAR)

    @cached_property
    def rows(self) -> Int[np.ndarray, " rows"]:
        """Indices of the queries; in a part of a problem fewer than `queries`."""
        return np.arange(self.queries)

    def key_range(self, rows=None) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
        """First key that each query sees, and the end of its keys; equal where it sees none."""
        rows = self.rows if rows is None else np.asarray(rows)
        lowest, highest = self.window_bounds
        first = np.clip(rows + lowest, 0, self.keys)
        return first, np.maximum(np.clip(rows + highest + 1, 0, self.keys), first)

    def allowed(self) -> Bool[np.ndarray, "rows keys"]:
        """The mask: whether each query sees each key."""
        first, end = (X[:, None] for X in self.key_range())
        key = np.arange(self.keys)
        return (first <= key) & (key < end)

    @property
    def pairs(self) -> int:
        """Number of scores per head that are not masked."""
        first, end = self.key_range()
        return int((end - first).sum())

    # --- sizes -------------------------------------------------------------------------------------

    def min_bytes(self, format: Format = FP32) -> int:
        """Bytes of all arrays, each read or written once."""
        return sum(
            prod(shape) * (FP32.itemsize if name in self.float32_arrays else format.itemsize)
            for name, shape in self.shapes.items()
        )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        of_queries = {"B": self.batch, "D": self.head_dim, "H": self.heads, "S": self.queries}
        of_keys = of_queries | {"H": self.kv_heads, "S": self.keys}
        sizes = {name: of_keys if name in self.KEY_ARRAYS else of_queries for name in self.ARRAYS}
        return {name: tuple(sizes[name][axis] for axis in axes) for name, axes in self.axes.items()}

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes."""
        return {name: "BHS" if name == "lse" else self.layout for name in self.ARRAYS}


class AttentionForward(Attention):
    """O = softmax(scale Q K^T) V per head, and log-sum-exp of the scores of each query.

    A query that sees no key has O = 0 and a log-sum-exp of minus infinity.

    Kernels in float32 take any float32 scores. Those of 16 bits take scores within 2**30 of zero in bfloat16,
    within 2**26 in float16. They multiply a score and subtract the maximum in one rounding: the greatest exponent of a
    row is not 0, but up to half a last bit of the score away from it. The division by row_sum cancels that, as long as
    the format holds such a weight.
    """

    ARRAYS = ARRAYS

    @property
    def flops(self) -> int:
        """FLOP of Q K^T and P V: a multiply and an add per element of head_dim, for each score that is not masked."""
        return 4 * self.batch * self.heads * self.pairs * self.head_dim

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random Q, K and V; O and log-sum-exp filled with NaN, to show what stays unwritten; and the problem."""
        rng = np.random.default_rng([seed, self.batch, self.heads, self.queries, self.keys, self.head_dim])
        shapes = self.shapes
        if self.hard:
            Q, K = (rng.standard_normal(shapes[name]) for name in "QK")
            if self.hard == "huge":
                Q *= HUGE * rng.random((*shapes["Q"][:-1], 1))  # maxima of rows differ widely as well
            else:
                towards = rng.choice([-1.0, 1.0], self.head_dim)  # all queries lean, and each key more than the last
                rise = RISE / (self.factor * self.head_dim) * np.arange(self.keys) / self.keys
                Q += towards
                K += rise.reshape([-1 if axis == "S" else 1 for axis in self.layout]) * towards
            Q, K = format.encode(Q), format.encode(K)
        else:
            Q, K = (normal(rng, shapes[name], format) for name in "QK")
        V = normal(rng, shapes["V"], format)
        O = np.full(shapes["O"], format.result.encode(np.nan), format.result.dtype)
        return Q, K, V, O, np.full(shapes["lse"], np.nan, np.float32), self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """O and log-sum-exp in float64, and error bounds.

        A score may be off by the error of its float32 sum over head_dim, and by 4 roundings of itself. Each weight may
        be rounded to the format: such errors add up like random ones, to `SPREAD` standard deviations at most. A sum
        costs a rounding per key that the query sees. Half a step of float16 near zero bounds what small weights lose.
        One key too many or too few makes a far larger error.
        """
        *arrays, problem = operands  # maybe a part of this one
        Q, K, V = (as_bhsd(np.asarray(X), problem.layout) for X in arrays[:3])
        weight_error = format.rounding if format.is_bits or format.itemsize == 2 else 8 * EPS
        lost = 2.0**-25 if format.dtype == np.float16 else 0.0
        O, lse = expected_attention(problem, Q, K, V, format.decode, format.result, weight_error, lost=lost)
        O = ladder.Expected(*(from_bhsd(X, problem.layout) for X in (O.value, O.bound)))
        return {ARRAYS.index("O"): O, ARRAYS.index("lse"): lse}

    def compared_outputs(self, expected: dict[int, ladder.Expected]) -> dict[int, ladder.Expected]:
        """O alone: its errors are small compared with log-sum-exp."""
        return {index: one for index, one in expected.items() if self.ARRAYS[index] == "O"}

    def checked_part(self, operands: tuple) -> tuple:
        """Some queries of a large problem, the first and the last among them, of two of the batch."""
        if self.queries <= LARGE:
            return operands
        rows = np.unique(np.linspace(0, self.queries - 1, SAMPLED).astype(int))
        batches = sorted({0, self.batch - 1})
        arrays = {name: np.asarray(X)[batches] for name, X in zip(self.ARRAYS, operands)}
        for name in ("Q", "O", "lse"):
            arrays[name] = arrays[name].take(rows, self.axes[name].index("S"))
        part = replace(self, batch=len(batches))
        object.__setattr__(part, "rows", rows)
        return *arrays.values(), part


def expected_attention(
    problem: Attention,
    Q,
    K,
    V,
    decode,
    result: Format,
    weight_error: float,
    *,
    lost: float = 0.0,
    product_error: float = 0.0,
    sum_error: float = 0.0,
    divides_by_rounded: bool = False,
) -> tuple[ladder.Expected, ladder.Expected]:
    """O and log-sum-exp in float64, with error bounds; see `AttentionForward.expected`.

    Parameters
    ----------
    Q, K, V
        Arrays with the axes batch, heads, positions and head_dim; `decode` makes float64 of a head.
    result
        Format to which O is rounded.
    weight_error
        Relative rounding error of a weight.
    lost
        Absolute rounding error of a weight, as a share of the greatest weight of its row.
    product_error
        Error of a score per product, as a share of the sum of their sizes, beyond roundings to float32.
    sum_error
        Relative error of a sum over keys, beyond that.
    divides_by_rounded
        Whether row_sum is such a sum, of the rounded weights.
    """
    value, bound = (np.zeros(Q.shape) for _ in range(2))
    lse, lse_bound = np.full(Q.shape[:3], -np.inf), np.zeros(Q.shape[:3])
    allowed = problem.allowed()
    seeing = allowed.any(1)  # queries that see a key
    count = allowed.sum(1)[seeing, None]
    for b, h in np.ndindex(Q.shape[:2]):
        q = decode(Q[b, h])[seeing]
        k, v = (decode(X[b, h // problem.heads_per_kv]) for X in (K, V))
        scores = problem.factor * (q @ k.T)
        error = (EPS + product_error) * problem.head_dim * abs(problem.factor) * (np.abs(q) @ np.abs(k).T)
        error += 4 * EPS * np.abs(scores)
        scores[~allowed[seeing]] = -np.inf
        row_max = scores.max(1, keepdims=True)
        P = np.exp(scores - row_max)
        row_sum = P.sum(1, keepdims=True)
        P /= row_sum
        o, size = P @ v, P @ np.abs(v)
        error *= P  # errors of scores, as errors of the probabilities
        roundings = np.minimum(size, SPREAD * np.sqrt(P**2 @ v**2) + np.abs(o))
        value[b, h, seeing] = o
        bound[b, h, seeing] = (
            2 * (error @ np.abs(v) + error.sum(1, keepdims=True) * np.abs(o))
            + (weight_error + sum_error) * roundings
            + (count + 16) * EPS * size
            + lost / row_sum * (allowed[seeing] @ np.abs(v))
            + result.rounding * np.abs(o)
        )
        lse[b, h, seeing] = (row_max + np.log(row_sum))[:, 0]
        lse_bound[b, h, seeing] = 2 * error.sum(1) + (count[:, 0] + 16) * EPS + 4 * EPS * np.abs(lse[b, h, seeing])
        if divides_by_rounded:
            row_sum_error = sum_error + count * lost / row_sum
            bound[b, h, seeing] += row_sum_error * np.abs(o)
            lse_bound[b, h, seeing] += row_sum_error[:, 0] - np.log1p(-weight_error)
    bound[..., seeing, :] += result.rounding * 2.0**-14 if result.dtype == np.float16 else 0.0
    return ladder.Expected(value, bound), ladder.Expected(lse, lse_bound)


def as_bhsd(X: Shaped[np.ndarray, "..."], layout: Layout):
    """View Q, K, V or O with the axes batch, heads, positions and head_dim, without a copy."""
    if layout == "BHSD":
        return X
    batch, positions, heads, width = X.shape
    strides = X.strides
    return as_strided(X, (batch, heads, positions, width), (strides[0], strides[2], strides[1], strides[3]))


def from_bhsd(X: Float64[np.ndarray, "B H S D"], layout: Layout):
    """Turn the axes batch, heads, positions and head_dim into a layout: the inverse of `as_bhsd`."""
    return X if layout == "BHSD" else X.swapaxes(1, 2)

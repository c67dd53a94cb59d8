"""What every step of attention computes: each query takes a mean of values, weighed by how well their keys fit it.

(Vaswani and others, Attention Is All You Need, 2017, section 3.2.1.)
"""

from dataclasses import asdict, dataclass, replace
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
HARD = "", "huge", "rising"
MOST = FAR = 2**30  # of a size; so far from a position is as good as endless
MOST_HEAD_DIM = 256
MOST_SCALE = 1e38  # times log2(e), which kernels multiply it by, it is a float32
EPS = float(np.finfo(np.float32).eps)
ARRAYS = "Q", "K", "V", "O", "lse"
HUGE = 60.0  # times as large queries, at most: scores of several hundred
RISE = 20.0  # of the mean score from the first key to the last
LARGE = 1024  # queries, of which SOME tell the error
SOME = 64
SPREAD = 4  # standard deviations that a sum of roundings may be off, of a rounding that takes its whole bound


def check_options(causal: bool, window: int | None, scale: float | None, layout: Layout) -> None:
    """Raises TypeError or ValueError, in a sentence, where an option of `AttentionForward` is none."""
    if not isinstance(causal, bool | np.bool_):
        raise TypeError(f"causal is {causal!r}: say True or False")
    if window is not None and (not isinstance(window, Integral) or isinstance(window, bool)):
        raise TypeError(f"window is {window!r}: give how many positions a query sees, or None for all")
    if window is not None and window < 1:
        raise ValueError(f"window is {window}, but a query sees its own position at least: give 1 or more")
    if scale is not None:
        if not isinstance(scale, Real) or isinstance(scale, bool):
            raise TypeError(f"scale is {scale!r}: give a number, or None for 1 / sqrt(head_dim)")
        if not abs(scale) <= MOST_SCALE:
            most = f"at most {MOST_SCALE:.0e} either way"
            raise ValueError(f"scale is {scale!r}: give a number of {most}, or None for 1 / sqrt(head_dim)")
    if layout not in LAYOUTS:
        raise ValueError(f"there is no layout {layout!r}: say BHSD or BSHD")


@dataclass(frozen=True)
class Attention(ladder.Problem):
    """Sizes of an attention, forward or backward, and which keys a query sees.

    Query i stands at position p = i + keys - queries, so that the last query and the last key meet ("bottom-right
    aligned").

    Attributes
    ----------
    batch, heads, queries, head_dim
        Of Q and O. The scores of a query are over all `keys` of one head.
    keys
        As many as queries, if it is None.
    kv_heads
        Heads of K and V, each of which serves heads / kv_heads neighbouring heads of Q; as many as heads, if None.
        (Ainslie and others, GQA: Training Generalized Multi-Query Transformer Models, 2023.)
    causal
        Whether a query sees no key behind its position.
    window
        How far a query sees, its own position counted: keys j with |p - j| < window; None for all. (Beltagy, Peters
        and Cohan, Longformer: The Long-Document Transformer, 2020, section 3.1.)
    scale
        Of the scores; 1 / sqrt(head_dim), if it is None.
    layout
        The order of the axes in memory: "BHSD" or "BSHD", for batch, heads, positions, head_dim. Log-sum-exp is
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
    OF_KEYS: ClassVar[tuple[str, ...]] = "K", "V", "dK", "dV"  # those that have rows of keys, and their heads
    called, float32_arrays = "attention", ("lse",)
    needs_c_order = False  # rows may lie apart

    def __post_init__(self):
        for name, instead in (("keys", self.queries), ("kv_heads", self.heads)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, instead)
        for name in ("batch", "heads", "queries", "head_dim", "keys", "kv_heads"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not 1 <= size <= MOST:
                raise ValueError(f"{name} is {size}, but it must be at least 1 and at most {MOST}")
            object.__setattr__(self, name, int(size))  # NumPy's would wrap
        if self.head_dim > MOST_HEAD_DIM:
            raise ValueError(f"head_dim is {self.head_dim}, but steps take up to {MOST_HEAD_DIM}: use more heads")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"Q has {self.heads} heads and K has {self.kv_heads}: each head of K serves as many heads of Q, "
                "so let the one be a multiple of the other"
            )
        check_options(self.causal, self.window, self.scale, self.layout)
        if self.hard not in HARD:
            raise ValueError(f"there are no operands {self.hard!r}: say huge or rising")

    def __str__(self):
        of_keys = f"/{self.keys}" if self.keys != self.queries else ""
        of_heads = f"/{self.kv_heads}" if self.kv_heads != self.heads else ""
        words = [
            f"{self.batch}x{self.heads}{of_heads}x{self.queries}{of_keys}x{self.head_dim}",
            "causal" if self.causal else "",
        ]
        words += [f"window={self.window}"] if self.window is not None else []
        words += [f"scale={self.scale}"] if self.scale is not None else []
        return " ".join(filter(None, (*words, "BSHD" * (self.layout == "BSHD"), self.hard)))

    # --- what a query sees -------------------------------------------------------------------------

    @property
    def group(self) -> int:
        """How many heads of Q a head of K and V serves."""
        return self.heads // self.kv_heads

    @property
    def factor(self) -> float:
        """What scores are multiplied by."""
        return 1 / sqrt(self.head_dim) if self.scale is None else float(self.scale)

    @property
    def band(self) -> tuple[int, int]:
        """Query i sees keys i + lowest to i + highest, as far as there are such; endless ends are far away."""
        reach = FAR if self.window is None else min(self.window - 1, FAR)
        apart = self.keys - self.queries
        lowest, highest = apart - reach, apart + (0 if self.causal else reach)
        return max(lowest, -FAR), min(highest, FAR)

    @property
    def rows(self) -> Int[np.ndarray, " rows"]:
        """Which queries there are; of a part of a problem fewer than `queries`."""
        return np.arange(self.queries)

    def seen(self, rows=None) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
        """The first key that each query sees, and the one behind the last; the same one where it sees none."""
        rows = self.rows if rows is None else np.asarray(rows)
        lowest, highest = self.band
        first = np.clip(rows + lowest, 0, self.keys)
        return first, np.maximum(np.clip(rows + highest + 1, 0, self.keys), first)

    def allowed(self) -> Bool[np.ndarray, "rows keys"]:
        """Whether each query sees each key."""
        first, behind = (X[:, None] for X in self.seen())
        place = np.arange(self.keys)
        return (first <= place) & (place < behind)

    @property
    def pairs(self) -> int:
        """Scores of a head that count."""
        first, behind = self.seen()
        return int((behind - first).sum())

    # --- sizes -------------------------------------------------------------------------------------

    def min_bytes(self, format: Format = FP32) -> int:
        """Each array read or written once."""
        return sum(
            prod(shape) * (FP32.itemsize if name in self.float32_arrays else format.itemsize)
            for name, shape in self.shapes.items()
        )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        sizes = {"B": self.batch, "D": self.head_dim}
        of_queries = sizes | {"H": self.heads, "S": self.queries}
        of_keys = sizes | {"H": self.kv_heads, "S": self.keys}
        return {
            name: tuple((of_keys if name in self.OF_KEYS else of_queries)[axis] for axis in axes)
            for name, axes in self.axes.items()
        }

    @property
    def axes(self) -> dict[str, str]:
        """The letters of each array's axes."""
        return {name: "BHS" if name == "lse" else self.layout for name in self.ARRAYS}


class AttentionForward(Attention):
    """O = softmax(scale Q K^T) V for each head, and log-sum-exp of the scores of each query.

    A query that may see no key has O = 0 and a log-sum-exp of minus infinity.

    Steps in float32 take any scores that float32 holds. Those of 16 bits take scores within 2**30 of zero in bfloat16,
    and within 2**26 in float16: they multiply a score and subtract the maximum in one rounding, so that the greatest
    weight of a row is not 1 but up to half a last bit of its score away, as an exponent of 2. That is divided out as
    long as the format holds such a weight.
    """

    ARRAYS = ARRAYS

    @property
    def flops(self) -> int:
        """Of each score that counts: a product and a sum for each of head_dim numbers, in Q K^T and in P V."""
        return 4 * self.batch * self.heads * self.pairs * self.head_dim

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random Q, K and V; O and log-sum-exp of NaN, in which what stays unwritten shows; and the problem."""
        rng = np.random.default_rng([seed, self.batch, self.heads, self.queries, self.keys, self.head_dim])
        shapes = self.shapes
        if self.hard:
            Q, K = (rng.standard_normal(shapes[name]) for name in "QK")
            if self.hard == "huge":
                Q *= HUGE * rng.random((*shapes["Q"][:-1], 1))  # maxima of rows lie far apart as well
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
        """O and log-sum-exp in float64, and how far a step may be off them.

        A score may be off by what its sum over head_dim costs in float32, and by 4 roundings of itself. Weights may be
        rounded to the format, independently of one another: their roundings add up as random ones do, to some standard
        deviations at most. Sums over the keys that a query sees cost a rounding each. A half a step of float16 near
        zero bounds what small weights lose there. All of it is small beside one key too many or too few.
        """
        *arrays, problem = operands  # which may be a part of this one
        Q, K, V = (as_heads(np.asarray(X), problem.layout) for X in arrays[:3])
        of_weights = format.rounding if format.is_bits or format.itemsize == 2 else 8 * EPS
        lost = 2.0**-25 if format.dtype == np.float16 else 0.0
        O, lse = within(problem, Q, K, V, format.decode, format.result, of_weights, lost)
        O = ladder.Expected(*(in_layout(X, problem.layout) for X in (O.value, O.bound)))
        return {ARRAYS.index("O"): O, ARRAYS.index("lse"): lse}

    def compared_outputs(self, expected: dict[int, ladder.Expected]) -> dict[int, ladder.Expected]:
        """O alone: beside log-sum-exp its errors would be small."""
        return {place: one for place, one in expected.items() if ARRAYS[place] == "O"}

    def part(self, operands: tuple) -> tuple:
        """Of a large problem some of the queries, the first and the last among them, of two of the batch."""
        if self.queries <= LARGE:
            return operands
        *arrays, _ = operands
        rows = np.unique(np.linspace(0, self.queries - 1, SOME).astype(int))
        batches = sorted({0, self.batch - 1})
        Q, K, V, O, lse = (np.asarray(X)[batches] for X in arrays)
        axis = self.layout.index("S")
        problem = _Part(**asdict(replace(self, batch=len(batches))), taken=tuple(map(int, rows)))
        return Q.take(rows, axis), K, V, O.take(rows, axis), lse[..., rows], problem


@dataclass(frozen=True)
class _Part(AttentionForward):
    """Some of the queries of an attention."""

    taken: tuple[int, ...] = ()

    @property
    def rows(self):
        return np.array(self.taken)


def within(
    problem: Attention,
    Q,
    K,
    V,
    decode,
    result: Format,
    of_weights: float,
    lost: float = 0.0,
    of_scores: float = 0.0,
    of_sums: float = 0.0,
    divides_by_rounded: bool = False,
) -> tuple[ladder.Expected, ladder.Expected]:
    """O and log-sum-exp in float64, and how far a step may be off them; see `AttentionForward.expected`.

    Parameters
    ----------
    Q, K, V
        With the axes batch, heads, positions and head_dim, of which `decode` makes float64, a head at a time.
    result
        What O is rounded to.
    of_weights
        How far rounding moves a weight, as a share of it; and `lost`, of the greatest weight of its row.
    of_scores
        What a score may lose with each product, as a share of the sum of their sizes, beyond roundings to float32.
    of_sums
        What a sum over keys may lose beyond that, as a share of it.
    divides_by_rounded
        Whether the total of a row is such a sum, of its rounded weights.
    """
    value, bound = (np.zeros(Q.shape) for _ in range(2))
    lse, off_lse = np.full(Q.shape[:3], -np.inf), np.zeros(Q.shape[:3])
    allowed = problem.allowed()
    some = allowed.any(1)
    count = allowed.sum(1)[some, None]
    for b, h in np.ndindex(Q.shape[:2]):
        q = decode(Q[b, h])[some]
        k, v = (decode(X[b, h // problem.group]) for X in (K, V))
        scores = problem.factor * (q @ k.T)
        off = (EPS + of_scores) * problem.head_dim * abs(problem.factor) * (np.abs(q) @ np.abs(k).T)
        off += 4 * EPS * np.abs(scores)
        scores[~allowed[some]] = -np.inf
        most = scores.max(1, keepdims=True)
        weights = np.exp(scores - most)
        total = weights.sum(1, keepdims=True)
        weights /= total
        o, size = weights @ v, weights @ np.abs(v)
        off *= weights  # what errors of scores make of the weights
        of_roundings = np.minimum(size, SPREAD * np.sqrt(weights**2 @ v**2) + np.abs(o))
        value[b, h, some] = o
        bound[b, h, some] = (
            2 * (off @ np.abs(v) + off.sum(1, keepdims=True) * np.abs(o))
            + (of_weights + of_sums) * of_roundings
            + (count + 16) * EPS * size
            + lost / total * (allowed[some] @ np.abs(v))
            + result.rounding * np.abs(o)
        )
        lse[b, h, some] = (most + np.log(total))[:, 0]
        off_lse[b, h, some] = 2 * off.sum(1) + (count[:, 0] + 16) * EPS + 4 * EPS * np.abs(lse[b, h, some])
        if divides_by_rounded:
            of_total = of_sums + count * lost / total
            bound[b, h, some] += of_total * np.abs(o)
            off_lse[b, h, some] += of_total[:, 0] - np.log1p(-of_weights)
    bound[..., some, :] += result.rounding * 2.0**-14 if result.dtype == np.float16 else 0.0
    return ladder.Expected(value, bound), ladder.Expected(lse, off_lse)


def as_heads(X: Shaped[np.ndarray, "..."], layout: Layout):
    """Q, K, V or O with the axes batch, heads, positions and head_dim, without a copy."""
    if layout == "BHSD":
        return X
    batch, positions, heads, width = X.shape
    strides = X.strides
    return as_strided(X, (batch, heads, positions, width), (strides[0], strides[2], strides[1], strides[3]))


def in_layout(X: Float64[np.ndarray, "B H S D"], layout: Layout):
    """The opposite of `as_heads`."""
    return X if layout == "BHSD" else X.swapaxes(1, 2)

"""What every step of attention backward computes: the gradients of Q, K and V, where that of O is given."""

from dataclasses import asdict, replace

import numpy as np
from jaxtyping import Float64

from labkit import ladder
from labkit.attention.problem import EPS, LARGE, SPREAD, Attention, AttentionForward, as_heads, in_layout
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

AT_ONCE = 512  # queries of which the scores are held, in float64
MOST_EXPONENT = 700.0  # that has a power in float64
Pair = tuple[Float64[np.ndarray, "rows columns"], Float64[np.ndarray, "rows columns"]]


class AttentionBackward(Attention):
    """dQ, dK and dV from dO, the gradient of O = P V, where P = softmax(S) and S = scale Q K^T, for each head.

    dV = P^T dO, and dS = P * (dO V^T - delta), where delta is the sum of a row of O * dO; dQ = scale dS K and
    dK = scale dS^T Q. Heads of Q that share one of K add up what they give it. P is exp(S - lse), so that
    log-sum-exp is all that is kept of the scores. Queries that see no key give nothing, and get 0.
    (Dao and others, FlashAttention, 2022, appendix B.4.)

    Log-sum-exp is a float32, and a weight that is taken from it is off by up to its 2**-23rd part times |lse|: steps of
    16 bits take scores of some thousands, where that is below a rounding of the weight. The step in float32 takes any
    scores: it finds the sum of each row anew, so that log-sum-exp is not read, and the weights add up to 1.
    """

    ARRAYS = "Q", "K", "V", "O", "lse", "dO", "dQ", "dK", "dV"

    @property
    def flops(self) -> int:
        """Of each score that counts: a product and a sum for each of head_dim numbers, in five products."""
        return 10 * self.batch * self.heads * self.pairs * self.head_dim

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random Q, K, V and dO, what attention makes of them; gradients of NaN, and the problem.

        In a large problem the heads of all of the batch that share a head of K are as the first ones.
        """
        of = replace(self, batch=1, heads=self.heads_per_kv, kv_heads=1) if self._is_large else self
        forward = AttentionForward(**asdict(of))
        given = forward.operands(format, seed)
        O, lse = (np.ascontiguousarray(one.value) for one in forward.expected(given, format).values())
        rng = np.random.default_rng([seed, self.queries, self.head_dim, 1])
        dO = normal(rng, of.shapes["dO"], format)
        found = *given[:3], format.result.encode(O), lse.astype(np.float32), dO
        shapes = self.shapes
        found = (np.tile(X, np.floor_divide(shapes[name], X.shape)) for name, X in zip(self.ARRAYS, found))
        blank = (
            np.full(shapes[name], format.result.encode(np.nan), format.result.dtype) for name in ("dQ", "dK", "dV")
        )
        return *found, *blank, self

    @property
    def _is_large(self) -> bool:
        return self.queries * self.keys * self.batch * self.heads > LARGE**2

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The gradients in float64 of exact weights, and how far a step may be off them.

        Weights may be off by what their scores are, beside the other scores of a row in float32, beside log-sum-exp
        otherwise; and dS by that, by its own products and by the rounding of O. Both may be rounded to the format
        before they are multiplied, independently of one another: these roundings add up as random ones do, to some
        standard deviations at most. A sum costs a rounding a term.
        """
        *arrays, problem = operands  # which may be a part of this one
        Q, K, V, _, _, dO = (as_heads(np.asarray(X), problem.layout) if X.ndim == 4 else X for X in arrays[:6])
        dQ, dK, dV = ([np.zeros(X.shape) for _ in range(2)] for X in (Q, K, V))  # value and bound
        for b, h in np.ndindex(Q.shape[:2]):
            of = b, h // problem.heads_per_kv
            heads = (format.decode(X[b, h]) for X in (Q, dO)), (format.decode(X[of]) for X in (K, V))
            found = _of_head(problem, *heads[0], *heads[1], format)
            for sums, place, more in zip((dQ, dK, dV), ((b, h), of, of), found, strict=True):
                for total, one in zip(sums, more, strict=True):
                    total[place] += one
        results = {}
        for name, (value, bound) in {"dQ": dQ, "dK": dK, "dV": dV}.items():
            bound += format.result.rounding * np.abs(value) + problem.heads_per_kv * EPS * np.abs(value)
            bound += format.result.rounding * 2.0**-14 if format.dtype == np.float16 else 0.0
            places = (in_layout(X, problem.layout) for X in (value, bound))
            results[self.ARRAYS.index(name)] = ladder.Expected(*places)
        return results

    def part(self, operands: tuple) -> tuple:
        """Of a large problem the first head of K, and the heads of Q that share it."""
        if not self._is_large:
            return operands
        *arrays, _ = operands
        few = replace(self, batch=1, heads=self.heads_per_kv, kv_heads=1)
        heads = self.layout.index("H")
        cut = []
        for (name, shape), X in zip(few.shapes.items(), arrays, strict=True):
            axis = 1 if name == "lse" else heads
            cut.append(np.asarray(X)[:1].take(range(shape[axis]), axis))
        return *cut, few


def _of_head(problem, q, dO, k, v, format: Format) -> tuple[Pair, Pair, Pair]:
    """dQ, dK and dV of one head of Q, each with its bound."""
    dQ, dK, dV = (tuple(np.zeros(X.shape) for _ in range(2)) for X in (q, k, v))
    spreads = [np.zeros(X.shape) for X in (k, v)]  # variances of sums of roundings
    allowed, factor = problem.allowed(), problem.factor
    of_operands = format.rounding if format.itemsize == 2 else 0.0
    lost = 2.0**-25 if format.dtype == np.float16 else 2.0**-126  # of a weight near zero
    of_sum = EPS * (8 + 2 * problem.head_dim**0.5)  # what a sum over head_dim is off, of the sum of its sizes
    for first in range(0, problem.queries, AT_ONCE):
        own = slice(first, first + AT_ONCE)
        some = np.flatnonzero(allowed[own].any(1)) + first
        if not len(some):
            continue
        seen, q_, dO_ = allowed[some], q[some], dO[some]
        scores = factor * (q_ @ k.T)
        off = of_sum * abs(factor) * (np.abs(q_) @ np.abs(k).T) + 8 * EPS * np.abs(scores)
        scores[~seen] = -np.inf
        most = scores.max(1, keepdims=True)
        weights = np.exp(scores - most)
        total = weights.sum(1, keepdims=True)
        weights /= total
        lse = most + np.log(total)
        in_mean = (off * weights).sum(1, keepdims=True)
        if format.itemsize == 2:  # weights are told by log-sum-exp alone
            off = off + in_mean + 4 * EPS * np.abs(lse)
        else:  # they add up to 1: a weight is off by how much further its score is off than others
            off = off * (1 - weights) + in_mean - off * weights
        off += EPS * (8 + 4 * seen.sum(1, keepdims=True))
        off_weights = np.minimum(weights * np.expm1(np.minimum(2 * off, MOST_EXPONENT)), 1)
        of_values = dO_ @ v.T
        size_of_values = np.abs(dO_) @ np.abs(v).T
        O = weights @ v
        delta = (O * dO_).sum(1, keepdims=True)
        size_of_delta = (np.abs(O) * np.abs(dO_)).sum(1, keepdims=True)
        off_delta = (format.result.rounding + 2 * of_sum) * size_of_delta + off_weights.sum(1, keepdims=True) * EPS
        apart = of_values - delta
        dS = weights * apart
        off_dS = off_weights * np.abs(apart) + weights * (of_sum * size_of_values + off_delta + 8 * EPS * np.abs(apart))

        dV[0][:] += weights.T @ dO_
        dV[1][:] += (off_weights + EPS * problem.queries**0.5 * weights + lost * seen).T @ np.abs(dO_)
        spreads[1] += of_operands**2 * (weights**2).T @ dO_**2
        dK[0][:] += factor * (dS.T @ q_)
        dK[1][:] += abs(factor) * ((off_dS + EPS * problem.queries**0.5 * np.abs(dS) + lost * seen).T @ np.abs(q_))
        spreads[0] += (of_operands * factor) ** 2 * (dS**2).T @ q_**2
        dQ[0][some] = factor * (dS @ k)
        dQ[1][some] = abs(factor) * ((off_dS + EPS * problem.keys**0.5 * np.abs(dS) + lost * seen) @ np.abs(k))
        dQ[1][some] += SPREAD * of_operands * abs(factor) * np.sqrt(dS**2 @ k**2)
    for found, spread in zip((dK, dV), spreads):
        found[1][:] += SPREAD * np.sqrt(spread)
    return dQ, dK, dV

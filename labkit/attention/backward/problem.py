"""The problem of attention backward: the gradients of Q, K and V, given that of O."""

from dataclasses import asdict, replace

import numpy as np
from jaxtyping import Float64

from labkit import ladder
from labkit.attention.problem import EPS, LARGE, SPREAD, Attention, AttentionForward, as_bhsd, from_bhsd
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

CHUNK = 512  # queries whose scores are kept at a time, in float64
MAX_EXPONENT = 700.0  # whose exponential is a float64
Pair = tuple[Float64[np.ndarray, "rows columns"], Float64[np.ndarray, "rows columns"]]


class AttentionBackward(Attention):
    """dQ, dK and dV from dO, the gradient of O = P V, where P = softmax(S) and S = scale Q K^T, for each head.

    dV = P^T dO, and dS = P * (dO V^T - delta), where delta is the sum of a row of O * dO; dQ = scale dS K and
    dK = scale dS^T Q. Heads of Q that share a head of K add up their gradients of it. P is exp(S - lse): nothing but
    log-sum-exp is kept of the scores. Queries that see no key contribute nothing, and their gradient is 0.
    (Dao and others, FlashAttention, 2022, appendix B.4.)

    Log-sum-exp is a float32, and P computed from it has a relative error of up to ``2**-23 |lse|``. Kernels of 16 bits
    take scores of some thousands, where that is below a rounding of P. The one in float32 takes any scores: it does
    not read log-sum-exp, but sums each row again, so that P adds up to 1.
    """

    ARRAYS = "Q", "K", "V", "O", "lse", "dO", "dQ", "dK", "dV"

    @property
    def flops(self) -> int:
        """FLOPs of five GEMMs: a multiply and an add per element of head_dim, for each score that is not masked."""
        return 10 * self.batch * self.heads * self.pairs * self.head_dim

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Random Q, K, V and dO, O and log-sum-exp of these; gradients filled with NaN, and the problem.

        In a large problem all groups of heads that share a head of K are copies of the first one.
        """
        unique = self._first_group if self._is_large else self
        forward = AttentionForward(**asdict(unique))
        inputs = forward.operands(format, seed)
        O, lse = (np.ascontiguousarray(one.value) for one in forward.expected(inputs, format).values())
        rng = np.random.default_rng([seed, self.queries, self.head_dim, 1])
        dO = normal(rng, unique.shapes["dO"], format)
        arrays = *inputs[:3], format.result.encode(O), lse.astype(np.float32), dO
        shapes, nan = self.shapes, format.result.encode(np.nan)
        arrays = (np.tile(X, np.floor_divide(shapes[name], X.shape)) for name, X in zip(self.ARRAYS, arrays))
        gradients = (np.full(shapes[name], nan, format.result.dtype) for name in self.ARRAYS[6:])
        return *arrays, *gradients, self

    @property
    def _first_group(self) -> "AttentionBackward":
        """The problem of the first head of K, and the heads of Q that share it."""
        return replace(self, batch=1, heads=self.heads_per_kv, kv_heads=1)

    @property
    def _is_large(self) -> bool:
        return self.queries * self.keys * self.batch * self.heads > LARGE**2

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The gradients in float64 of exact P, and error bounds.

        An error of a score, relative to the other scores of its row in float32, to log-sum-exp otherwise, is a relative
        error of P. dS has that error, those of its own products, and the rounding of O. P and dS may be rounded to the
        format before they are multiplied: such errors add up like random ones, to `SPREAD` standard deviations at most.
        A sum costs a rounding per term.
        """
        *arrays, problem = operands  # maybe a part of this one
        Q, K, V, _, _, dO = (as_bhsd(np.asarray(X), problem.layout) if X.ndim == 4 else X for X in arrays[:6])
        dQ, dK, dV = ([np.zeros(X.shape) for _ in range(2)] for X in (Q, K, V))  # value and bound
        for b, h in np.ndindex(Q.shape[:2]):
            kv = b, h // problem.heads_per_kv
            heads = *(format.decode(X[b, h]) for X in (Q, dO)), *(format.decode(X[kv]) for X in (K, V))
            gradients = _expected_of_head(problem, *heads, format)
            for sums, index, more in zip((dQ, dK, dV), ((b, h), kv, kv), gradients, strict=True):
                for whole, one in zip(sums, more, strict=True):
                    whole[index] += one
        results = {}
        for name, (value, bound) in {"dQ": dQ, "dK": dK, "dV": dV}.items():
            bound += format.result.rounding * np.abs(value) + problem.heads_per_kv * EPS * np.abs(value)
            bound += format.result.rounding * 2.0**-14 if format.dtype == np.float16 else 0.0
            arrays = (from_bhsd(X, problem.layout) for X in (value, bound))
            results[self.ARRAYS.index(name)] = ladder.Expected(*arrays)
        return results

    def checked_part(self, operands: tuple) -> tuple:
        """First head of K of a large problem, and the heads of Q that share it."""
        if not self._is_large:
            return operands
        first, arrays = self._first_group, []
        for (name, shape), X in zip(first.shapes.items(), operands):
            axis = self.axes[name].index("H")
            arrays.append(np.asarray(X)[:1].take(range(shape[axis]), axis))
        return *arrays, first


def _expected_of_head(problem, q, dO, k, v, format: Format) -> tuple[Pair, Pair, Pair]:
    """dQ, dK and dV of one head of Q, each with its error bound."""
    dQ, dK, dV = (tuple(np.zeros(X.shape) for _ in range(2)) for X in (q, k, v))
    variances = [np.zeros(X.shape) for X in (k, v)]  # of sums of roundings
    allowed, factor = problem.allowed(), problem.factor
    rounding = format.rounding if format.itemsize == 2 else 0.0  # of P and dS
    lost = 2.0**-25 if format.dtype == np.float16 else 2.0**-126  # of a weight near zero
    dot_error = EPS * (8 + 2 * problem.head_dim**0.5)  # of a sum over head_dim, relative to the sum of its sizes
    for first in range(0, problem.queries, CHUNK):
        chunk = slice(first, first + CHUNK)
        rows = np.flatnonzero(allowed[chunk].any(1)) + first
        if not len(rows):
            continue
        mask, q_, dO_ = allowed[rows], q[rows], dO[rows]
        S = factor * (q_ @ k.T)
        error = dot_error * abs(factor) * (np.abs(q_) @ np.abs(k).T) + 8 * EPS * np.abs(S)
        S[~mask] = -np.inf
        row_max = S.max(1, keepdims=True)
        P = np.exp(S - row_max)
        row_sum = P.sum(1, keepdims=True)
        P /= row_sum
        lse = row_max + np.log(row_sum)
        mean_error = (error * P).sum(1, keepdims=True)
        if format.itemsize == 2:  # P is exp(S - lse)
            error = error + mean_error + 4 * EPS * np.abs(lse)
        else:  # P adds up to 1: only the difference between the error of a score and those of the others counts
            error = error * (1 - P) + mean_error - error * P
        error += EPS * (8 + 4 * mask.sum(1, keepdims=True))
        P_error = np.minimum(P * np.expm1(np.minimum(2 * error, MAX_EXPONENT)), 1)
        dP = dO_ @ v.T
        dP_size = np.abs(dO_) @ np.abs(v).T
        O = P @ v
        delta = (O * dO_).sum(1, keepdims=True)
        delta_size = (np.abs(O) * np.abs(dO_)).sum(1, keepdims=True)
        delta_error = (format.result.rounding + 2 * dot_error) * delta_size + P_error.sum(1, keepdims=True) * EPS
        difference = dP - delta
        dS, size = P * difference, np.abs(difference)
        dS_error = P_error * size + P * (dot_error * dP_size + delta_error + 8 * EPS * size)

        dV[0][:] += P.T @ dO_
        dV[1][:] += (P_error + EPS * problem.queries**0.5 * P + lost * mask).T @ np.abs(dO_)
        variances[1] += rounding**2 * (P**2).T @ dO_**2
        dK[0][:] += factor * (dS.T @ q_)
        dK[1][:] += abs(factor) * ((dS_error + EPS * problem.queries**0.5 * np.abs(dS) + lost * mask).T @ np.abs(q_))
        variances[0] += (rounding * factor) ** 2 * (dS**2).T @ q_**2
        dQ[0][rows] = factor * (dS @ k)
        dQ[1][rows] = abs(factor) * ((dS_error + EPS * problem.keys**0.5 * np.abs(dS) + lost * mask) @ np.abs(k))
        dQ[1][rows] += SPREAD * rounding * abs(factor) * np.sqrt(dS**2 @ k**2)
    for gradient, variance in zip((dK, dV), variances):
        gradient[1][:] += SPREAD * np.sqrt(variance)
    return dQ, dK, dV

"""Problems of the BLAS kernels: float64 oracles, error bounds and checks of arguments.

A bound is n * eps * (the same sum over absolute values), with n the additions of the longest chain, in any grouping
(Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2). Many short chains have smaller
errors than one long chain: a parallel sum stays far below the bound.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from jaxtyping import Float, Float32, Float64

from labkit import ladder
from labkit.arrays.operands import check_array
from labkit.formats import FP32, Format

EPS = np.finfo(np.float32).eps


@dataclass(frozen=True)
class VectorProblem(ladder.Problem):
    """Operation on vectors of n elements, with `passes` reads and writes of a vector and `flops_each` per element."""

    n: int
    passes = flops_each = 0

    @property
    def flops(self) -> int:
        return self.flops_each * self.n

    def min_bytes(self, format: Format = FP32) -> int:
        return self.passes * self.n * format.itemsize

    def _random_vectors(self, count, seed):
        rng = np.random.default_rng([seed, self.n])
        return [rng.standard_normal(self.n, np.float32) for _ in range(count)]


class Copy(VectorProblem):
    """y = x."""

    passes = 2

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        return *self._random_vectors(1, seed), _unwritten(self.n)

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        return {1: ladder.Expected(operands[0].astype(np.float64), np.zeros(self.n))}  # operand 1 is y


class Axpy(VectorProblem):
    """y = alpha * x + y."""

    passes, flops_each = 3, 2

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        return 1e-3, *self._random_vectors(2, seed)  # a small alpha: a bench adds to the same y repeatedly

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        alpha, x, y = operands
        product = np.float64(alpha) * x
        return {2: ladder.Expected(product + y, 2 * EPS * (np.abs(product) + np.abs(y)))}  # operand 2 is y


class Dot(VectorProblem):
    """out[0] = sum of x[i] * y[i]."""

    passes, flops_each = 2, 2

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        return *self._random_vectors(2, seed), _unwritten(1)

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        x, y, _ = operands
        return {2: ladder.Expected(np.array([dot_oracle(x, y)]), np.array([dot_bound(x, y)]))}  # operand 2 is out


class Nrm2(VectorProblem):
    """out[0] = Euclidean norm of x."""

    passes, flops_each = 1, 2

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        return *self._random_vectors(1, seed), _unwritten(1)

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        norm = np.linalg.norm(operands[0].astype(np.float64), keepdims=True)
        return {1: ladder.Expected(norm, self.n * EPS * norm)}  # operand 1 is out


@dataclass(frozen=True)
class Gemv(ladder.Problem):
    """y = alpha * A @ x + beta * y, for A of M x N."""

    M: int
    N: int

    @property
    def flops(self) -> int:
        return 2 * self.M * self.N

    def min_bytes(self, format: Format = FP32) -> int:
        return format.itemsize * (self.M * self.N + self.M + self.N)

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        rng = np.random.default_rng([seed, self.M, self.N])
        A = rng.standard_normal((self.M, self.N), np.float32)
        rows, columns = self._op(A).shape
        return 1.0, A, rng.standard_normal(columns, np.float32), 0.0, _unwritten(rows)

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        alpha, A, x, beta, y = operands
        arguments = alpha, self._op(A), x, beta, y
        return {4: ladder.Expected(gemv_oracle(*arguments), gemv_bound(*arguments))}  # operand 4 is y

    def _op(self, A):  # A or its transpose, as the operation uses it
        return A


class GemvTransposed(Gemv):
    """y = alpha * A.T @ x + beta * y, for A of M x N."""

    def _op(self, A):
        return A.T


def _unwritten(n):
    return np.full(n, np.nan, np.float32)


def dot_oracle(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """Return the sum of x[i] * y[i] in float64."""
    return float(x.astype(np.float64) @ y.astype(np.float64))


def dot_bound(x: Float32[np.ndarray, " n"], y: Float32[np.ndarray, " n"]) -> float:
    """Return the error bound of a dot product in float32."""
    return float(x.size * EPS * dot_oracle(np.abs(x), np.abs(y)))


def gemv_oracle(alpha, A, x, beta, y) -> Float64[np.ndarray, " M"]:
    """Return alpha * A @ x + beta * y in float64; where beta is 0, y is ignored."""
    product = alpha * (A.astype(np.float64) @ x.astype(np.float64))
    return product + beta * y.astype(np.float64) if beta else product


def gemv_bound(alpha, A, x, beta, y) -> Float64[np.ndarray, " M"]:
    """Return the error bound per element of a gemv in float32."""
    return (x.size + 2) * EPS * gemv_oracle(abs(alpha), np.abs(A), np.abs(x), abs(beta), np.abs(y))


def check_vectors(**vectors) -> int:
    """Return the length of vectors; raise TypeError or ValueError unless all are float32 vectors of one length."""
    for name, x in vectors.items():
        _check(name, x, 1)
    lengths = {name: x.shape[0] for name, x in vectors.items()}
    if len({*lengths.values()}) > 1:
        listed = " and ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"{listed} elements: make them equally long")
    return next(iter(lengths.values()))


def check_gemv(A, x, y, transposed: bool = False) -> tuple[int, int]:
    """Return the sizes M, N of A in y = A @ x or A.T @ x; raise TypeError or ValueError for arrays that do not fit."""
    _check("A", A, 2)
    _check("x", x, 1)
    _check("y", y, 1)
    M, N = A.shape
    y_size, x_size = (N, M) if transposed else (M, N)
    if (y.shape[0], x.shape[0]) != (y_size, x_size):
        sizes = f"A is {M} x {N}, x has {x.shape[0]} elements and y {y.shape[0]}"
        raise ValueError(f"{sizes}: x needs {x_size}, y needs {y_size}")
    return M, N


def as_float32_factor(name: str, value) -> np.float32:
    """Convert a factor such as alpha to float32; raise TypeError if it is not a real number."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} is a {type(value).__name__}, and a factor is a real number")
    try:
        with np.errstate(over="ignore"):  # an infinity, as in float32 arithmetic
            return np.float32(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for any floating-point number") from None


def _check(name, x, dimensions):
    check_array(name, x)
    if x.dtype != np.float32:
        raise TypeError(f"{name} holds {x.dtype}, and this kernel takes float32: use {name}.astype(np.float32)")
    if len(x.shape) != dimensions:
        raise ValueError(f"{name} has {len(x.shape)} dimensions and needs {dimensions}: reshape it")
    if 0 in x.shape:
        raise ValueError(f"{name} is empty: every side needs at least 1")

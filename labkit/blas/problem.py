"""What the operations compute, in float64; how far a result may be off; and what their arguments must be.

A bound is n * eps * (the same sum over absolute values), with n the additions of the longest chain, however they are
grouped (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2). Many short chains err less
than one long one, so that a sum in parallel stays far below.
"""

from numbers import Real

import numpy as np
from jaxtyping import Float, Float32, Float64

EPS = np.finfo(np.float32).eps


def dot_oracle(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """The sum of x[i] * y[i] in float64."""
    return float(x.astype(np.float64) @ y.astype(np.float64))


def dot_bound(x: Float32[np.ndarray, " n"], y: Float32[np.ndarray, " n"]) -> float:
    """How far a dot product in float32 may be off the oracle."""
    return float(x.size * EPS * dot_oracle(np.abs(x), np.abs(y)))


def gemv_oracle(alpha, A, x, beta, y) -> Float64[np.ndarray, " M"]:
    """alpha * A @ x + beta * y in float64; where beta is 0, y does not matter."""
    product = alpha * (A.astype(np.float64) @ x.astype(np.float64))
    return product + beta * y.astype(np.float64) if beta else product


def gemv_bound(alpha, A, x, beta, y) -> Float64[np.ndarray, " M"]:
    """How far each element may be off the oracle."""
    return (x.size + 2) * EPS * gemv_oracle(abs(alpha), np.abs(A), np.abs(x), abs(beta), np.abs(y))


def check_vectors(**vectors) -> int:
    """The length of vectors that must be equally long.

    Raises
    ------
    TypeError
        One of them is no array, or does not hold float32.
    ValueError
        One of them is no vector, or is empty, or longer than another.
    """
    for name, x in vectors.items():
        _check(name, x, 1)
    lengths = {name: x.shape[0] for name, x in vectors.items()}
    if len({*lengths.values()}) > 1:
        told = " and ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"{told} elements: make them equally long")
    return next(iter(lengths.values()))


def check_gemv(A, x, y, transposed: bool = False) -> tuple[int, int]:
    """The sizes M, N of A in y = A @ x or A.T @ x; raises as `check_vectors` does where the three do not fit."""
    _check("A", A, 2)
    _check("x", x, 1)
    _check("y", y, 1)
    M, N = A.shape
    of_y, of_x = (N, M) if transposed else (M, N)
    if (y.shape[0], x.shape[0]) != (of_y, of_x):
        had = f"A is {M} x {N}, x has {x.shape[0]} elements and y {y.shape[0]}"
        raise ValueError(f"{had}: x needs {of_x}, y needs {of_y}")
    return M, N


def check_factor(name: str, value) -> np.float32:
    """A factor such as alpha; a TypeError where it is no real number."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} is a {type(value).__name__}, and a factor is a real number")
    with np.errstate(over="ignore"):  # an infinity, as in float32 arithmetic
        return np.float32(value)


def _check(name, x, dimensions):
    if not all(hasattr(x, field) for field in ("shape", "dtype", "strides")):
        raise TypeError(f"{name} is a {type(x).__name__}, not an array: make it one with np.array or cuda.to_device")
    if x.dtype != np.float32:
        raise TypeError(f"{name} holds {x.dtype}, and this kernel takes float32: use {name}.astype(np.float32)")
    if len(x.shape) != dimensions:
        raise ValueError(f"{name} has {len(x.shape)} dimensions and needs {dimensions}: reshape it")
    if 0 in x.shape:
        raise ValueError(f"{name} is empty: every side needs at least 1")

"""The problem that every step of a GEMM ladder solves: C = A @ B."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

from labkit.layout import is_in_c_order


@dataclass(frozen=True)
class Problem:
    """C (M x N) = A (M x K) @ B (K x N)."""

    M: int
    N: int
    K: int

    def __str__(self):
        return f"{self.M}x{self.N}x{self.K}"

    @property
    def flops(self) -> int:
        """A multiplication and an addition for each of the M N K products."""
        return 2 * self.M * self.N * self.K

    def least_bytes(self, itemsize: int = 4) -> int:
        """What must cross device memory at least: A and B read once, C written once."""
        return itemsize * (self.M * self.K + self.K * self.N + self.M * self.N)

    def operands(
        self, seed: int = 0, dtype=np.float32
    ) -> tuple[Float[np.ndarray, "M K"], Float[np.ndarray, "K N"], Float[np.ndarray, "M N"]]:
        """Random normal A and B, and a C of NaN, in which every element that stays unwritten shows."""
        rng = np.random.default_rng([seed, self.M, self.N, self.K])
        A = rng.standard_normal((self.M, self.K)).astype(dtype)
        B = rng.standard_normal((self.K, self.N)).astype(dtype)
        return A, B, np.full((self.M, self.N), np.nan, dtype)


def oracle(A: Float[np.ndarray, "M K"], B: Float[np.ndarray, "K N"]) -> Float64[np.ndarray, "M N"]:
    """A @ B in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def error_bound(A: Float[np.ndarray, "M K"], B: Float[np.ndarray, "K N"]) -> Float64[np.ndarray, "M N"]:
    """How far each element may be off the oracle: K eps (|A| @ |B|), with the eps of A's type.

    That is twice what summing K rounded products one after the other can cost, in any order.
    """
    K = A.shape[1]
    return K * np.finfo(A.dtype).eps * oracle(np.abs(A), np.abs(B))


def check_operands(A, B, C, dtype=np.float32) -> tuple[int, int, int]:
    """The sizes M, N, K of C = A @ B; raises where the three arrays do not fit together.

    Raises
    ------
    TypeError
        One of them is no array, or holds another type.
    ValueError
        One of them is no matrix, or is empty, or their shapes do not fit.
    """
    check_matrices(A, B, C)
    for name, X in (("A", A), ("B", B), ("C", C)):
        if X.dtype != dtype:
            wanted = np.dtype(dtype)
            raise TypeError(
                f"{name} holds {X.dtype}, but this step multiplies {wanted}: use {name}.astype(np.{wanted})"
            )
    (M, K), N = A.shape, B.shape[1]
    if B.shape[0] != K:
        raise ValueError(f"A is {_shape(A)} and B is {_shape(B)}: A needs as many columns as B has rows")
    if tuple(C.shape) != (M, N):
        raise ValueError(f"C is {_shape(C)}, but A @ B is {M} x {N}: make C of that shape")
    return M, N, K


def check_matrices(A, B, C):
    """Raises TypeError or ValueError where one of them is no matrix, or an empty one."""
    for name, X in (("A", A), ("B", B), ("C", C)):
        if not all(hasattr(X, field) for field in ("shape", "dtype", "strides")):
            raise TypeError(
                f"{name} is a {type(X).__name__}, not an array: make it one with np.array or cuda.to_device"
            )
        if len(X.shape) != 2:
            raise ValueError(f"{name} has {len(X.shape)} dimensions, but a matrix has 2: reshape it")
        if 0 in X.shape:
            raise ValueError(f"{name} is empty, of shape {_shape(X)}: every side needs at least 1")


def check_c_order(A, B, C):
    """Raises where a row of a matrix has gaps, or is a column in memory: vector instructions take neighbours.

    Raises
    ------
    ValueError
        One of them is transposed, or a part of another array.
    """
    for name, X in (("A", A), ("B", B), ("C", C)):
        if not is_in_c_order(X.shape, X.strides, X.dtype.itemsize):
            raise ValueError(
                f"{name} is not in C order, and this step loads four neighbours at once: "
                f"pass np.ascontiguousarray({name}), which is a copy"
            )


def _shape(X):
    return " x ".join(map(str, X.shape))

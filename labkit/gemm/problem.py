"""What every step of a GEMM ladder computes: C = A @ B, or A @ B.T."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Shaped

from labkit import ladder
from labkit.arrays.addresses import has_c_order
from labkit.arrays.operands import check_array, shape_text
from labkit.formats import FP32, Format
from labkit.ladder.inputs import normal

LARGE = 1024  # rows or columns, of which SOME tell the error
SOME = 64


@dataclass(frozen=True)
class Problem(ladder.Problem):
    """C (M x N) = A (M x K) @ B (K x N)."""

    M: int
    N: int
    K: int

    @property
    def flops(self) -> int:
        """A multiplication and an addition for each of the M N K products."""
        return 2 * self.M * self.N * self.K

    def min_bytes(self, format: Format = FP32) -> int:
        """What must cross device memory at least: A and B read once, C written once."""
        read = format.itemsize * (self.M * self.K + self.K * self.N)
        return read + format.result.itemsize * self.M * self.N

    def operands(
        self, format: Format = FP32, seed: int = 0
    ) -> tuple[Shaped[np.ndarray, "M K"], Shaped[np.ndarray, "K N"], Shaped[np.ndarray, "M N"]]:
        """Random normal A and B, and a C of NaN, in which every element that stays unwritten shows."""
        rng = np.random.default_rng([seed, self.M, self.N, self.K])
        A, B = (normal(rng, shape, format) for shape in self._shapes())
        return A, B, np.full((self.M, self.N), format.result.encode(np.nan), format.result.dtype)

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The product in float64, and how far each element may be off it.

        That is K eps (|A| @ |B|) for sums in float32, and what rounding C costs; tensor cores also round float32, or
        cut it off, to TF32, and cut off sums of e4m3 products (`labkit.ptx.warpgroups.sums_of_e4m3`).
        """
        left, right = self._factors(*(format.decode(X) for X in operands[:2]))
        value, size = left @ right, np.abs(left) @ np.abs(right)
        of_each = self.K * (np.finfo(np.float32).eps + format.sum_loss) + 2 * format.operand_loss
        return {2: ladder.Expected(value, of_each * size + format.result.rounding * np.abs(value))}

    def part(self, operands: tuple) -> tuple:
        """Some rows and columns of a large product, which do not take long to check."""
        A, B, C = operands
        rows, cols = some(self.M), some(self.N)
        return A[rows], self._columns(B, cols), C[rows][:, cols]

    def cpp_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        """What a CUDA C++ twin takes behind its arrays."""
        return self.M, self.N, self.K

    def _shapes(self):
        return (self.M, self.K), (self.K, self.N)

    def _factors(self, A, B):
        """The matrices whose product C is."""
        return A, B

    def _columns(self, B, cols):
        """What of B makes these columns of C."""
        return B[:, cols]


@dataclass(frozen=True)
class LayerProblem(Problem):
    """C (M x N) = A (M x K) @ B.T (K x N): B holds a row for each column of C, as a layer's weights do."""

    def cpp_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        return self.M, self.N, self.K * format.itemsize // 4  # of 32 bits

    def _shapes(self):
        return (self.M, self.K), (self.N, self.K)

    def _factors(self, A, B):
        return A, B.T

    def _columns(self, B, cols):
        return B[cols]


def some(count: int):
    """Which rows or columns of so many tell the error: an index, of some that are spread evenly, or of all."""
    return slice(None) if count <= LARGE else np.unique(np.linspace(0, count - 1, SOME).astype(int))


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
        raise ValueError(
            f"A is {shape_text(A.shape)} and B is {shape_text(B.shape)}: A needs as many columns as B has rows"
        )
    if tuple(C.shape) != (M, N):
        raise ValueError(f"C is {shape_text(C.shape)}, but A @ B is {M} x {N}: make C of that shape")
    return M, N, K


def check_matrices(A, B, C):
    """Raises TypeError or ValueError where one of them is no matrix, or an empty one."""
    for name, X in (("A", A), ("B", B), ("C", C)):
        check_array(name, X)
        if len(X.shape) != 2:
            raise ValueError(f"{name} has {len(X.shape)} dimensions, but a matrix has 2: reshape it")
        if 0 in X.shape:
            raise ValueError(f"{name} is empty, of shape {shape_text(X.shape)}: every side needs at least 1")


def check_c_order(A, B, C):
    """Raises where a row of a matrix has gaps, or is a column in memory: vector instructions take neighbours.

    Raises
    ------
    ValueError
        One of them is transposed, or a part of another array.
    """
    for name, X in (("A", A), ("B", B), ("C", C)):
        if not has_c_order(X):
            raise ValueError(
                f"{name} is not in C order, and this step loads four neighbours at once: "
                f"pass np.ascontiguousarray({name}), which is a copy"
            )

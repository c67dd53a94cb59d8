"""`labkit bench gemm_calls`: many forms of gemm.multiply compared with cuBLAS, each with its error against float64.

Operands that are transposed in memory, alpha and beta, parts of wider matrices, sides that fit no tile, few rows, and
batches. The kernel is the one that `gemm.multiply` takes without having been tuned.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import track

from labkit import gemm, ladder
from labkit.bench import _harness, _record, _torch
from labkit.formats import BF16, FP32, TF32, Format
from labkit.gemm.problem import sample_indices
from labkit.ladder.inputs import normal

DTYPES = ("bfloat16", "tf32", "float32")


@dataclass(frozen=True)
class Call(ladder.Problem):
    """One form of C = alpha * op(A) @ op(B) + beta * C, with its name in the table."""

    M: int
    N: int
    K: int
    batches: int
    name: str
    transpose_a: bool = False
    transpose_b: bool = False
    alpha: float = 1.0
    beta: float = 0.0
    is_submatrix: bool = False  # each matrix is the left half of a wider one

    def __str__(self):
        return f"{self.M}x{self.N}x{self.K}" + (f" times {self.batches}" if self.batches > 1 else "")

    @property
    def fields(self) -> dict:
        return {"call": self.name, "M": self.M, "N": self.N, "K": self.K, "batches": self.batches}

    @property
    def options(self) -> dict:
        return {name: getattr(self, name) for name in ("alpha", "beta", "transpose_a", "transpose_b")}

    @property
    def flops(self) -> int:
        return 2 * self.M * self.N * self.K * self.batches

    def min_bytes(self, format: Format = FP32) -> int:
        read = format.itemsize * (self.M * self.K + self.K * self.N)
        return self.batches * (read + format.result.itemsize * self.M * self.N * (1 + (self.beta != 0)))

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return arrays that hold the matrices; C is NaN if beta is 0."""
        rng = np.random.default_rng(seed)
        sides = (self.M, self.K)[:: -1 if self.transpose_a else 1], (self.K, self.N)[:: -1 if self.transpose_b else 1]
        batch = (self.batches,) if self.batches > 1 else ()
        shapes = ((*batch, rows, cols * (1 + self.is_submatrix)) for rows, cols in (*sides, (self.M, self.N)))
        A, B, C = (normal(rng, shape, format) for shape in shapes)
        if self.beta == 0:
            self.submatrices(A, B, C)[2][...] = format.result.encode(np.nan)
        return A, B, C

    def submatrices(self, *arrays) -> list:
        """Return the matrices in these arrays."""
        if not self.is_submatrix:
            return list(arrays)
        return [X[(slice(None),) * (len(X.shape) - 1) + (slice(X.shape[-1] // 2),)] for X in arrays]

    def checked_part(self, operands: tuple) -> tuple:
        A, B, C = self.submatrices(*operands)
        rows = sample_indices(self.M)
        return A[..., rows] if self.transpose_a else A[..., rows, :], B, C[..., rows, :]

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        A, B, C = (format.decode(X) for X in operands)
        left, right = A.swapaxes(-1, -2) if self.transpose_a else A, B.swapaxes(-1, -2) if self.transpose_b else B
        value = self.alpha * (left @ right) + (self.beta * C if self.beta else 0)
        return {2: ladder.Expected(value, np.full_like(value, np.inf))}  # a bench tells errors, and judges none


LARGE = 4096, 4096, 4096, 1  # M, N, K and how many products
CALLS = (
    Call(*LARGE, "A @ B"),
    Call(*LARGE, "A @ B.T", transpose_b=True),
    Call(*LARGE, "A.T @ B", transpose_a=True),
    Call(*LARGE, "A.T @ B.T", transpose_a=True, transpose_b=True),
    Call(*LARGE, "2 A @ B - C / 2", alpha=2.0, beta=-0.5),
    Call(*LARGE, "A @ B of parts", is_submatrix=True),
    Call(4095, 4093, 4091, 1, "A @ B, ragged"),
    Call(3, 4096, 4096, 1, "A @ B, few rows"),
    Call(3, 4096, 4096, 1, "A @ B.T, few rows", transpose_b=True),
    Call(1, 4096, 4096, 1, "A @ B, one row"),
    Call(16, 4096, 4096, 1, "A @ B, 16 rows"),
    Call(64, 64, 65536, 1, "A @ B, deep"),
    Call(1024, 1024, 1024, 16, "A @ B, 16 at once"),
)


def multiply(call, format, *arrays):
    A, B, C = call.submatrices(*arrays)
    plan = gemm.plan(A, B, C=C, format=format, **call.options)
    return lambda stream: plan(stream=stream)


def cublas(call, format, *arrays):
    """Return the call through torch."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = format == TF32
    A, B, C = call.submatrices(*_torch.tensors(format, *arrays))
    factors = A.mT if call.transpose_a else A, B.mT if call.transpose_b else B
    if (call.alpha, call.beta) == (1, 0):
        return _torch.launch_on_stream(partial(torch.matmul, *factors, out=C))
    return _torch.launch_on_stream(partial(torch.addmm, C, *factors, alpha=call.alpha, beta=call.beta, out=C))


CONTENDERS = {"ours": {"multiply": multiply}, "baselines": lambda call, format: {"cuBLAS": cublas}}
TABLE = _harness.Benchmark("gemm_calls", "gemm.multiply", ladders=(), **CONTENDERS)


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    calls = [(call, format) for format in (BF16, TF32, FP32) for call in CALLS]
    measured = (_harness.measure(TABLE, *case) for case in track(calls, "calls", console=Console(stderr=True)))
    rows = [row for rows_of_call in measured for row in rows_of_call]
    _harness.print_comparison(f"{TABLE.title} on {gpu.name}", [{**row, "problem": row["call"]} for row in rows])
    _record.store_if_requested(TABLE.name, rows, gpu.name, record, out)

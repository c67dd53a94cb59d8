"""`labkit bench batch`: one weight matrix times more and more inputs at a time, through cuBLAS.

Each launch has weights and inputs of its own, so many of them that none are left in L2 when their turn comes again.
"""

from functools import partial
from math import ceil

from labkit import gemm, timing
from labkit.bench import _record
from labkit.bench._torch import on_stream

SIDE = 4096
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
DTYPES = ("float16", "float32")
TIMES_L2 = 8  # bytes of all weights together
COLUMNS = {"dtype": "", "problem": "", "time_ms": ".4f", "tflops": ".2f", "gb_s": ".0f", "error": ".0e"}


def main(record=False, out=None) -> None:
    found = _record.require_gpu("times kernels")
    rows = [measure(batch, dtype) for dtype in DTYPES for batch in BATCHES]
    _record.show(f"X @ W.T by cuBLAS, W {SIDE} x {SIDE}, on {found.name}", rows, COLUMNS)
    _record.finish("batch", rows, found.name, record, out)


def measure(batch: int, dtype: str) -> dict:
    """One row: `batch` rows of inputs times the transposed weights."""
    import torch
    from numba import cuda

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(batch)
    kind = getattr(torch, dtype)
    problem = gemm.Problem(batch, SIDE, SIDE)
    sets = ceil(TIMES_L2 * cuda.get_current_device().L2_CACHE_SIZE / (SIDE * SIDE * kind.itemsize))

    def operands():
        X, W = (torch.randn(rows, SIDE, device="cuda").to(kind) for rows in (batch, SIDE))
        return X, W, torch.full((batch, SIDE), float("nan"), dtype=kind, device="cuda")

    of_launches = [operands() for _ in range(sets)]
    torch.cuda.synchronize()
    time_ms = timing.gpu_time_ms([on_stream(partial(torch.mm, X, W.T, out=Y)) for X, W, Y in of_launches])
    X, W, Y = of_launches[0]
    expected = X.double() @ W.double().T
    return {
        "operation": "batch",
        "step": "cuBLAS",
        "problem": str(problem),
        "batch": batch,
        "dtype": dtype,
        "time_ms": time_ms,
        "tflops": problem.flops / time_ms / 1e9,
        "gb_s": problem.least_bytes(kind.itemsize) / time_ms / 1e6,
        "error": float((Y.double() - expected).norm() / expected.norm()),
    }

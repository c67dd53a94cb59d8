"""`labkit bench gemm_calls`: gemm.multiply beside cuBLAS as it may be called, each call with its error in float64.

Operands that are transposed in memory, alpha and beta, parts of wider matrices, sides that fit no tile, few rows, and
batches. The kernel is the one that `gemm.multiply` takes without having been tuned.
"""

from functools import partial
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from labkit import gemm, timing
from labkit.bench import _products, _record
from labkit.bench._torch import on_stream
from labkit.gemm.interface.candidates import Shape

DTYPES = ("bfloat16", "tf32", "float32")
COLUMNS = {
    "dtype": "",
    "call": "",
    "problem": "",
    "time_ms": ".4f",
    "tflops": ".1f",
    "rival_time_ms": ".4f",
    "ratio": ".1%",
    "error": ".1e",
    "rival_error": ".1e",
}


class Call(NamedTuple):
    """A product as one writes it, and what becomes of it."""

    name: str
    shape: Shape
    transpose_a: bool = False
    transpose_b: bool = False
    alpha: float = 1.0
    beta: float = 0.0
    is_part: bool = False  # whether each matrix is the left half of a wider one

    @property
    def options(self) -> dict:
        return {name: getattr(self, name) for name in ("alpha", "beta", "transpose_a", "transpose_b")}


LARGE = Shape(4096, 4096, 4096)
CALLS = (
    Call("A @ B", LARGE),
    Call("A @ B.T", LARGE, transpose_b=True),
    Call("A.T @ B", LARGE, transpose_a=True),
    Call("A.T @ B.T", LARGE, transpose_a=True, transpose_b=True),
    Call("2 A @ B - C / 2", LARGE, alpha=2.0, beta=-0.5),
    Call("A @ B of parts", LARGE, is_part=True),
    Call("A @ B, ragged", Shape(4095, 4093, 4091)),
    Call("A @ B, few rows", Shape(3, 4096, 4096)),
    Call("A @ B.T, few rows", Shape(3, 4096, 4096), transpose_b=True),
    Call("A @ B, one row", Shape(1, 4096, 4096)),
    Call("A @ B, 16 rows", Shape(16, 4096, 4096)),
    Call("A @ B, deep", Shape(64, 64, 65536)),
    Call("A @ B, 16 at once", Shape(1024, 1024, 1024, 16)),
)


def main(record=False, out=None) -> None:
    found = _record.require_gpu("times kernels")
    calls = [(dtype, call) for dtype in DTYPES for call in CALLS]
    rows = [measure(*each) for each in track(calls, "calls", console=Console(stderr=True))]
    _record.show(f"gemm.multiply on {found.name}", rows, COLUMNS)
    _record.finish("gemm_calls", rows, found.name, record, out)


def measure(dtype: str, call: Call) -> dict:
    """The row of a call."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    generator = torch.Generator("cuda").manual_seed(0)
    itemsize = 2 if dtype == "bfloat16" else 4
    count = _products.sets(*call.shape[:3], itemsize * call.shape.batches)
    tensors = [_operands(dtype, call, generator) for _ in range(count)]
    ways = {
        "ours": [_ours(dtype, call, *each) for each in tensors],
        "cuBLAS": [on_stream(partial(_theirs, call, *each)) for each in tensors],
    }
    errors = {who: _error(call, launches[0], *tensors[0]) for who, launches in ways.items()}
    times_ms = timing.gpu_times_ms(ways)
    M, N, K, batches = call.shape
    return {
        "operation": "gemm_calls",
        "step": "multiply",
        "call": call.name,
        "problem": str(call.shape),
        "dtype": dtype,
        "time_ms": times_ms["ours"],
        "tflops": 2 * M * N * K * batches / times_ms["ours"] / 1e9,
        "error": errors["ours"],
        "rival": "cuBLAS",
        "rival_time_ms": times_ms["cuBLAS"],
        "rival_error": errors["cuBLAS"],
        "ratio": times_ms["cuBLAS"] / times_ms["ours"],
    }


def _operands(dtype, call, generator):
    """Random normal A, B and C as the call takes them."""
    import torch

    M, N, K, batches = call.shape
    batch = (batches,) if batches > 1 else ()
    sides = (K, M) if call.transpose_a else (M, K), (N, K) if call.transpose_b else (K, N), (M, N)
    kind = torch.bfloat16 if dtype == "bfloat16" else torch.float32

    def random(rows, cols):
        wide = torch.randn(*batch, rows, cols * (1 + call.is_part), device="cuda", generator=generator)
        return wide.to(kind)[..., :cols]

    return [random(*side) for side in sides]


def _ours(dtype, call, A, B, C):
    plan = gemm.plan(A, B, C, format=dtype, **call.options)
    return lambda stream: plan(stream=stream)


def _factors(call, A, B):
    return A.mT if call.transpose_a else A, B.mT if call.transpose_b else B


def _theirs(call, A, B, C):
    import torch

    if (call.alpha, call.beta) == (1, 0):
        torch.matmul(*_factors(call, A, B), out=C)
    else:
        torch.addmm(C, *_factors(call, A, B), alpha=call.alpha, beta=call.beta, out=C)


def _error(call, launch, A, B, C) -> float:
    """The relative error against float64."""
    import torch
    from numba import cuda

    left, right = _factors(call, A, B)
    expected = call.alpha * (left.double() @ right.double()) + call.beta * C.double()
    torch.cuda.synchronize()
    stream = cuda.stream()
    launch(stream)
    stream.synchronize()
    return (torch.linalg.norm(C.double() - expected) / torch.linalg.norm(expected)).item()

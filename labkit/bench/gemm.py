"""`labkit bench gemm`: each fp32 step compared with its CUDA C++ version and cuBLAS."""

from functools import partial

from labkit import gemm
from labkit.bench import _harness, _torch


def cublas(problem, format, A, B, C):
    """C = A @ B in full float32, through torch."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    A, B, C = _torch.tensors(format, A, B, C)
    return _torch.launch_on_stream(partial(torch.mm, A, B, out=C))


def baselines(problem, format):
    return {"cuBLAS fp32": cublas} if _torch.is_installed() else {}


TABLE = _harness.Benchmark("gemm", "C = A @ B in float32", (gemm.ladder("fp32"),), baselines=baselines)
main = partial(_harness.run, TABLE)

"""`labkit bench gemm_tensor`: the tensor-core steps compared with cuBLAS and CUDA C++."""

from functools import partial

from labkit import gemm
from labkit.bench import _harness, _torch
from labkit.formats import BF16, E4M3, FP16, TF32

NAMES = {BF16: "cuBLAS", FP16: "cuBLAS", TF32: "cuBLAS TF32", E4M3: "torch scaled_mm"}  # of what torch multiplies


def multiply(problem, format, A, B, C):
    """C = A @ B.T by `gemm.multiply`."""
    plan = gemm.plan(A, B, C=C, transpose_b=True, format=format)
    return lambda stream: plan(stream=stream)


def cublas(problem, format, A, B, C):
    """C = A @ B.T, through torch."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True  # no effect on the other formats
    A, B, C = _torch.tensors(format, A, B, C)
    if format == E4M3:
        one = torch.ones((), device="cuda")
        options = {"out_dtype": C.dtype, "use_fast_accum": True, "out": C}
        return _torch.launch_on_stream(partial(torch._scaled_mm, A, B.T, one, one, **options))
    return _torch.launch_on_stream(partial(torch.mm, A, B.T, out=C))


def baselines(problem, format):
    """cuBLAS, by its name in records; none for a format that torch does not multiply."""
    return {NAMES[format]: cublas} if format in NAMES else {}


CONTENDERS = {"ours": {"multiply": multiply}, "baselines": baselines}
LADDERS = (gemm.ladder("tensor"),)
TABLE = _harness.Benchmark("gemm_tensor", "C = A @ B.T on tensor cores", LADDERS, formats=(TF32,), **CONTENDERS)
main = partial(_harness.run, TABLE)

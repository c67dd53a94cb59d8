"""Products on the tensor cores as a bench needs them: operands, cuBLAS as the rival, the error of a result."""

from functools import partial
from math import ceil

import numpy as np

from labkit import ptx
from labkit.bench._torch import on_stream

ROWS_OF_ORACLE = 64


def sets(M: int, N: int, K: int, itemsize: int) -> int:
    """How many sets of operands are larger than L2, twice, together."""
    from numba import cuda

    return max(1, ceil(2 * cuda.get_current_device().L2_CACHE_SIZE / (itemsize * (M * K + N * K))))


def operands(M, N, K, number, generator):
    """Random normal A and B in a format, and a C for the result."""
    import torch

    kinds = {ptx.BF16: torch.bfloat16, ptx.FP16: torch.float16, ptx.TF32: torch.float32, ptx.E4M3: torch.float8_e4m3fn}
    A, B = (torch.randn(side, K, device="cuda", generator=generator).to(kinds[number]) for side in (M, N))
    result = torch.bfloat16 if number == ptx.E4M3 else kinds[number]
    return A, B, torch.empty(M, N, device="cuda", dtype=result)


def as_array(tensor):
    """A torch tensor as an array of numba's; what numba has no name for as bits."""
    import torch
    from numba import cuda

    bits = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8}
    return cuda.as_cuda_array(tensor.view(bits.get(tensor.dtype, tensor.dtype)))


def rival(number, A, B, C):
    """C = A @ B.T by cuBLAS, through torch."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True  # no effect on the other formats
    if number == ptx.E4M3:
        one = torch.ones((), device="cuda")
        options = {"out_dtype": C.dtype, "use_fast_accum": True, "out": C}
        return on_stream(partial(torch._scaled_mm, A, B.T, one, one, **options))
    return on_stream(partial(torch.mm, A, B.T, out=C))


def error(launch, A, B, C) -> float:
    """The relative error against float64 of some rows, of an output that was NaN before."""
    import torch
    from numba import cuda

    C.fill_(float("nan"))
    torch.cuda.synchronize()
    stream = cuda.stream()
    launch(stream)
    stream.synchronize()
    rows = torch.linspace(0, len(A) - 1, ROWS_OF_ORACLE, device="cuda").long()
    expected = A[rows].double() @ B.double().T
    error = torch.linalg.norm(C[rows].double() - expected) / torch.linalg.norm(expected)
    if not np.isfinite(C.float().sum().item()):
        return float("nan")
    return error.item()

"""`labkit bench gemm_tensor`: the tensor-core steps beside cuBLAS and CUDA C++, which take turns in one run."""

from functools import partial
from math import ceil

import numpy as np

from labkit import cuda_cpp, gemm, ptx, timing
from labkit.bench import _record
from labkit.bench._torch import on_stream

SIZES = (1024, 2048, 4096, 8192, 16384)
SLOW_UP_TO = 8192  # the size from which on only the fastest steps are timed
FAST = ("wgmma", "persistent")
DTYPES = {ptx.BF16: "bfloat16", ptx.FP16: "float16", ptx.TF32: "tf32", ptx.E4M3: "float8_e4m3"}
RIVALS = {ptx.BF16: "cuBLAS", ptx.FP16: "cuBLAS", ptx.TF32: "cuBLAS TF32", ptx.E4M3: "torch scaled_mm"}
TWIN = "CUDA C++"
ROWS_OF_ORACLE = 64
COLUMNS = {
    "dtype": "",
    "problem": "",
    "step": "",
    "time_ms": ".4f",
    "tflops": ".0f",
    "rival": "",
    "ratio": ".1%",
    "error": ".1e",
    "rival_error": ".1e",
}


def main(record=False, out=None) -> None:
    found = _record.require_gpu("times kernels")
    rows = []
    for number in DTYPES:
        for size in SIZES:
            slugs = [step.slug for step in gemm.ladder("tensor")]
            if number != ptx.BF16:
                slugs = FAST[-1:]
            elif size > SLOW_UP_TO:
                slugs = FAST
            rows += measure(gemm.Problem(size, size, size), number, [gemm.step("tensor", slug) for slug in slugs])
    _record.show(f"C = A @ B.T on the tensor cores of {found.name}", rows, COLUMNS)
    _record.finish("gemm_tensor", rows, found.name, record, out)


def measure(problem: gemm.Problem, number: int, steps: list[gemm.Step]) -> list[dict]:
    """A row for each step beside its rival, which all take turns."""
    import torch
    from numba import cuda

    M, N, K = problem.M, problem.N, problem.K
    itemsize = 1 if number == ptx.E4M3 else 4 if number == ptx.TF32 else 2
    sets = max(1, ceil(2 * cuda.get_current_device().L2_CACHE_SIZE / (itemsize * (M * K + N * K))))
    generator = torch.Generator("cuda").manual_seed(0)
    operands = [_operands(M, N, K, number, generator) for _ in range(sets)]
    on_gpu = [tuple(map(_as_array, tensors)) for tensors in operands]
    rival = RIVALS[number]
    launches = {rival: [_rival(number, *tensors) for tensors in operands]}
    for step in steps:
        launches[step.slug] = [_launch(step, arrays) for arrays in on_gpu]
        if number == ptx.BF16 and f"gemm/tensor/{step.name}" in cuda_cpp.names():
            launches[step.slug, TWIN] = [_twin(step, arrays) for arrays in on_gpu]
    times_ms = timing.gpu_times_ms(launches)
    errors = {name: _error(of[0], *operands[0]) for name, of in launches.items()}
    rows = []
    for step in steps:
        time_ms = times_ms[step.slug]
        row = {
            "operation": "gemm_tensor",
            "step": step.slug,
            "problem": str(problem),
            "dtype": DTYPES[number],
            "time_ms": time_ms,
            "tflops": problem.flops / time_ms / 1e9,
            "gb_s": problem.least_bytes(itemsize) / time_ms / 1e6,
            "error": errors[step.slug],
        }
        for name, beside in ((rival, rival), (TWIN, (step.slug, TWIN))):
            if beside in times_ms:
                ratio = times_ms[beside] / time_ms
                against = {"rival_time_ms": times_ms[beside], "rival_error": errors[beside], "ratio": ratio}
                rows.append({**row, "rival": name, **against})
    return rows


def _operands(M, N, K, number, generator):
    """Random normal A and B in a format, and a C for the result."""
    import torch

    kinds = {ptx.BF16: torch.bfloat16, ptx.FP16: torch.float16, ptx.TF32: torch.float32, ptx.E4M3: torch.float8_e4m3fn}
    A, B = (torch.randn(side, K, device="cuda", generator=generator).to(kinds[number]) for side in (M, N))
    result = torch.bfloat16 if number == ptx.E4M3 else kinds[number]
    return A, B, torch.empty(M, N, device="cuda", dtype=result)


def _as_array(tensor):
    """A torch tensor as an array of numba's; what numba has no name for as bits."""
    import torch
    from numba import cuda

    bits = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8}
    return cuda.as_cuda_array(tensor.view(bits.get(tensor.dtype, tensor.dtype)))


def _launch(step, arrays):
    return lambda stream: step.launch(*arrays, stream)


def _twin(step, arrays):
    twin = cuda_cpp.kernel(f"gemm/tensor/{step.name}")
    A, B, C = arrays
    sizes = *C.shape, A.shape[1] * A.dtype.itemsize // 4
    return lambda stream: twin[(*step.geometry(*C.shape), stream, step.shared_bytes)](
        *step.arguments(A, B, C)[:3], *sizes
    )


def _rival(number, A, B, C):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True  # no effect on the other formats
    if number == ptx.E4M3:
        one = torch.ones((), device="cuda")
        options = {"out_dtype": C.dtype, "use_fast_accum": True, "out": C}
        return on_stream(partial(torch._scaled_mm, A, B.T, one, one, **options))
    return on_stream(partial(torch.mm, A, B.T, out=C))


def _error(launch, A, B, C) -> float:
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

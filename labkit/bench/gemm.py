"""`labkit bench gemm`: each fp32 step beside its CUDA C++ twin and cuBLAS, which take turns in one run."""

from functools import partial
from importlib.util import find_spec
from math import ceil

import numpy as np

from labkit import cuda_cpp, gemm, timing
from labkit.bench import _record
from labkit.bench._torch import kernel_of, on_stream

SIZES = (1024, 2048, 4096, 8192)
FAST_FROM = 8192  # the size from which on only the fastest steps are timed
FAST = ("warp_tiles", "tuned")
ROWS_OF_ORACLE = 64
CUBLAS = "cuBLAS fp32"
TWIN = "CUDA C++"
COLUMNS = {
    "step": "",
    "problem": "",
    "time_ms": ".3f",
    "tflops": ".2f",
    f"of_{TWIN}": ".1%",
    f"of_{CUBLAS}": ".1%",
    "error": ".0e",
}


def main(record=False, out=None) -> None:
    found = _record.require_gpu("times kernels")
    rows = []
    for size in SIZES:
        steps = gemm.ladder("fp32") if size < FAST_FROM else [gemm.step("fp32", slug) for slug in FAST]
        rows += measure(gemm.Problem(size, size, size), steps)
    if find_spec("torch"):  # behind all timing, which a profiler may disturb
        names = {str(problem): _kernel_of_cublas(problem) for problem in (gemm.Problem(n, n, n) for n in SIZES)}
        rows = [{**row, "rival_kernel": names[row["problem"]]} if row["rival"] == CUBLAS else row for row in rows]
    _record.show(f"C = A @ B in float32 on {found.name}", one_row_a_step(rows), COLUMNS)
    _record.finish("gemm", rows, found.name, record, out)


def measure(problem: gemm.Problem, steps: list[gemm.Step]) -> list[dict]:
    """A row for each step and rival of it, which all take turns."""
    from numba import cuda

    sets_over_l2 = ceil(2 * cuda.get_current_device().L2_CACHE_SIZE / problem.least_bytes())
    operands = [problem.operands(seed) for seed in range(max(1, sets_over_l2))]
    on_gpu = [tuple(map(cuda.to_device, arrays)) for arrays in operands]
    launches = {CUBLAS: _cublas(on_gpu)} if find_spec("torch") else {}
    for step in steps:
        launches[step.slug] = [_launch(step.launch, arrays) for arrays in on_gpu]
        name = f"gemm/{step.ladder}/{step.name}"
        if name in cuda_cpp.names():
            twin = cuda_cpp.kernel(name)
            sizes = problem.M, problem.N, problem.K
            geometry = step.geometry(problem.M, problem.N)
            launches[step.slug, TWIN] = [_launch_twin(twin, geometry, (*arrays, *sizes)) for arrays in on_gpu]
    times_ms = timing.gpu_times_ms(launches)
    rows = []
    for step in steps:
        time_ms = times_ms[step.slug]
        row = {
            "operation": "gemm",
            "step": step.slug,
            "problem": str(problem),
            "dtype": "float32",
            "time_ms": time_ms,
            "tflops": problem.flops / time_ms / 1e9,
            "gb_s": problem.least_bytes() / time_ms / 1e6,
            "error": _error(step.launch, on_gpu[0], operands[0]),
            "registers": max(step.kernel.get_regs_per_thread().values()),
        }
        for rival, name in ((TWIN, (step.slug, TWIN)), (CUBLAS, CUBLAS)):
            if name in times_ms:
                rival_ms = times_ms[name]
                rows.append({**row, "rival": rival, "rival_time_ms": rival_ms, "ratio": rival_ms / time_ms})
    return rows


def one_row_a_step(rows: list[dict]) -> list[dict]:
    """The rows as the table shows them: the speeds of a step as shares of its rivals' in one row."""
    shown = {}
    for row in rows:
        share = {f"of_{row['rival']}": row["ratio"]}
        shown.setdefault((row["problem"], row["step"]), dict(row)).update(share)
    return list(shown.values())


def _launch(launch, arrays):
    return lambda stream: launch(*arrays, stream)


def _launch_twin(twin, geometry, arguments):
    return lambda stream: twin[(*geometry, stream)](*arguments)


def _cublas(on_gpu):
    return [on_stream(call) for call in _products(on_gpu)]


def _products(arrays):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    tensors = [[torch.as_tensor(array, device="cuda") for array in operands] for operands in arrays]
    return [partial(torch.mm, A, B, out=C) for A, B, C in tensors]


def _kernel_of_cublas(problem) -> str:
    (product,) = _products([problem.operands()])
    return kernel_of(product)


def _error(launch, on_gpu, operands) -> float:
    """The relative error against float64 of some rows, of an output that was NaN before."""
    (A, B, C), result = operands, on_gpu[2]
    result.copy_to_device(np.full(C.shape, np.nan, np.float32))
    launch(*on_gpu)
    rows = np.linspace(0, len(A) - 1, ROWS_OF_ORACLE).astype(int)
    expected, got = gemm.oracle(A[rows], B), result.copy_to_host()
    if not np.isfinite(got).all():
        return float("nan")
    return float(np.linalg.norm(got[rows] - expected) / np.linalg.norm(expected))

"""`labkit bench gemm`: each fp32 step beside its CUDA C++ twin and cuBLAS, timed in one run by one method."""

from importlib.util import find_spec
from math import ceil

import numpy as np
from rich.console import Console

from labkit import device, gemm, timing
from labkit.bench import _record

SIZES = (1024, 2048, 4096)
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
    found = device.detect()
    if found.kind != "gpu":
        Console().print(f"This bench times kernels on a GPU, but {found.detail}; run `labkit doctor`.")
        raise SystemExit(1)
    rows = [row for size in SIZES for row in measure(gemm.Problem(size, size, size))]
    _record.show(f"C = A @ B in float32 on {found.name}", one_row_a_step(rows), COLUMNS)
    _record.finish("gemm", rows, found.name, record, out)


def measure(problem: gemm.Problem) -> list[dict]:
    """A row for each step and rival of it."""
    from numba import cuda

    sets_over_l2 = ceil(2 * cuda.get_current_device().L2_CACHE_SIZE / problem.least_bytes())
    operands = [problem.operands(seed) for seed in range(max(1, sets_over_l2))]
    on_gpu = [tuple(map(cuda.to_device, arrays)) for arrays in operands]
    expected = gemm.oracle(*operands[0][:2])
    rows = []
    cublas_ms = _time_cublas(on_gpu) if find_spec("torch") else None
    for step in gemm.ladder("fp32"):
        geometry = step.geometry(problem.M, problem.N)
        ours = [_launch(step.kernel, geometry, arrays) for arrays in on_gpu]
        error = _error(step.launch, on_gpu[0], expected)
        time_ms = timing.gpu_time_ms(ours)
        row = {
            "operation": "gemm",
            "step": step.slug,
            "problem": str(problem),
            "dtype": "float32",
            "time_ms": time_ms,
            "tflops": problem.flops / time_ms / 1e9,
            "gb_s": problem.least_bytes() / time_ms / 1e6,
            "error": error,
            "registers": max(step.kernel.get_regs_per_thread().values()),
        }
        rivals = {TWIN: _time_twin(step, geometry, problem, on_gpu), CUBLAS: cublas_ms}
        for rival, rival_ms in rivals.items():
            if rival_ms is not None:
                rows.append({**row, "rival": rival, "rival_time_ms": rival_ms, "ratio": rival_ms / time_ms})
    return rows


def one_row_a_step(rows: list[dict]) -> list[dict]:
    """The rows as the table shows them: the speeds of a step as shares of its rivals' in one row."""
    shown = {}
    for row in rows:
        share = {f"of_{row['rival']}": row["ratio"]}
        shown.setdefault((row["problem"], row["step"]), dict(row)).update(share)
    return list(shown.values())


def _launch(kernel, geometry, arguments):
    return lambda stream: kernel[(*geometry, stream)](*arguments)


def _time_twin(step, geometry, problem, on_gpu) -> float | None:
    from labkit import cuda_cpp

    name = f"gemm/{step.ladder}/{step.name}"
    if name not in cuda_cpp.names():
        return None
    twin = cuda_cpp.kernel(name)
    sizes = (problem.M, problem.N, problem.K)
    return timing.gpu_time_ms([_launch(twin, geometry, (*arrays, *sizes)) for arrays in on_gpu])


def _time_cublas(on_gpu) -> float:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    tensors = [[torch.as_tensor(array, device="cuda") for array in arrays] for arrays in on_gpu]

    def launch_of(A, B, C):
        def launch(stream):
            with torch.cuda.stream(torch.cuda.ExternalStream(int(stream))):
                torch.mm(A, B, out=C)

        return launch

    return timing.gpu_time_ms([launch_of(*arrays) for arrays in tensors])


def _error(launch, arrays, expected) -> float:
    """The relative error against float64, of an output that was NaN before."""
    A, B, C = arrays
    C.copy_to_device(np.full(C.shape, np.nan, np.float32))
    launch(A, B, C)
    return float(np.linalg.norm(C.copy_to_host() - expected) / np.linalg.norm(expected))

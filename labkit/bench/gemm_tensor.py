"""`labkit bench gemm_tensor`: the tensor-core steps beside cuBLAS and CUDA C++, which take turns in one run."""

from labkit import cuda_cpp, gemm, ptx, timing
from labkit.bench import _products, _record

SIZES = (1024, 2048, 4096, 8192, 16384)
SLOW_UP_TO = 8192  # the size from which on only the fastest steps are timed
FAST = ("wgmma", "persistent")
DTYPES = {ptx.BF16: "bfloat16", ptx.FP16: "float16", ptx.TF32: "tf32", ptx.E4M3: "float8_e4m3"}
RIVALS = {ptx.BF16: "cuBLAS", ptx.FP16: "cuBLAS", ptx.TF32: "cuBLAS TF32", ptx.E4M3: "torch scaled_mm"}
TWIN = "CUDA C++"
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
                slugs = FAST[1:]
            elif size > SLOW_UP_TO:
                slugs = FAST
            rows += measure(gemm.Problem(size, size, size), number, [gemm.step("tensor", slug) for slug in slugs])
    _record.show(f"C = A @ B.T on the tensor cores of {found.name}", rows, COLUMNS)
    _record.finish("gemm_tensor", rows, found.name, record, out)


def measure(problem: gemm.Problem, number: int, steps: list[gemm.Step]) -> list[dict]:
    """A row for each step beside its rival, which all take turns."""
    import torch

    M, N, K = problem.M, problem.N, problem.K
    itemsize = 1 if number == ptx.E4M3 else 4 if number == ptx.TF32 else 2
    sets = _products.sets(M, N, K, itemsize)
    generator = torch.Generator("cuda").manual_seed(0)
    operands = [_products.operands(M, N, K, number, generator) for _ in range(sets)]
    on_gpu = [tuple(map(_products.as_array, tensors)) for tensors in operands]
    rival = RIVALS[number]
    launches = {rival: [_products.rival(number, *tensors) for tensors in operands]}
    for step in steps:
        launches[step.slug] = [_launch(step, arrays) for arrays in on_gpu]
        if number == ptx.BF16 and f"gemm/tensor/{step.name}" in cuda_cpp.names():
            launches[step.slug, TWIN] = [_twin(step, arrays) for arrays in on_gpu]
    times_ms = timing.gpu_times_ms(launches)
    errors = {name: _products.error(of[0], *operands[0]) for name, of in launches.items()}
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


def _launch(step, arrays):
    return lambda stream: step.launch(*arrays, stream)


def _twin(step, arrays):
    twin = cuda_cpp.kernel(f"gemm/tensor/{step.name}")
    A, B, C = arrays
    sizes = *C.shape, A.shape[1] * A.dtype.itemsize // 4
    return lambda stream: twin[(*step.geometry(*C.shape), stream, step.shared_bytes)](
        *step.arguments(A, B, C)[:3], *sizes
    )

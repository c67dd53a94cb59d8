"""`labkit bench batch`: one weight matrix times growing batches of inputs, by cuBLAS."""

from labkit.bench import _harness, _record
from labkit.bench.gemm import cublas as cublas_fp32
from labkit.bench.gemm_tensor import cublas
from labkit.formats import FP16, FP32
from labkit.gemm import LayerProblem

SIDE = 4096  # rows and columns of W
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)  # rows of X


def cublas_layer(problem, format, X, W, Y):
    """Return a launch of Y = X @ W.T; float32 is computed without TF32."""
    return cublas_fp32(problem, format, X, W.T, Y) if format == FP32 else cublas(problem, format, X, W, Y)


TABLE = _harness.Benchmark("batch", f"X @ W.T by cuBLAS, W {SIDE} x {SIDE}", ladders=(), ours={"cuBLAS": cublas_layer})


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    rows = [
        {**row, "batch": batch}
        for format in (FP16, FP32)
        for batch in BATCHES
        for row in _harness.measure(TABLE, LayerProblem(batch, SIDE, SIDE), format)
    ]
    _harness.print_comparison(f"{TABLE.title}, on {gpu.name}", rows)
    _record.store_if_requested(TABLE.name, rows, gpu.name, record, out)

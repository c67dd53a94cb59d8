"""Where the book's kernels stand under a roofline: each run once, small, in the simulator, and what was recorded."""

import numpy as np

from labkit import gemm, ptx, results
from labkit.blas import axpy, dot, gemv, gemv_t, nrm2
from labkit.gemm import formats
from labkit.gemm.tensor import operands
from labkit.gpus import NAMES_OF_DRIVER
from labkit.simulator.run import simulate
from labkit.views import Standing

LENGTH = 2**18
ROWS, COLUMNS = 512, 1024
OF_FP32 = gemm.Problem(128, 256, 256)  # whole tiles of every step
OF_TENSOR = gemm.Problem(128, 256, 1024)  # deep, so that what is done once a tile counts little
LARGE = gemm.Problem(4096, 4096, 4096)  # what a GEMM was measured with


def standings() -> dict[str, Standing]:
    """Every kernel of the book by its name, and the vendor's library beside them."""
    libraries = {f"cuBLAS {dtype}": batches(dtype).get(f"batch {LARGE.M}") for dtype in ARITHMETIC}
    return blas() | gemm_fp32() | gemm_tensor() | {name: known for name, known in libraries.items() if known}


def blas() -> dict[str, Standing]:
    """BLAS level 1 and 2."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, LENGTH), np.float32)
    A = rng.standard_normal((ROWS, COLUMNS), np.float32)
    out = np.full(1, np.nan, np.float32)
    one, zero = np.float32(1), np.float32(0)
    of_vector, of_matrix = 2 * LENGTH, 2 * ROWS * COLUMNS
    launches = {
        axpy.axpy: (of_vector, LENGTH // axpy.CHUNK, axpy.THREADS, one, x, y),
        dot.dot: (of_vector, LENGTH // dot.CHUNK, dot.THREADS, x, y, *dot.scratch(), out),
        nrm2.nrm2: (of_vector, LENGTH // nrm2.CHUNK, nrm2.THREADS, x, *nrm2.scratch(), out),
        gemv.gemv: (of_matrix, *gemv.geometry(ROWS, COLUMNS), one, A, x[:COLUMNS], zero, y[:ROWS]),
        gemv_t.gemv_t: (
            of_matrix,
            *gemv_t.geometry(ROWS, COLUMNS),
            *(one, A, x[:ROWS], zero, y[:COLUMNS]),
            *gemv_t.scratch(ROWS, COLUMNS),
        ),
    }
    return {
        name: _standing("float32", flops / trace.counters.dram_bytes, trace, flops, _rows("blas", step=name))
        for name, trace, flops in (
            (kernel.py_func.__name__, simulate(kernel, *launch), flops) for kernel, (flops, *launch) in launches.items()
        )
    }


def gemm_fp32() -> dict[str, Standing]:
    """The steps of the fp32 ladder."""
    A, B, C = OF_FP32.operands()
    return {
        step.slug: _standing(
            "float32",
            LARGE.flops / LARGE.least_bytes(),
            simulate(step.kernel, *step.geometry(*C.shape), *step.arguments(A, B, C), shared_bytes=step.shared_bytes),
            OF_FP32.flops,
            _rows("gemm", step=step.slug, problem=str(LARGE)),
        )
        for step in gemm.ladder("fp32")
    }


def gemm_tensor() -> dict[str, Standing]:
    """The steps of the tensor cores' ladder, in bfloat16."""
    M, N, K = OF_TENSOR.M, OF_TENSOR.N, OF_TENSOR.K
    rng = np.random.default_rng(0)
    A, B = (formats.encode(rng.standard_normal((rows, K)), ptx.BF16) for rows in (M, N))
    C = np.zeros((M, N), A.dtype)
    found = {}
    for step in gemm.ladder("tensor"):
        kernel = operands.in_format(step.kernel, ptx.BF16)
        launch = *step.geometry(M, N), *step.arguments(A, B, C)
        found[step.slug] = _standing(
            "bfloat16 tensor",
            LARGE.flops / LARGE.least_bytes(A.itemsize),
            simulate(kernel, *launch, shared_bytes=step.shared_bytes),
            OF_TENSOR.flops,
            _rows("gemm_tensor", step=step.slug, problem=str(LARGE), dtype="bfloat16"),
        )
    return found


ARITHMETIC = {"float16": "float16 tensor", "float32": "float32"}  # what cuBLAS multiplies with


def batches(dtype: str) -> dict[str, Standing]:
    """cuBLAS with more and more inputs at a time, as it was recorded: "batch 1", "batch 4", ..."""
    found = {}
    for machine, row in _rows("batch", dtype=dtype):
        name = f"batch {row['batch']}"
        speeds = found[name].measured_tflops if name in found else {}
        found[name] = Standing(ARITHMETIC[dtype], _intensity(row), {**speeds, machine: row["tflops"]})
    return found


def _standing(precision, intensity, trace, flops, rows):
    """A kernel with the last of the rows that were recorded; where there are none, at the intensity given."""
    speeds = {}
    for machine, row in rows:
        speeds[machine], intensity = row["tflops"], _intensity(row)
    return Standing(precision, intensity, speeds, trace, flops)


def _rows(operation, **fields):
    """Recorded rows of an operation with these values, each with the name of its GPU in `labkit.gpus`."""
    for machine, what in results.recorded():
        if what == operation:
            found = results.load(operation, machine)
            for row in found.select(**fields):
                yield NAMES_OF_DRIVER.get(found.header.get("gpu"), machine), row


def _intensity(row):
    """FLOPs a byte, if each byte moved once: that is how `gb_s` is reckoned."""
    return 1000 * row["tflops"] / row["gb_s"]

"""Where the book's kernels stand under a roofline: each run once, small, in the simulator, and what was recorded."""

import numpy as np

from labkit import gemm, results
from labkit.blas import axpy, dot, gemv, gemv_t, nrm2
from labkit.gpus import NAMES_OF_DRIVER
from labkit.simulator.run import simulate
from labkit.views import Standing

LENGTH = 2**18
ROWS, COLUMNS = 512, 1024
SIDE = 256
LARGE_SIDE = 4096  # of a GEMM that was not measured


def standings() -> dict[str, Standing]:
    """Every kernel of the book by its name, and the vendor's library beside them."""
    libraries = {f"cuBLAS {dtype}": batches(dtype).get("batch 4096") for dtype in ARITHMETIC}
    return blas() | gemm_ladder("fp32") | {name: known for name, known in libraries.items() if known}


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
        name: _standing("blas", name, trace, flops, flops / trace.counters.dram_bytes)
        for name, trace, flops in (
            (kernel.py_func.__name__, simulate(kernel, *launch), flops) for kernel, (flops, *launch) in launches.items()
        )
    }


def gemm_ladder(precision: str) -> dict[str, Standing]:
    """The steps of a ladder of GEMM."""
    problem, large = (gemm.Problem(side, side, side) for side in (SIDE, LARGE_SIDE))
    return {
        step.slug: _standing(
            "gemm",
            step.slug,
            simulate(step.kernel, *step.geometry(SIDE, SIDE), *problem.operands(), shared_bytes=step.shared_bytes),
            problem.flops,
            large.flops / large.least_bytes(),
        )
        for step in gemm.ladder(precision)
    }


ARITHMETIC = {"float16": "float16 tensor", "float32": "float32"}  # what cuBLAS multiplies with


def batches(dtype: str) -> dict[str, Standing]:
    """cuBLAS with more and more inputs at a time, as it was recorded: "batch 1", "batch 4", ..."""
    found = {}
    for machine, row in _rows("batch"):
        if row["dtype"] == dtype:
            name = f"batch {row['batch']}"
            speeds = found[name].measured_tflops if name in found else {}
            found[name] = Standing(ARITHMETIC[dtype], _intensity(row), {**speeds, machine: row["tflops"]})
    return found


def _standing(operation, step, trace, flops, intensity):
    """A kernel with the largest problem that was recorded of it; where none was, at the intensity given."""
    speeds = {}
    for machine, row in _rows(operation):
        if row["step"] == step:
            speeds[machine], intensity = row["tflops"], _intensity(row)
    return Standing("float32", intensity, speeds, trace, flops)


def _rows(operation):
    """All recorded rows of an operation, each with the name of its GPU in `labkit.gpus`."""
    for machine, what in results.recorded():
        if what == operation:
            found = results.load(operation, machine)
            for row in found.rows:
                yield NAMES_OF_DRIVER.get(found.header.get("gpu"), machine), row


def _intensity(row):
    """FLOPs a byte, if each byte moved once: that is how `gb_s` is reckoned."""
    return 1000 * row["tflops"] / row["gb_s"]

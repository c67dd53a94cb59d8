"""`labkit bench blas`: BLAS level 1 and 2 beside torch's and cuBLAS's, and beside a copy that moves as many bytes.

All in one run, by graph replay. A copy reads half of its bytes and writes the other half; two are timed, the
driver's and a kernel of ours. Launches take turns on operands that are many times larger than L2 together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil

from labkit import timing
from labkit.bench import _record
from labkit.bench._torch import on_stream
from labkit.bench.gemm import one_row_a_step
from labkit.blas import axpy, copy, dot, gemv, gemv_t, nrm2

LENGTHS = ((2**24,), (2**26,), (2**28,))
SHAPES = ((4096, 4096), (16384, 16384), (65536, 1024), (1024, 65536))
TIMES_L2 = 4  # bytes of all operands together
ALPHA = 1e-3  # small, as axpy adds to the same y again and again
LIBRARY, DRIVERS_COPY, OUR_COPY = "torch", "cuMemcpy", "copy"
COLUMNS = {
    "step": "",
    "problem": "",
    "time_ms": ".4f",
    "gb_s": ".0f",
    f"of_{LIBRARY}": ".1%",
    f"of_{DRIVERS_COPY}": ".1%",
    f"of_{OUR_COPY}": ".1%",
    "error": ".0e",
}


@dataclass(frozen=True)
class Work:
    """One launch on operands of its own: what it costs, ours, torch's, and how far ours is from float64."""

    bytes: int
    flops: int
    ours: Callable[[object], object]
    library: Callable[[], object]
    error: Callable[[], float]


def main(record=False, out=None) -> None:
    found = _record.require_gpu("times kernels")
    rows = [row for step, (_, problems) in WORKS.items() for problem in problems for row in measure(step, problem)]
    _record.show(f"BLAS level 1 and 2 in float32 on {found.name}", one_row_a_step(rows), COLUMNS)
    _record.finish("blas", rows, found.name, record, out)


def measure(step: str, problem: tuple[int, ...]) -> list[dict]:
    """A row for each rival of a kernel on a problem: vectors of n elements, or an M x N matrix."""
    make, _ = WORKS[step]
    first = make(*problem)
    works = [first, *(make(*problem) for _ in range(_sets(first.bytes) - 1))]
    error = first.error()
    time_ms = timing.gpu_time_ms([work.ours for work in works])
    rivals = {LIBRARY: timing.gpu_time_ms([on_stream(work.library) for work in works])}
    del works
    rivals |= copy_times_ms(first.bytes)
    row = {
        "operation": "blas",
        "step": step,
        "problem": "x".join(map(str, problem)),
        "dtype": "float32",
        "time_ms": time_ms,
        "tflops": first.flops / time_ms / 1e9,
        "gb_s": first.bytes / time_ms / 1e6,
        "error": error,
    }
    return [{**row, "rival": rival, "rival_time_ms": ms, "ratio": ms / time_ms} for rival, ms in rivals.items()]


@cache
def copy_times_ms(bytes_moved: int) -> dict[str, float]:
    """How long it takes to copy half as many bytes from one place to another, by the driver and by our kernel."""
    pairs = [(_random(bytes_moved // 8), _random(bytes_moved // 8)) for _ in range(_sets(bytes_moved))]
    views = [tuple(map(_view, pair)) for pair in pairs]
    return {
        DRIVERS_COPY: timing.gpu_time_ms([lambda stream, x=x, y=y: y.copy_to_device(x, stream) for x, y in views]),
        OUR_COPY: timing.gpu_time_ms([lambda stream, x=x, y=y: copy.launch(x, y, stream) for x, y in views]),
    }


# --- the operations --------------------------------------------------------------------------------


def _axpy(n):
    x, y = _random(n), _random(n)
    X, Y = _view(x), _view(y)

    def error():
        expected = y.double() + ALPHA * x.double()
        axpy.launch(ALPHA, X, Y)
        return _relative(y, expected)

    return Work(12 * n, 2 * n, lambda stream: axpy.launch(ALPHA, X, Y, stream), lambda: y.add_(x, alpha=ALPHA), error)


def _dot(n):
    import torch

    x, y, out = _random(n), _random(n), _poisoned(1)
    X, Y, OUT, scratch = _view(x), _view(y), _view(out), dot.scratch()
    library_out = out.new_empty(())

    def error():  # by the norms: the product itself may be nearly nothing
        dot.launch(X, Y, OUT)
        x64, y64 = x.double(), y.double()
        return float((out[0] - x64 @ y64).abs() / (x64.norm() * y64.norm()))

    return Work(
        8 * n,
        2 * n,
        lambda stream: dot.launch(X, Y, OUT, scratch, stream),
        lambda: torch.dot(x, y, out=library_out),
        error,
    )


def _nrm2(n):
    import torch

    x, out = _random(n), _poisoned(1)
    X, OUT, scratch = _view(x), _view(out), nrm2.scratch()
    library_out = out.new_empty(())

    def error():
        nrm2.launch(X, OUT)
        return _relative(out[0], x.double().norm())

    return Work(
        4 * n,
        2 * n,
        lambda stream: nrm2.launch(X, OUT, scratch, stream),
        lambda: torch.linalg.vector_norm(x, out=library_out),
        error,
    )


def _gemv(M, N):
    import torch

    A, x, y = _random(M, N), _random(N), _poisoned(M)
    views = _view(A), _view(x), 0, _view(y)

    def error():
        gemv.launch(1, *views)
        return _relative(y, A.double() @ x.double())

    return Work(
        4 * (M * N + M + N),
        2 * M * N,
        lambda stream: gemv.launch(1, *views, stream),
        lambda: torch.mv(A, x, out=y),
        error,
    )


def _gemv_t(M, N):
    import torch

    A, x, y = _random(M, N), _random(M), _poisoned(N)
    views, scratch = (_view(A), _view(x), 0, _view(y)), gemv_t.scratch(M, N)

    def error():
        gemv_t.launch(1, *views)
        return _relative(y, A.double().T @ x.double())

    return Work(
        4 * (M * N + M + N),
        2 * M * N,
        lambda stream: gemv_t.launch(1, *views, scratch, stream),
        lambda: torch.mv(A.T, x, out=y),
        error,
    )


WORKS = {
    "axpy": (_axpy, LENGTHS),
    "dot": (_dot, LENGTHS),
    "nrm2": (_nrm2, LENGTHS),
    "gemv": (_gemv, SHAPES),
    "gemv_t": (_gemv_t, SHAPES),
}


# --- tensors ---------------------------------------------------------------------------------------


def _sets(bytes_of_one):
    from numba import cuda

    return ceil(TIMES_L2 * cuda.get_current_device().L2_CACHE_SIZE / bytes_of_one)


def _random(*shape):
    import torch

    return torch.randn(*shape, device="cuda")


def _poisoned(n):
    import torch

    return torch.full((n,), float("nan"), device="cuda")


def _view(tensor):
    """The tensor for our kernels."""
    from numba import cuda

    return cuda.as_cuda_array(tensor)


def _relative(found, expected):
    return float((found - expected).norm() / expected.norm())

"""`labkit bench blas`: BLAS level 1 and 2 compared with torch, a baseline, and with copies of equally many bytes.

The copies are yardsticks: they bound the time from below. Each reads half of its bytes and writes half. Two are timed:
the driver's and a kernel of ours.
"""

from functools import partial

from labkit import cuda, ladder
from labkit.bench import _harness, _torch
from labkit.blas import copy
from labkit.blas.problem import Axpy, Copy, Dot, GemvTransposed, Nrm2
from labkit.formats import FP32


def torch_blas(problem, format, *operands):
    """Return a launch of torch's function, which calls cuBLAS for dot and gemv."""
    import torch

    tensors = _torch.tensors(format, *operands)
    match problem:
        case Copy():
            x, y = tensors
            call = partial(y.copy_, x)
        case Axpy():
            alpha, x, y = tensors
            call = partial(y.add_, x, alpha=alpha)
        case Dot():
            x, y, out = tensors
            call = partial(torch.dot, x, y, out=out[0])
        case Nrm2():
            x, out = tensors
            call = partial(torch.linalg.vector_norm, x, out=out[0])
        case _:
            _, A, x, _, y = tensors  # alpha is 1 and beta 0 in all problems of gemv
            call = partial(torch.mv, A.T if isinstance(problem, GemvTransposed) else A, x, out=y)
    return _torch.launch_on_stream(call)


def driver_copy(problem, format, *operands):
    x, y = _halves(problem)
    return lambda stream: y.copy_to_device(x, stream)


def our_copy(problem, format, *operands):
    x, y = _halves(problem)
    return lambda stream: copy.launch(x, y, stream=stream)


def _halves(problem):
    x = _torch.random_normal(problem.min_bytes() // 2 // FP32.itemsize)
    return cuda.as_cuda_array(x), cuda.device_array(x.shape[0], FP32.dtype)


CONTENDERS = {
    "baselines": lambda problem, format: {"torch": torch_blas},
    "yardsticks": {"cuMemcpy": driver_copy, "copy": our_copy},
}
TABLE = _harness.Benchmark("blas", "BLAS level 1 and 2 in float32", ladder.ladders("blas"), **CONTENDERS)
main = partial(_harness.run, TABLE)

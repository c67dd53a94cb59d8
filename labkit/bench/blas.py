"""`labkit bench blas`: BLAS level 1 and 2 compared with torch, cuBLAS and copies of equally many bytes.

A copy reads half of its bytes and writes half. Two are timed: the driver's and a kernel of ours.
"""

from functools import partial

from labkit import cuda, ladder
from labkit.bench import _harness, _torch
from labkit.blas import copy, problem
from labkit.formats import FP32


def library(of, format, *operands):
    """Return the contender of torch, which calls cuBLAS for dot and gemv."""
    import torch

    tensors = _torch.tensors(format, *operands)
    match of:
        case problem.Copy():
            x, y = tensors
            call = partial(y.copy_, x)
        case problem.Axpy():
            alpha, x, y = tensors
            call = partial(y.add_, x, alpha=alpha)
        case problem.Dot():
            x, y, out = tensors
            call = partial(torch.dot, x, y, out=out[0])
        case problem.Nrm2():
            x, out = tensors
            call = partial(torch.linalg.vector_norm, x, out=out[0])
        case _:
            _, A, x, _, y = tensors
            call = partial(torch.mv, A.T if isinstance(of, problem.GemvTransposed) else A, x, out=y)
    return _torch.on_stream(call)


def drivers_copy(of, format, *operands):
    x, y = _halves(of)
    return lambda stream: y.copy_to_device(x, stream)


def our_copy(of, format, *operands):
    x, y = _halves(of)
    return lambda stream: copy.launch(x, y, stream=stream)


def _halves(of):
    x = _torch.random(of.min_bytes() // 2 // FP32.itemsize)
    return cuda.as_cuda_array(x), cuda.device_array(x.shape[0], FP32.dtype)


CONTENDERS = {
    "baselines": lambda problem, format: {"torch": library},
    "yardsticks": {"cuMemcpy": drivers_copy, "copy": our_copy},
}
TABLE = _harness.Table("blas", "BLAS level 1 and 2 in float32", ladder.ladders("blas"), **CONTENDERS)
main = partial(_harness.run, TABLE)

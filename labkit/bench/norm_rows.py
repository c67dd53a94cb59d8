"""`labkit bench norm_rows`: every step of layer norm and RMS norm compared with torch, eager and compiled."""

from functools import cache, partial

from labkit import norm
from labkit.bench import _harness, _torch


def torch_forward(problem, format, *operands, compiled: bool = False):
    """Return torch's norm of rows; torch requires weights of the matrix's type.

    torch does not return the statistics, which are therefore computed after the first call.
    """
    import torch

    tensors = dict(zip(problem.ARRAYS, _torch.tensors(format, *operands[:-1]), strict=True))
    weights = [tensors[name].to(tensors["x"].dtype) for name in ("weight", "bias") if name in problem.shapes]
    forward = (_compiled if compiled else _forward)(problem.kind, problem.columns, problem.eps)

    def store(y):
        tensors["y"].copy_(y)
        mean, variance = _statistics(problem, tensors["x"].float())
        tensors["rstd"].copy_(torch.rsqrt(variance + problem.eps))
        if problem.is_centred:
            tensors["mean"].copy_(mean)

    return _torch.launch_on_stream(partial(forward, tensors["x"], *weights), store_first_result=store)


def _forward(kind, columns, eps):
    import torch

    normalise = {"layer": torch.nn.functional.layer_norm, "rms": torch.nn.functional.rms_norm}[kind]
    return lambda x, *weights: normalise(x, (columns,), *weights, eps=eps)


@cache
def _compiled(kind, columns, eps):
    return _torch.compiled(_forward(kind, columns, eps))


def _statistics(problem, x):
    """Return the mean of each row, and its variance, or mean square in RMS norm."""
    mean = x.mean(1)
    return mean, x.var(1, correction=0) if problem.is_centred else x.square().mean(1)


def forward_baselines(problem, format):
    """Return the baselines by name: torch, eager and compiled."""
    return _torch.eager_and_compiled(torch_forward)


def copy(problem, format, x, weight, bias, y, *_):
    """Return a copy of the matrix, which moves the least bytes that a norm can move."""
    return lambda stream: y.copy_to_device(x, stream=stream)


def torch_backward(problem, format, *operands, compiled: bool = False):
    """Return torch's gradients of a norm of rows from the forward pass's statistics: the kernels that autograd runs.

    torch requires weights of the matrix's type, and gives their gradients the same type.
    """
    tensors = dict(zip(problem.ARRAYS, _torch.tensors(format, *operands[:-1]), strict=True))
    weight = tensors["weight"].to(tensors["x"].dtype)
    backward = (_compiled_backward if compiled else _backward)(problem.kind, problem.columns)
    statistics = [tensors[name].view(-1, 1) for name in ("mean", "rstd") if name in problem.shapes]

    def store(gradients):
        for name, gradient in zip(("dx", "dweight", "dbias"), gradients):
            if name in problem.shapes:
                tensors[name].copy_(gradient)

    call = partial(backward, tensors["dy"], tensors["x"], weight, *statistics)
    return _torch.launch_on_stream(call, store_first_result=store)


def _backward(kind, columns):
    import torch

    def of_layer(dy, x, weight, mean, rstd):
        bias = weight  # whose numbers do not matter
        return torch.ops.aten.native_layer_norm_backward(dy, x, [columns], mean, rstd, weight, bias, [True] * 3)

    def of_rms(dy, x, weight, rstd):
        return torch.ops.aten._fused_rms_norm_backward(dy, x, [columns], rstd, weight, [True] * 2)

    return {"layer": of_layer, "rms": of_rms}[kind]


@cache
def _compiled_backward(kind, columns):
    return _torch.compiled(_backward(kind, columns))


def backward_baselines(problem, format):
    """Return the baselines by name: torch, eager and compiled."""
    return _torch.eager_and_compiled(torch_backward)


def copies(problem, format, dy, x, weight, mean, rstd, dx, *_):
    """Return one and a half copies of a matrix, which move the least bytes that the gradients can move."""
    return _harness.one_and_a_half_copies(dx, dy, x)


FORWARD = {"baselines": forward_baselines, "yardsticks": {"copy": copy}}
BACKWARD = {"baselines": backward_baselines, "yardsticks": {"copies": copies}}
TABLES = [
    _harness.benchmark_of_ladder(norm.ladder("rows"), "Layer norm and RMS norm", **FORWARD),
    _harness.benchmark_of_ladder(norm.ladder("rows_backward"), "Gradients of layer norm and RMS norm", **BACKWARD),
]
main = partial(_harness.run_all, TABLES)

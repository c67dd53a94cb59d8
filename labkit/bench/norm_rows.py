"""`labkit bench norm_rows`: every step of layer norm and RMS norm beside torch, eager and compiled, and a copy."""

from functools import cache, partial
from pathlib import Path

from labkit import norm
from labkit.bench import _harness, _torch


def forward_of_torch(problem, format, *operands, compiled: bool = False):
    """torch's norm of rows, whose weights are of the type that its matrix has, as torch wants them.

    The first call also copies its results to where ours stand, for their error to be found; torch keeps the statistics
    to itself, so that they are computed for that.
    """
    import torch

    of = dict(zip(problem.ARRAYS, _torch.tensors(format, *operands[:-1]), strict=True))
    beside = [of[name].to(of["x"].dtype) for name in ("weight", "bias") if name in problem.shapes]
    call = (_compiled if compiled else _forward)(problem.kind, problem.columns, problem.eps)
    done = []

    def launch():
        y = call(of["x"], *beside)
        if not done:
            done.append(True)
            of["y"].copy_(y)
            mean, variance = _statistics(problem, of["x"].float())
            of["rstd"].copy_(torch.rsqrt(variance + problem.eps))
            if problem.is_centred:
                of["mean"].copy_(mean)

    return _torch.on_stream(launch)


def _forward(kind, columns, eps):
    import torch

    own = {"layer": torch.nn.functional.layer_norm, "rms": torch.nn.functional.rms_norm}[kind]

    def forward(x, *beside):
        return own(x, (columns,), *beside, eps=eps)

    return forward


@cache
def _compiled(kind, columns, eps):
    import torch

    return torch.compile(_forward(kind, columns, eps), dynamic=False)


def _statistics(problem, x):
    """The mean of each row, and its variance, or mean square in RMS norm."""
    mean = x.mean(1)
    return mean, x.var(1, correction=0) if problem.is_centred else x.square().mean(1)


def forward_baselines(problem, format):
    """torch, eager and compiled."""
    ways = {"torch": forward_of_torch, "torch.compile": partial(forward_of_torch, compiled=True)}
    return ways if _torch.is_here() else {}


def copy(problem, format, x, weight, bias, y, *_):
    """A copy of the matrix, which reads and writes as much as a norm must at least."""
    return lambda stream: y.copy_to_device(x, stream=stream)


def backward_of_torch(problem, format, *operands, compiled: bool = False):
    """torch's gradients of a norm of rows, of what its forward pass leaves for them: the kernels that autograd runs.

    Weights are of the type that the matrix has, as torch wants them, and so are their gradients.
    """
    of = dict(zip(problem.ARRAYS, _torch.tensors(format, *operands[:-1]), strict=True))
    weight = of["weight"].to(of["x"].dtype)
    call = (_compiled_backward if compiled else _backward)(problem.kind, problem.columns)
    statistics = [of[name].view(-1, 1) for name in ("mean", "rstd") if name in problem.shapes]
    done = []

    def launch():
        found = call(of["dy"], of["x"], weight, *statistics)
        if not done:
            done.append(True)
            for name, gradient in zip(("dx", "dweight", "dbias"), found):
                if name in problem.shapes:
                    of[name].copy_(gradient)

    return _torch.on_stream(launch)


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
    import torch

    return torch.compile(_backward(kind, columns), dynamic=False)


def backward_baselines(problem, format):
    """torch, eager and compiled."""
    ways = {"torch": backward_of_torch, "torch.compile": partial(backward_of_torch, compiled=True)}
    return ways if _torch.is_here() else {}


def copies(problem, format, dy, x, weight, mean, rstd, dx, *_):
    """One and a half copies of a matrix, which read and write as much as the gradients must at least."""

    def launch(stream):
        dx.copy_to_device(dy, stream=stream)
        _half(dx).copy_to_device(_half(x), stream=stream)

    return launch


def _half(X):
    return X[: -(-X.shape[0] // 2)]


def _table(name, title, baselines, yardsticks):
    ladder = norm.ladder(name)
    return _harness.Table(
        ladder.record, title, (ladder,), baselines=baselines, yardsticks=yardsticks, fastest=len(ladder)
    )


TABLES = [
    _table("rows", "Layer norm and RMS norm", forward_baselines, {"copy": copy}),
    _table("rows_backward", "Gradients of layer norm and RMS norm", backward_baselines, {"copies": copies}),
]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

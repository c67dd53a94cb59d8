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


def forward_rivals(problem, format):
    """torch, eager and compiled."""
    ways = {"torch": forward_of_torch, "torch.compile": partial(forward_of_torch, compiled=True)}
    return ways if _torch.is_here() else {}


def copy(problem, format, x, weight, bias, y, *_):
    """A copy of the matrix, which reads and writes as much as a norm must at least."""
    return lambda stream: y.copy_to_device(x, stream=stream)


FORWARD = _harness.Table(
    norm.ladder("rows").record,
    "Layer norm and RMS norm",
    (norm.ladder("rows"),),
    rivals=forward_rivals,
    yardsticks={"copy": copy},
    fastest=len(norm.ladder("rows")),
)
TABLES = [FORWARD]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

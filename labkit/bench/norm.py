"""`labkit bench norm`: every step of batch norm beside torch, eager and compiled, in either layout."""

from functools import cache, partial
from pathlib import Path

from labkit.bench import _harness, _torch
from labkit.formats import BF16
from labkit.ladder import ladders
from labkit.norm.problem import ARRAYS, BatchForward


def of_torch(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """torch's batch norm and ReLU, with the images in the layout that is asked for.

    The first call also copies its results to where ours stand, for their error to be found; torch keeps the variance of
    the batch to itself, so that it is computed for that.
    """
    import torch

    of = dict(zip(ARRAYS, _torch.tensors(format, *operands[:-1]), strict=True))
    images = of["x"] if problem.layout == "NCHW" else of["x"].permute(0, 3, 1, 2)
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    given = images.contiguous(memory_format=memory_format)
    running = [of[name] for name in ("running_mean", "running_variance", "weight", "bias")]
    call = (_compiled if compiled else _forward)(problem.relu, problem.factor, problem.eps)
    done = []

    def launch():
        y = call(given, *running)
        if not done:
            done.append(True)
            of["y"].copy_(y if problem.layout == "NCHW" else y.permute(0, 2, 3, 1))
            variance, mean = torch.var_mean(images.float(), (0, 2, 3), correction=0)
            of["variance"].copy_(variance)
            of["mean"].copy_(mean)

    return _torch.on_stream(launch)


def _forward(relu, factor, eps):
    import torch

    def forward(x, running_mean, running_variance, weight, bias):
        y = torch.nn.functional.batch_norm(x, running_mean, running_variance, weight, bias, True, factor, eps)
        return torch.relu(y) if relu else y

    return forward


@cache
def _compiled(relu, factor, eps):
    import torch

    return torch.compile(_forward(relu, factor, eps), dynamic=False)


def rivals(problem, format):
    """torch in each layout, eager and compiled."""
    if not _torch.is_here():
        return {}
    return {
        " ".join(filter(None, ("torch.compile" if compiled else "torch", "channels-last" * channels_last))): partial(
            of_torch, compiled=compiled, channels_last=channels_last
        )
        for compiled in (False, True)
        for channels_last in (False, True)
    }


def copy(problem, format, x, weight, bias, y, *_):
    """A copy of the images, which reads and writes as much as batch norm must at least."""
    return lambda stream: y.copy_to_device(x, stream=stream)


TABLES = [
    _harness.Table(
        ladder.record,
        f"Normalisation, {ladder.name}",
        (ladder,),
        formats=(BF16,),
        rivals=rivals,
        yardsticks={"copy": copy},
    )
    for ladder in ladders("norm")
    if ladder.module.PROBLEM is BatchForward
]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

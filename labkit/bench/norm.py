"""`labkit bench norm`: every step of batch norm beside torch, eager and compiled, in either layout."""

from functools import cache
from pathlib import Path

from labkit.bench import _harness, _torch
from labkit.formats import BF16
from labkit.ladder import ladders
from labkit.norm.problem import BatchForward


def of_torch(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """torch's batch norm, a residual where there is one, and ReLU, with the images in the layout that is asked for.

    The first call also copies its results to where ours stand, for their error to be found; torch keeps the variance of
    the batch to itself, so that it is computed for that.
    """
    import torch

    of = problem.arrays_by_name(_torch.tensors(format, *operands[:-1]))
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    images = {
        name: of[name] if problem.layout == "NCHW" else of[name].permute(0, 3, 1, 2) for name in problem.image_arrays
    }
    x, *residual = (images[name].contiguous(memory_format=memory_format) for name in images if name != "y")
    running = [of[name] for name in ("running_mean", "running_variance", "weight", "bias")]
    call = (_compiled if compiled else _forward)(problem.relu, problem.factor, problem.eps)
    done = []

    def launch():
        y = call(x, *running, *residual)
        if not done:
            done.append(True)
            images["y"].copy_(y)
            variance, mean = torch.var_mean(images["x"].float(), (0, 2, 3), correction=0)
            of["variance"].copy_(variance)
            of["mean"].copy_(mean)

    return _torch.on_stream(launch)


def _forward(relu, factor, eps):
    import torch

    def forward(x, running_mean, running_variance, weight, bias, *residual):
        y = torch.nn.functional.batch_norm(x, running_mean, running_variance, weight, bias, True, factor, eps)
        y = y + residual[0] if residual else y
        return torch.relu(y) if relu else y

    return forward


@cache
def _compiled(relu, factor, eps):
    return _torch.compiled(_forward(relu, factor, eps))


def baselines(problem, format):
    """torch in each layout, eager and compiled."""
    return _torch.in_each_layout(of_torch)


def copy(problem, format, *operands):
    """A copy of the images, which reads and writes as much as batch norm must at least, if nothing is added."""
    of = problem.arrays_by_name(operands)
    return lambda stream: of["y"].copy_to_device(of["x"], stream=stream)


TABLES = [
    _harness.Table(
        ladder.record,
        f"Normalisation, {ladder.name}",
        (ladder,),
        formats=(BF16,),
        baselines=baselines,
        yardsticks={"copy": copy},
    )
    for ladder in ladders("norm")
    if issubclass(ladder.module.PROBLEM, BatchForward)
]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

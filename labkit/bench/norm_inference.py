"""`labkit bench norm_inference`: batch norm in inference beside torch, eager and compiled, in either layout."""

from functools import cache
from pathlib import Path

from labkit.bench import _harness, _torch
from labkit.ladder import ladder


def of_torch(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """torch's batch norm in inference, and ReLU, with the images in the layout that is asked for.

    The first call also copies its result to where ours stands, for its error to be found.
    """
    import torch

    of = problem.arrays_by_name(_torch.tensors(format, *operands[:-1]))
    images, result = (X if problem.layout == "NCHW" else X.permute(0, 3, 1, 2) for X in (of["x"], of["y"]))
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    given = images.contiguous(memory_format=memory_format)
    beside = [of[name] for name in ("running_mean", "running_variance", "weight", "bias")]
    call = (_compiled if compiled else _inference)(problem.relu, problem.eps)
    done = []

    @torch.no_grad()
    def launch():
        y = call(given, *beside)
        if not done:
            done.append(True)
            result.copy_(y)

    return _torch.on_stream(launch)


def _inference(relu, eps):
    import torch

    def inference(x, running_mean, running_variance, weight, bias):
        y = torch.nn.functional.batch_norm(x, running_mean, running_variance, weight, bias, eps=eps)
        return torch.relu(y) if relu else y

    return inference


@cache
def _compiled(relu, eps):
    import torch

    return torch.compile(_inference(relu, eps), dynamic=False)


def baselines(problem, format):
    """torch in each layout, eager and compiled."""
    return _torch.in_each_layout(of_torch)


def copy(problem, format, x, weight, bias, y, *_):
    """A copy of the images, which reads and writes as much as batch norm must at least."""
    return lambda stream: y.copy_to_device(x, stream=stream)


_LADDER = ladder("norm", "batch_inference")
TABLE = _harness.Table(
    _LADDER.record, "Batch norm in inference", (_LADDER,), baselines=baselines, yardsticks={"copy": copy}
)


def main(record: bool = False, out: Path | None = None) -> None:
    """The table, and its record if that is asked for."""
    _harness.run(TABLE, record, out)

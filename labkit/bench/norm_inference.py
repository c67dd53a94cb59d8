"""`labkit bench norm_inference`: batch norm in inference compared with torch, eager and compiled, in either layout."""

from functools import cache, partial

from labkit.bench import _harness, _torch
from labkit.ladder import ladder


def torch_inference(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """Return a launch of torch's batch norm in inference, and ReLU, of images in a layout."""
    import torch

    tensors = problem.arrays_by_name(_torch.tensors(format, *operands[:-1]))  # all but the workspace
    images, result = (X if problem.layout == "NCHW" else X.permute(0, 3, 1, 2) for X in (tensors["x"], tensors["y"]))
    x = images.contiguous(memory_format=_torch.memory_format(channels_last))
    parameters = [tensors[name] for name in ("running_mean", "running_variance", "weight", "bias")]
    inference = (_compiled if compiled else _inference)(problem.relu, problem.eps)
    call = torch.no_grad()(partial(inference, x, *parameters))
    return _torch.launch_on_stream(call, store_first_result=result.copy_)  # into y, which the harness checks


def _inference(relu, eps):
    import torch

    def inference(x, running_mean, running_variance, weight, bias):
        y = torch.nn.functional.batch_norm(x, running_mean, running_variance, weight, bias, eps=eps)
        return torch.relu(y) if relu else y

    return inference


@cache
def _compiled(relu, eps):
    return _torch.compiled(_inference(relu, eps))


def baselines(problem, format):
    """Return the baselines by name: torch in each layout, eager and compiled."""
    return _torch.in_each_layout(torch_inference)


def copy(problem, format, x, weight, bias, y, *_):
    """Return a copy of the images, which moves the least bytes that batch norm can move."""
    return lambda stream: y.copy_to_device(x, stream=stream)


_LADDER = ladder("norm", "batch_inference")
CONTENDERS = {"baselines": baselines, "yardsticks": {"copy": copy}}
TABLE = _harness.Benchmark(name=_LADDER.record, title="Batch norm in inference", ladders=(_LADDER,), **CONTENDERS)
main = partial(_harness.run, TABLE)

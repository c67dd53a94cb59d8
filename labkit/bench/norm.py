"""`labkit bench norm`: every step of batch norm compared with torch, eager and compiled, in either layout."""

from functools import cache, partial

from labkit.bench import _harness, _torch
from labkit.formats import BF16
from labkit.ladder import ladders
from labkit.norm.problem import BatchForward


def torch_batch_norm(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """Return torch's batch norm, with a residual if there is one and ReLU, of images in a layout.

    torch does not return the batch's variance, which is therefore computed after the first call.
    """
    import torch

    tensors = problem.arrays_by_name(_torch.tensors(format, *operands[:-1]))
    memory_format, images = _torch.memory_format(channels_last), _torch.as_nchw(problem, tensors)
    x, *residual = (images[name].contiguous(memory_format=memory_format) for name in images if name != "y")
    running = [tensors[name] for name in ("running_mean", "running_variance", "weight", "bias")]
    forward = (_compiled if compiled else _forward)(problem.relu, problem.batch_weight, problem.eps)

    def store(y):
        images["y"].copy_(y)
        variance, mean = torch.var_mean(images["x"].float(), (0, 2, 3), correction=0)
        tensors["variance"].copy_(variance)
        tensors["mean"].copy_(mean)

    return _torch.launch_on_stream(partial(forward, x, *running, *residual), store_first_result=store)


def _forward(relu, momentum, eps):
    import torch

    def forward(x, running_mean, running_variance, weight, bias, *residual):
        y = torch.nn.functional.batch_norm(x, running_mean, running_variance, weight, bias, True, momentum, eps)
        y = y + residual[0] if residual else y
        return torch.relu(y) if relu else y

    return forward


@cache
def _compiled(relu, momentum, eps):
    return _torch.compiled(_forward(relu, momentum, eps))


def baselines(problem, format):
    """Return the baselines by name: torch in each layout, eager and compiled."""
    return _torch.in_each_layout(torch_batch_norm)


def copy(problem, format, *operands):
    """Return a copy of the images, which moves the least bytes that batch norm without a residual can move."""
    arrays = problem.arrays_by_name(operands)
    return lambda stream: arrays["y"].copy_to_device(arrays["x"], stream=stream)


OPTIONS = {"formats": (BF16,), "baselines": baselines, "yardsticks": {"copy": copy}}
TABLES = [
    _harness.Benchmark(ladder.record, f"Normalisation, {ladder.name}", ladders=(ladder,), **OPTIONS)
    for ladder in ladders("norm")
    if issubclass(ladder.module.PROBLEM, BatchForward)
]
main = partial(_harness.run_all, TABLES)

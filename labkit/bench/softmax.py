"""`labkit bench softmax`: every step of softmax and of its gradient compared with torch, eager and compiled."""

from functools import partial

from labkit import softmax
from labkit.bench import _harness, _torch


def torch_launch(function, problem, format, *operands, compiled: bool = False):
    """Return a launch of a function of torch, whose inputs are all arrays but the last one, the output."""
    *inputs, out = _torch.tensors(format, *operands[:-1])
    call = _torch.compiled(function) if compiled else function
    return _torch.launch_on_stream(partial(call, *inputs), store_first_result=out.copy_)


def _forward(x):
    return x.softmax(1)


def _backward(dy, y):
    import torch

    return torch.ops.aten._softmax_backward_data(dy, y, 1, y.dtype)


def forward_baselines(problem, format):
    """Return the baselines by name: torch, eager and compiled."""
    return _torch.eager_and_compiled(partial(torch_launch, _forward))


def backward_baselines(problem, format):
    """Return the baselines by name: torch, eager and compiled."""
    return _torch.eager_and_compiled(partial(torch_launch, _backward))


def copy(problem, format, x, y, *_):
    """Return a copy of the matrix, which moves the least bytes that a softmax can move."""
    return lambda stream: y.copy_to_device(x, stream=stream)


def copies(problem, format, dy, y, dx, *_):
    """Return one and a half copies of a matrix, which move the least bytes that the gradient can move."""
    return _harness.one_and_a_half_copies(dx, dy, y)


FORWARD = {"baselines": forward_baselines, "yardsticks": {"copy": copy}}
BACKWARD = {"baselines": backward_baselines, "yardsticks": {"copies": copies}}
TABLES = [
    _harness.benchmark_of_ladder(softmax.ladder("forward"), "Softmax of rows", **FORWARD),
    _harness.benchmark_of_ladder(softmax.ladder("backward"), "Gradient of softmax of rows", **BACKWARD),
]
main = partial(_harness.run_all, TABLES)

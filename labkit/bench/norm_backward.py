"""`labkit bench norm_backward`: batch norm's gradients compared with torch, eager and compiled, in either layout."""

from functools import cache, partial

from labkit.bench import _harness, _torch
from labkit.formats import BF16
from labkit.ladder import ladders
from labkit.norm.backward import BatchBackward


def torch_gradients(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """Return the gradients of torch's batch norm, with a residual if there is one and ReLU, of images in a layout.

    Autograd computes them, as in training, from what an eager or compiled forward pass kept. The forward pass runs
    once, in the first call, which is not timed.
    """
    import torch

    tensors = problem.arrays_by_name(_torch.tensors(format, *operands[:-1]))
    memory_format, images = _torch.memory_format(channels_last), _torch.as_nchw(problem, tensors)
    dy, x, *y = (
        images[name].contiguous(memory_format=memory_format) for name in images if name[:2] not in ("dx", "dr")
    )
    bias = tensors.get("bias", torch.zeros_like(tensors["weight"]))
    inputs = {"dx": x, "dweight": tensors["weight"], "dbias": bias}
    if y:
        inputs["dresidual"] = _residual_of(y[0], x, tensors["weight"], problem.eps)
    inputs = {
        name: X.detach().clone(memory_format=torch.preserve_format).requires_grad_() for name, X in inputs.items()
    }
    forward = (_compiled if compiled else _forward)(problem.relu, problem.eps)
    outputs = []

    def call():
        if not outputs:
            outputs.append(forward(*inputs.values()))
        return torch.autograd.grad(outputs[0], list(inputs.values()), dy, retain_graph=True)

    def store(gradients):
        for name, gradient in zip(inputs, gradients, strict=True):
            images.get(name, tensors[name]).copy_(gradient)

    return _torch.launch_on_stream(call, store_first_result=store)


def _residual_of(y, x, weight, eps):
    """Return a residual with which the forward pass gives y; where y is 0, the sum before ReLU is negative."""
    import torch

    sum_before = torch.nn.functional.batch_norm(x, None, None, weight, training=True, eps=eps)
    return torch.where(y > 0, y, -1) - sum_before


def _forward(relu, eps):
    import torch

    def forward(x, weight, bias, *residual):
        y = torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
        y = y + residual[0] if residual else y
        return torch.relu(y) if relu else y

    return forward


@cache
def _compiled(relu, eps):
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # a backward pass that runs again must leave what it was given
    return _torch.compiled(_forward(relu, eps))


def baselines(problem, format):
    """Return the baselines by name: torch in each layout, eager and compiled."""
    return _torch.in_each_layout(torch_gradients)


def copy(problem, format, *operands):
    """Return copies of three times the images' bytes, the least that gradients without a residual can move."""
    arrays = problem.arrays_by_name(operands)
    half = problem.N // 2

    def launch(stream):
        arrays["dx"].copy_to_device(arrays["x"], stream=stream)
        if half:
            arrays["dx"][:half].copy_to_device(arrays["dy"][:half], stream=stream)

    return launch


OPTIONS = {"formats": (BF16,), "baselines": baselines, "yardsticks": {"copy": copy}}
TABLES = [
    _harness.Benchmark(ladder.record, f"Gradients of batch norm, {ladder.name}", ladders=(ladder,), **OPTIONS)
    for ladder in ladders("norm")
    if issubclass(ladder.module.PROBLEM, BatchBackward)
]
main = partial(_harness.run_all, TABLES)

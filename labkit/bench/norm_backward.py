"""`labkit bench norm_backward`: steps of batch norm's gradients beside torch, eager and compiled, in either layout."""

from functools import cache
from pathlib import Path

from labkit.bench import _harness, _torch
from labkit.formats import BF16
from labkit.ladder import ladders
from labkit.norm.backward import BatchBackward


def of_torch(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """The gradients of torch's batch norm, a residual where there is one, and ReLU, with the images in a layout.

    They are what a user gets who trains: autograd's, of a forward pass that was eager or compiled, and that kept what
    its own backward pass takes. The forward pass runs once, beside the clock. The first call also copies its results to
    where ours stand, for their error to be found.
    """
    import torch

    of = problem.arrays_by_name(_torch.tensors(format, *operands[:-1]))
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    images = {
        name: of[name] if problem.layout == "NCHW" else of[name].permute(0, 3, 1, 2) for name in problem.image_arrays
    }
    dy, x, *y = (
        images[name].contiguous(memory_format=memory_format) for name in images if name[:2] not in ("dx", "dr")
    )
    bias = of.get("bias", torch.zeros_like(of["weight"]))
    given = {"dx": x, "dweight": of["weight"], "dbias": bias}
    if y:
        given["dresidual"] = _residual_of(y[0], x, of["weight"], problem.eps)
    given = {name: X.detach().clone(memory_format=torch.preserve_format).requires_grad_() for name, X in given.items()}
    call = (_compiled if compiled else _forward)(problem.relu, problem.eps)
    outputs = []

    def launch():
        is_first = not outputs
        if is_first:
            outputs.append(call(*given.values()))
        found = torch.autograd.grad(outputs[0], list(given.values()), dy, retain_graph=True)
        if is_first:
            for name, gradient in zip(given, found, strict=True):
                images.get(name, of[name]).copy_(gradient)

    return _torch.on_stream(launch)


def _residual_of(y, x, weight, eps):
    """What was added before ReLU, so that it gives y again; where y is 0, so much that the sum is below zero."""
    import torch

    before = torch.nn.functional.batch_norm(x, None, None, weight, training=True, eps=eps)
    return torch.where(y > 0, y, -1) - before


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
    """torch in each layout, eager and compiled."""
    return _torch.in_each_layout(of_torch)


def copy(problem, format, *operands):
    """Copies that read and write three times as many bytes as the images have, as gradients must at least, if there is
    no residual.
    """
    of = problem.arrays_by_name(operands)
    half = problem.N // 2

    def launch(stream):
        of["dx"].copy_to_device(of["x"], stream=stream)
        if half:
            of["dx"][:half].copy_to_device(of["dy"][:half], stream=stream)

    return launch


TABLES = [
    _harness.Table(
        ladder.record,
        f"Gradients of batch norm, {ladder.name}",
        (ladder,),
        formats=(BF16,),
        baselines=baselines,
        yardsticks={"copy": copy},
    )
    for ladder in ladders("norm")
    if issubclass(ladder.module.PROBLEM, BatchBackward)
]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

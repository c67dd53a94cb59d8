"""`labkit bench norm_backward`: steps of batch norm's gradients beside torch, eager and compiled, in either layout."""

from functools import cache, partial
from pathlib import Path

from labkit.bench import _harness, _torch
from labkit.formats import BF16
from labkit.ladder import ladders
from labkit.norm.backward import BatchBackward


def of_torch(problem, format, *operands, compiled: bool = False, channels_last: bool = False):
    """The gradients of torch's batch norm and ReLU, with the images in the layout that is asked for.

    They are what a user gets who trains: autograd's, of a forward pass that was eager or compiled, and that kept what
    its own backward pass takes. The forward pass runs once, beside the clock. The first call also copies its results to
    where ours stand, for their error to be found.
    """
    import torch

    of = problem.named(_torch.tensors(format, *operands[:-1]))
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    dy, x = (_in_nchw(problem, of[name]).contiguous(memory_format=memory_format) for name in ("dy", "x"))
    given = [
        X.detach().clone(memory_format=torch.preserve_format).requires_grad_() for X in (x, of["weight"], of["bias"])
    ]
    call = (_compiled if compiled else _forward)(problem.relu, problem.eps)
    outputs = []

    def launch():
        is_first = not outputs
        if is_first:
            outputs.append(call(*given))
        found = torch.autograd.grad(outputs[0], given, dy, retain_graph=True)
        if is_first:
            for name, gradient in zip(("dx", "dweight", "dbias"), found, strict=True):
                (_in_nchw(problem, of[name]) if name == "dx" else of[name]).copy_(gradient)

    return _torch.on_stream(launch)


def _in_nchw(problem, images):
    return images if problem.layout == "NCHW" else images.permute(0, 3, 1, 2)


def _forward(relu, eps):
    import torch

    def forward(x, weight, bias):
        y = torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
        return torch.relu(y) if relu else y

    return forward


@cache
def _compiled(relu, eps):
    import torch
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # a backward pass that runs again must leave what it was given
    return torch.compile(_forward(relu, eps), dynamic=False)


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


def copy(problem, format, *operands):
    """Copies that read and write three times as many bytes as the images have, as gradients must at least."""
    of = problem.named(operands)
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
        rivals=rivals,
        yardsticks={"copy": copy},
    )
    for ladder in ladders("norm")
    if ladder.module.PROBLEM is BatchBackward
]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

"""`labkit bench softmax`: every step of softmax and of its gradient beside torch, eager and compiled, and a copy."""

from functools import partial
from pathlib import Path

from labkit import softmax
from labkit.bench import _harness, _torch


def of_torch(call, problem, format, *operands):
    """A function of torch's as a contender: it takes all arrays but the last, into which its first result is copied."""
    *given, out = _torch.tensors(format, *operands[:-1])
    done = []

    def launch():
        found = call(*given)
        if not done:
            done.append(True)
            out.copy_(found)

    return _torch.on_stream(launch)


def _compiled(call, problem, format, *operands):
    return of_torch(_torch.compiled(call), problem, format, *operands)


def _forward(x):
    return x.softmax(1)


def _backward(dy, y):
    import torch

    return torch.ops.aten._softmax_backward_data(dy, y, 1, y.dtype)


def _baselines(call):
    def baselines(problem, format):
        """torch, eager and compiled."""
        ways = {"torch": partial(of_torch, call), "torch.compile": partial(_compiled, call)}
        return ways if _torch.is_here() else {}

    return baselines


forward_baselines, backward_baselines = _baselines(_forward), _baselines(_backward)


def copy(problem, format, x, y, *_):
    """A copy of the matrix, which reads and writes as much as a softmax must at least."""
    return lambda stream: y.copy_to_device(x, stream=stream)


def copies(problem, format, dy, y, dx, *_):
    """One and a half copies of a matrix, which read and write as much as the gradient must at least."""
    half = -(-dx.shape[0] // 2)

    def launch(stream):
        dx.copy_to_device(dy, stream=stream)
        dx[:half].copy_to_device(y[:half], stream=stream)

    return launch


def _table(name, title, baselines, yardsticks):
    ladder = softmax.ladder(name)
    return _harness.Table(
        ladder.record, title, (ladder,), baselines=baselines, yardsticks=yardsticks, fastest=len(ladder)
    )


TABLES = [
    _table("forward", "Softmax of rows", forward_baselines, {"copy": copy}),
    _table("backward", "Gradient of softmax of rows", backward_baselines, {"copies": copies}),
]


def main(record: bool = False, out: Path | None = None) -> None:
    """A table and a record for each ladder, one after the other."""
    for table in TABLES:
        _harness.run(table, record, out)

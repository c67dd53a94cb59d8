"""`labkit bench elementwise`: every kernel (step) compared with torch, eager and compiled, and with copies."""

from functools import partial

from labkit import elementwise
from labkit.bench import _harness, _torch
from labkit.bench.softmax import torch_launch


def _geglu(gate, up):
    import torch

    return torch.nn.functional.gelu(gate) * up


def baselines(problem, format):
    """Return the baselines by name: torch, eager and compiled."""
    return _torch.eager_and_compiled(partial(torch_launch, _geglu))


def copies(problem, format, gate, up, y, *_):
    """Return a launch of one and a half matrix copies, which read and write equally many bytes."""
    return _harness.one_and_a_half_copies(y, gate, up)


TABLES = [
    _harness.benchmark_of_ladder(elementwise.ladder(name), title, baselines=baselines, yardsticks={"copies": copies})
    for name, title in {"gated_gelu": "GEGLU"}.items()
]
main = partial(_harness.run_all, TABLES)

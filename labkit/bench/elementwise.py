"""`labkit bench elementwise`: every step compared with torch, eager and compiled, and with copies."""

from pathlib import Path

from labkit import elementwise
from labkit.bench import _harness, _torch
from labkit.bench.softmax import of_torch


def _geglu(gate, up):
    import torch

    return torch.nn.functional.gelu(gate) * up


def _compiled(problem, format, *operands):
    return of_torch(_torch.compiled(_geglu), problem, format, *operands[:3])


def baselines(problem, format):
    """Return the baselines: torch, eager and compiled."""
    ways = {"torch": lambda problem, format, *operands: of_torch(_geglu, problem, format, *operands[:3])}
    return ways | {"torch.compile": _compiled} if _torch.is_here() else {}


def copies(problem, format, gate, up, y, *_):
    """Return a launch of one and a half matrix copies, which read and write equally many bytes."""
    half = -(-y.shape[0] // 2)

    def launch(stream):
        y.copy_to_device(gate, stream=stream)
        y[:half].copy_to_device(up[:half], stream=stream)

    return launch


def main(record: bool = False, out: Path | None = None) -> None:
    """Print a table per ladder, and record it if requested."""
    for name, title in {"gated_gelu": "GEGLU"}.items():
        ladder = elementwise.ladder(name)
        table = _harness.Table(
            ladder.record, title, (ladder,), baselines=baselines, yardsticks={"copies": copies}, fastest=len(ladder)
        )
        _harness.run(table, record, out)

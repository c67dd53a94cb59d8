"""`labkit bench conv_choices`: every algorithm that applies beside the rivals, and which of them are chosen.

For the layers of the cuDNN paper, and for the 3x3 layers of VGG-16 and ResNet-50, float32 forward: each algorithm as a
plan with its workspace, its predicted time, which one `conv.heuristic` names, and which one `conv.find`.
"""

from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from labkit import conv
from labkit.bench import _harness, _record
from labkit.bench.conv import rivals
from labkit.calls.memory import Reserve
from labkit.calls.plan import make_plan
from labkit.conv.interface.convolution import ConvByProblem
from labkit.conv.layers import RESNET_50_3X3, TABLE_2, VGG_16, batched
from labkit.formats import FP32

TITLE = "conv.forward"
RECORDS = {
    "conv_choices": (*batched(16, TABLE_2), *batched(128, TABLE_2)),
    "conv_choices_3x3": (*batched(64, VGG_16, 1), *batched(64, RESNET_50_3X3, 1)),
}


def main(record: bool = False, out: Path | None = None) -> None:
    found = _record.require_gpu("times kernels")
    for name, layers in RECORDS.items():
        watched = track(layers, name, console=Console(stderr=True))
        rows = [row for sizes in watched for row in measure(conv.Forward(*sizes), name)]
        _harness.show(f"{TITLE} on {found.name}", rows)
        _record.show("what is chosen", summary(rows), {"problem": "", "heuristic": "", "find": "", "loss": ".1%"})
        _record.finish(name, rows, found.name, record, out)


def measure(layer, name: str) -> list[dict]:
    """A row for each algorithm and rival, with what was predicted and chosen."""
    predicted = conv.heuristic(layer)
    known = {str(row.algorithm): row for row in predicted if not row.reason}
    ours = {one: partial(_way, row.algorithm, Reserve()) for one, row in known.items()}
    rows = _harness.measure(_harness.Table(name, TITLE, (), ours=ours, rivals=rivals), layer, FP32)
    fastest = str(conv.find(layer).best)
    return [
        row
        | {
            "workspace_bytes": known[row["step"]].workspace_bytes,
            "predicted_ms": known[row["step"]].time_ms,
            "is_predicted_best": row["step"] == str(predicted.best),
            "is_found_best": row["step"] == fastest,
        }
        for row in rows
    ]


def summary(rows: list[dict]) -> list[dict]:
    """For each problem what was chosen, and how much longer the predicted choice took than the fastest."""
    lines = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        times = {row["step"]: row["time_ms"] for row in rows if row["problem"] == problem}
        (named,) = {row["step"] for row in rows if row["problem"] == problem and row["is_predicted_best"]}
        (found,) = {row["step"] for row in rows if row["problem"] == problem and row["is_found_best"]}
        loss = times[named] / min(times.values()) - 1
        lines.append({"problem": problem, "heuristic": named, "find": found, "loss": loss})
    return lines


def _way(algorithm, reserve, problem, format, x, w, y, _):
    plan = make_plan(ConvByProblem(problem, format, algorithm), {"x": x, "w": w, "y": y}, reserve=reserve)
    return lambda stream: plan(stream=stream)

"""`labkit bench conv_choices`: every applicable algorithm compared with the baselines, and the choices among them.

For the layers of the cuDNN paper, and for the 3x3 layers of VGG-16 and ResNet-50, float32 forward: each algorithm as a
plan with its workspace, its predicted time, which one `conv.heuristic` names, and which one `conv.find`.
"""

from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from labkit import conv
from labkit.bench import _harness, _record
from labkit.bench.conv import baselines
from labkit.calls.memory import PlanWorkspace
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
    """Return a row for each algorithm and baseline, with predictions and choices."""
    predicted = conv.heuristic(layer)
    applicable = {str(row.algorithm): row for row in predicted if not row.reason}
    ours = {name: partial(_plan_of, row.algorithm, PlanWorkspace()) for name, row in applicable.items()}
    rows = _harness.measure(_harness.Table(name, TITLE, (), ours=ours, baselines=baselines), layer, FP32)
    fastest = str(conv.find(layer).best)
    for row in rows:
        prediction = applicable[row["step"]]
        row |= {"workspace_bytes": prediction.workspace_bytes, "predicted_ms": prediction.time_ms}
        row |= {"is_predicted_best": row["step"] == str(predicted.best), "is_found_best": row["step"] == fastest}
    return rows


def summary(rows: list[dict]) -> list[dict]:
    """Return the choices for each problem, and the relative loss of the predicted one against the fastest."""
    lines = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        times = {row["step"]: row["time_ms"] for row in rows if row["problem"] == problem}
        (named,) = {row["step"] for row in rows if row["problem"] == problem and row["is_predicted_best"]}
        (found,) = {row["step"] for row in rows if row["problem"] == problem and row["is_found_best"]}
        loss = times[named] / min(times.values()) - 1
        lines.append({"problem": problem, "heuristic": named, "find": found, "loss": loss})
    return lines


def _plan_of(algorithm, reserve, problem, format, x, w, y, _):
    plan = make_plan(ConvByProblem(problem, format, algorithm), {"x": x, "w": w, "y": y}, workspace=reserve)
    return lambda stream: plan(stream=stream)

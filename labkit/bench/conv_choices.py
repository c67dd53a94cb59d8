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
COLUMNS = {"problem": "", "heuristic": "", "find": "", "loss": ".1%"}
RECORDS = {
    "conv_choices": (*batched(16, TABLE_2), *batched(128, TABLE_2)),
    "conv_choices_3x3": (*batched(64, VGG_16, 1), *batched(64, RESNET_50_3X3, 1)),
}


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times kernels")
    for name, layers in RECORDS.items():
        layers_with_progress = track(layers, name, console=Console(stderr=True))
        rows = [row for sizes in layers_with_progress for row in measure(conv.Forward(*sizes), name)]
        _harness.print_comparison(f"{TITLE} on {gpu.name}", rows)
        _record.print_table("what is chosen", summary(rows), COLUMNS)
        _record.store_if_requested(name, rows, gpu.name, record, out)


def measure(layer, name: str) -> list[dict]:
    """Return a row for each algorithm and baseline, with predictions and choices."""
    predicted = conv.heuristic(layer)
    applicable = {str(row.algorithm): row for row in predicted if not row.reason}
    ours = {name: partial(algorithm_launch, row.algorithm, PlanWorkspace()) for name, row in applicable.items()}
    rows = _harness.measure(_harness.Benchmark(name, TITLE, ladders=(), ours=ours, baselines=baselines), layer, FP32)
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
        (predicted,) = {row["step"] for row in rows if row["problem"] == problem and row["is_predicted_best"]}
        (fastest,) = {row["step"] for row in rows if row["problem"] == problem and row["is_found_best"]}
        loss = times[predicted] / min(times.values()) - 1
        lines.append({"problem": problem, "heuristic": predicted, "find": fastest, "loss": loss})
    return lines


def algorithm_launch(algorithm, workspace, problem, format, x, w, y, _):
    """Return a launch of an algorithm as a plan, whose workspace is reused by later launches."""
    plan = make_plan(ConvByProblem(problem, format, algorithm), {"x": x, "w": w, "y": y}, workspace=workspace)
    return lambda stream: plan(stream=stream)

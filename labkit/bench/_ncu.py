"""Nsight Compute (ncu) over a program: metrics of each of its launches."""

import csv
import io
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import labkit


def start(program: list[str], metrics: Iterable[str], table: Path, options: Iterable[str] = ()) -> subprocess.Popen:
    """Start a program under ncu, which writes its metrics to `table`, flushes caches and does not lock clocks."""
    table.unlink(missing_ok=True)
    command = ["ncu", "--csv", "--log-file", str(table), "--print-units", "base", "--clock-control", "none"]
    command += ["--cache-control", "all", *options, "--metrics", ",".join(metrics), *program]
    path = os.pathsep.join(filter(None, [str(Path(labkit.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "LABKIT_DEVICE": "gpu"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )


def wait(process: subprocess.Popen, table: Path) -> None:
    """Wait for ncu, and raise a RuntimeError with what it said if it failed."""
    output, _ = process.communicate()
    if process.returncode != 0:
        text = table.read_text(encoding="utf-8", errors="replace") if table.exists() else ""
        raise RuntimeError(f"ncu read nothing: {output[-1000:]}{text[-1000:]}")


def read(table: Path) -> list[dict[str, float]]:
    """Return the metrics of each launch by name, in the order of the launches."""
    text = table.read_text(encoding="utf-8", errors="replace")
    begin = text.find('"ID"')
    if begin < 0:
        raise RuntimeError(f"ncu read nothing: {text[-1000:]}")
    metrics: dict[int, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(text[begin:])):
        metrics.setdefault(int(row["ID"]), {})[row["Metric Name"]] = _number(row["Metric Value"])
    return [metrics[number] for number in sorted(metrics)]


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:  # "n/a"
        return float("nan")

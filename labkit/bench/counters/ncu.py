"""Nsight Compute (ncu) over one process that makes every launch once, and the metrics that it read."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import labkit
from labkit.bench.counters.compared import METRICS
from labkit.forecast.sass import Sass, parsed


@dataclass(frozen=True)
class Profiled:
    """One launch on the GPU: its metrics by name, and the machine code that ran."""

    metrics: dict[str, float]
    sass: Sass


@dataclass(frozen=True)
class Profile:
    """A run of ncu that has been started, and the files that it writes."""

    process: subprocess.Popen
    csv: Path
    sass: Path


def start(folder: Path) -> Profile:
    """Start ncu; it flushes caches before each launch and does not lock clocks."""
    folder.mkdir(parents=True, exist_ok=True)
    table, sass = folder / "ncu.csv", folder / "sass.json"
    table.unlink(missing_ok=True)
    command = ["ncu", "--csv", "--log-file", str(table), "--print-units", "base", "--clock-control", "none"]
    command += ["--cache-control", "all", "--metrics", ",".join(METRICS)]
    command += [sys.executable, "-m", "labkit.bench.counters.launching", str(sass)]
    path = os.pathsep.join(filter(None, [str(Path(labkit.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "LABKIT_DEVICE": "gpu"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    return Profile(process, table, sass)


def finish(profile: Profile) -> list[Profiled]:
    """Wait for the run, and read its files."""
    output, _ = profile.process.communicate()
    if profile.process.returncode != 0:
        text = profile.csv.read_text(encoding="utf-8", errors="replace") if profile.csv.exists() else ""
        raise RuntimeError(f"ncu read nothing: {output[-1000:]}{text[-1000:]}")
    return read(profile.csv, profile.sass)


def read(table: Path, sass: Path) -> list[Profiled]:
    """Read the files of a run: its launches in order."""
    text = table.read_text(encoding="utf-8", errors="replace")
    begin = text.find('"ID"')
    if begin < 0:
        raise RuntimeError(f"ncu read nothing: {text[-1000:]}")
    metrics: dict[int, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(text[begin:])):
        metrics.setdefault(int(row["ID"]), {})[row["Metric Name"]] = _number(row["Metric Value"])
    code = json.loads(sass.read_text(encoding="utf-8"))
    return [Profiled(metrics[number], parsed(text)) for number, text in zip(sorted(metrics), code, strict=True)]


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:  # "n/a"
        return float("nan")

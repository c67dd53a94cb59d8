"""Nsight Compute (ncu) over one process that makes every launch once, and the metrics that it read."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from labkit.bench import _ncu
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
    program = [sys.executable, "-m", "labkit.bench.counters.launching", str(sass)]
    return Profile(_ncu.start(program, METRICS, table), table, sass)


def finish(profile: Profile) -> list[Profiled]:
    """Wait for the run, and read its files."""
    _ncu.wait(profile.process, profile.csv)
    return read(profile.csv, profile.sass)


def read(table: Path, sass: Path) -> list[Profiled]:
    """Read the files of a run: its launches in order."""
    code = json.loads(sass.read_text(encoding="utf-8"))
    return [Profiled(metrics, parsed(text)) for metrics, text in zip(_ncu.read(table), code, strict=True)]

"""Runs notebooks under pytest and nbval, each in a process and a folder of its own, and reads how their cells fared."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

CELL_TIMEOUT_S = 60


@dataclass(frozen=True)
class CellResult:
    """How one cell fared; `said` is its error or what it displayed."""

    passed: bool
    timed_out: bool
    said: str


def run_notebooks(
    notebooks: Mapping[str, nbformat.NotebookNode], cell_timeout_s: float = CELL_TIMEOUT_S
) -> dict[str, dict[str, CellResult]]:
    """The results of every notebook, by name, and of its cells, by id; one at a time a core."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = pool.map(lambda notebook: _run(notebook, cell_timeout_s), notebooks.values())
        return dict(zip(notebooks, results, strict=True))


def _run(notebook, cell_timeout_s):
    """The cells of one notebook, in a folder and under a pytest of its own."""
    with TemporaryDirectory(prefix="labkit-grade-", ignore_cleanup_errors=True) as folder:
        nbformat.write(notebook, Path(folder) / "notebook.ipynb")
        lines = _pytest(Path(folder), cell_timeout_s)
    return {line["cell"]: CellResult(line["passed"], line["timed_out"], line["said"]) for line in lines}


def _pytest(folder, cell_timeout_s):
    """One pytest process; the lines that the plugin wrote, read when it has ended."""
    lines = folder / "cells.jsonl"
    lines.touch()
    command = [sys.executable, "-P", "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}"]
    command += "--noconftest -q --color=no -p no:cacheprovider -p labkit.grading.plugin".split()
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_timeout_s}"]
    command += [f"--cell-results={lines}", "notebook.ipynb"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "LABKIT_DEVICE": "simulator"}, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run a notebook:\n{done.stdout}\n{done.stderr}")
    return [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]

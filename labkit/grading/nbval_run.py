"""Runs of a notebook under pytest and nbval, in a process and a folder of their own."""

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from labkit.grading.judge import DETAILS
from labkit.grading.process import Limits, run

# variables of the environment that give each kernel one core
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
START_S = 120  # limit for pytest, a kernel and the imports of the first cell
MAX_LINES = 5  # of pytest's output


@dataclass(frozen=True)
class CellResult:
    """The result of one cell.

    output: its error message or what it printed. cpu_s: seconds of its kernel. details: what it wrote to its file.
    """

    passed: bool
    hung: bool
    dead: bool
    output: str
    cpu_s: float = 0
    details: str = ""


def run_notebook(notebook: nbformat.NotebookNode, cell_timeout_s: float) -> dict[str, CellResult]:
    """Run a notebook; return the results by cell, up to a cell that hangs or ends the kernel.

    The first cell always has a result; if it was not run, that has the last lines of pytest's output.
    """
    with TemporaryDirectory(prefix="labkit-grade-", ignore_cleanup_errors=True) as folder:
        nbformat.write(notebook, Path(folder) / "notebook.ipynb")
        lines = Path(folder) / "cells.jsonl"
        lines.touch()
        limits = Limits(seconds=START_S + cell_timeout_s * len(notebook.cells))
        command = [*nbval_command(str(lines), cell_timeout_s), f"--cell-details={DETAILS}"]
        _, printed = run(command, Path(folder), _make_environment(folder), limits)
        written = lines.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = [json.loads(line) for line in written if line.strip() and line.endswith("\n")]
    results = {row.pop("cell"): CellResult(**row) for row in rows}
    first = results.setdefault(notebook.cells[0].id, CellResult(passed=False, hung=False, dead=True, output=""))
    if not (first.passed or first.output or first.hung):
        results[notebook.cells[0].id] = replace(first, output="\n".join(printed.strip().splitlines()[-MAX_LINES:]))
    return results


def nbval_command(lines: str, cell_timeout_s: float) -> list[str]:
    """Return the command that runs `notebook.ipynb` in its working folder and writes one line of JSON per cell."""
    command = [sys.executable, "-P", "-m", "pytest", "-c", os.devnull, "--rootdir=."]
    command += "--noconftest -q --color=no --tb=no -p no:cacheprovider".split()
    command += "-p labkit.grading.fast_start -p nbval.plugin -p labkit.grading.plugin".split()
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_timeout_s}"]
    return [*command, f"--cell-results={lines}", "notebook.ipynb"]


def _make_environment(folder):
    """Return an environment without the user's settings of Jupyter, IPython and pytest."""
    own = {name: folder for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    alone = {"LABKIT_DEVICE": "simulator", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return {**os.environ, **own, **alone, **ONE_THREAD}

"""Runs a notebook under pytest and nbval, in a process and a folder of its own, and reads how its cells fared."""

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from labkit.grading.process import Limits, run

ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}  # a kernel a core
START_S = 120  # at most, for pytest and a kernel, and for what the first cell imports
MAX_LINES = 5  # of what pytest printed


@dataclass(frozen=True)
class CellResult:
    """How one cell fared; `said` is its error or what it displayed."""

    passed: bool
    hung: bool
    dead: bool
    said: str


def run_notebook(notebook: nbformat.NotebookNode, cell_timeout_s: float) -> dict[str, CellResult]:
    """The results by cell, as far as the run came: it stops at a cell that hangs, and with the kernel.

    There is always one of the first cell; where that was not run, it says what pytest printed last.
    """
    with TemporaryDirectory(prefix="labkit-grade-", ignore_cleanup_errors=True) as folder:
        nbformat.write(notebook, Path(folder) / "notebook.ipynb")
        lines = Path(folder) / "cells.jsonl"
        lines.touch()
        limits = Limits(START_S + cell_timeout_s * len(notebook.cells))
        _, printed = run(nbval_command(str(lines), cell_timeout_s), Path(folder), _make_environment(folder), limits)
        written = lines.read_text(encoding="utf-8").splitlines(keepends=True)
    found = [json.loads(line) for line in written if line.strip() and line.endswith("\n")]
    results = {line.pop("cell"): CellResult(**line) for line in found}
    first = results.setdefault(notebook.cells[0].id, CellResult(False, False, True, ""))
    if not (first.passed or first.said or first.hung):
        results[notebook.cells[0].id] = replace(first, said="\n".join(printed.strip().splitlines()[-MAX_LINES:]))
    return results


def nbval_command(lines: str, cell_timeout_s: float) -> list[str]:
    """The command that runs `notebook.ipynb` in the folder where it starts, and writes a line of JSON a cell."""
    command = [sys.executable, "-P", "-m", "pytest", "-c", os.devnull, "--rootdir=."]
    command += "--noconftest -q --color=no --tb=no -p no:cacheprovider -p nbval.plugin -p labkit.grading.plugin".split()
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_timeout_s}"]
    return [*command, f"--cell-results={lines}", "notebook.ipynb"]


def _make_environment(folder):
    """Nothing of the user's Jupyter, IPython and pytest has a part in it."""
    own = {name: folder for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    alone = {"LABKIT_DEVICE": "simulator", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return {**os.environ, **own, **alone, **ONE_THREAD}

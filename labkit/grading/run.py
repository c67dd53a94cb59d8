"""Runs notebooks under pytest and nbval, in processes of their own, and reads how their cells fared."""

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
    """The results of every notebook, by name, and of its cells, by id; one process a core."""
    processes = min(len(notebooks), os.cpu_count() or 1)
    results: dict[str, dict[str, CellResult]] = {name: {} for name in notebooks}
    if not notebooks:
        return results
    with TemporaryDirectory(prefix="labkit-grade-") as folder:
        for name, notebook in notebooks.items():
            nbformat.write(notebook, Path(folder) / f"{name}.ipynb")
        shares = [list(notebooks)[start::processes] for start in range(processes)]
        with ThreadPoolExecutor(processes) as pool:
            for lines in pool.map(lambda share: _pytest(Path(folder), share, cell_timeout_s), shares):
                for line in lines:
                    result = CellResult(line["passed"], line["timed_out"], line["said"])
                    results[line["notebook"].removesuffix(".ipynb")][line["cell"]] = result
    return results


def _pytest(folder, names, cell_timeout_s):
    """One pytest process; the lines that the plugin wrote."""
    lines = folder / f"{names[0]}.jsonl"
    lines.touch()
    command = [sys.executable, "-P", "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}"]
    command += "--noconftest -q --color=no -p no:cacheprovider -p labkit.grading.plugin".split()
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_timeout_s}"]
    command += [f"--cell-results={lines}", *(str(folder / f"{name}.ipynb") for name in names)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "LABKIT_DEVICE": "simulator"}, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest could not run the notebooks:\n{done.stdout}\n{done.stderr}")
    return [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]

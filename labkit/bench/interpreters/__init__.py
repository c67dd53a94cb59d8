"""`labkit bench interpreters`: planted bugs written anew for tools that interpret other kernels without a GPU.

triton-viz's sanitizer watches Triton kernels, and Pallas has interpreters of its own: a plain one, and one each for the
memories and threads of a TPU and of a GPU. `triton_kernels.py` and `pallas_kernels.py` hold the kernels, named after
the bugs in `tests/simulator/planted`. A bug that is in neither file cannot be written there, or was not. Every kernel
runs in a process of its own, since some of them end it or hang.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from labkit.bench import _record

FOLDER = Path(__file__).parent
NEEDED = {"torch": "torch", "triton": "triton==3.7.0", "triton_viz": "triton-viz==3.0"}
NEEDED |= {"jax": "jax==0.10.2", "absl": "absl-py"}
TOOLS = {  # name: its package, the kernels, and the interpreter that they are told to take
    "triton-viz": ("triton-viz", "triton_kernels.py", ()),
    "Pallas, plain": ("jax", "pallas_kernels.py", ("plain",)),
    "Pallas, TPU": ("jax", "pallas_kernels.py", ("tpu",)),
    "Pallas, GPU": ("jax", "pallas_kernels.py", ("gpu",)),
}
NEED_A_BLOCK = {"barrier_missing_before_read", "barrier_under_a_branch"}  # whose threads wait for each other
REPORT = re.compile(r"ILLEGAL MEMORY ACCESS DETECTED|RACE DETECTED|Out-of-bounds \w+")
COLUMNS = dict.fromkeys(("bug", "kernel", "tool", "version", "reported", "result"), "")
PARALLEL_RUNS = 4
TIMEOUT_S = 60
NO_END = "no end"


def main(record=False, out=None) -> None:
    if missing := [requirement for module, requirement in NEEDED.items() if find_spec(module) is None]:
        sys.exit(f"This bench runs the tools it compares: `pip install {' '.join(missing)}` brings what is missing.")
    runs = [(bug, kernel, tool) for tool in TOOLS for bug in bugs_of(tool) for kernel in ("wrong", "right")]
    _record.report_progress(f"running {len(runs)} kernels, each in a process of its own")
    with ThreadPoolExecutor(PARALLEL_RUNS) as pool:
        rows = list(pool.map(run_kernel, *zip(*runs)))
    cpu = _record.cpu_name()
    _record.print_table("planted bugs in other interpreters", rows, COLUMNS)
    _record.store_if_requested("interpreters", rows, cpu, record, out)


def bugs_of(tool: str) -> list[str]:
    """Return the bugs that are written for a tool."""
    _, file, options = TOOLS[tool]
    names = re.findall(r"^def (\w+)\((?:t, )?x, y, ", (FOLDER / file).read_text(encoding="utf-8"), re.MULTILINE)
    return [name for name in names if name not in NEED_A_BLOCK or "gpu" in options]


def run_kernel(bug: str, kernel: str, tool: str) -> dict:
    """Return the row of a kernel: what the tool reported, and what became of its output."""
    package, file, options = TOOLS[tool]
    command = [sys.executable, "-u", str(FOLDER / file), bug, kernel, *options]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "JAX_PLATFORMS": "cpu", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", env=environment
    ) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output = f"{process.communicate()[0]}\nresult: {NO_END}"
    reported, result = verdict(output, process.returncode)
    row = {"bug": bug, "kernel": kernel, "tool": tool, "version": _record.installed_version(package)}
    return row | {"reported": reported, "result": result}


def verdict(output: str, code: int) -> tuple[str, str]:
    """Return the heading of a tool's first report ("" for none), and what became of the output ("": nothing to see)."""
    reported = REPORT.search(output)
    result = re.search(r"^result: (.+)", output, re.MULTILINE)
    if code and not (reported or result):
        last = (output.strip().splitlines() or ["no output"])[-1]
        return f"failed: {last}", ""
    return reported[0] if reported else "", result[1] if result else ""

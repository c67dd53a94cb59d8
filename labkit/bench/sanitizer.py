"""`labkit bench sanitizer`: the simulator's findings in the planted bugs compared with those of compute-sanitizer.

NVIDIA's compute-sanitizer instruments the machine code and watches the kernel run on the GPU, with one tool a run:
memcheck (bounds, alignment), racecheck (races in shared memory), initcheck (global memory read before it is written)
and synccheck (barriers); see its manual, https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer. A kernel that
may break the GPU's context, or hang, has a process of its own.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from pkgutil import iter_modules

import labkit
from labkit import places
from labkit.bench import _record

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
COLUMNS = dict.fromkeys(("bug", "kernel", "simulator", "lines", *TOOLS, "sanitizer_lines"), "")
PARALLEL_RUNS = 4
TIMEOUT_S = 30
NOT_RUN = "not run: it hangs"
NO_END = f"no end within {TIMEOUT_S} s"


def main(record=False, out=None) -> None:
    if places.CHECKOUT is None:
        sys.exit("This bench needs a checkout: the planted bugs are in its tests, not in the installed package.")
    gpu = _record.require_gpu("watches kernels", "compute-sanitizer")
    rows = compare()
    shown = [{name: str(value) if isinstance(value, list) else value for name, value in row.items()} for row in rows]
    _record.print_table(f"planted bugs on {gpu.name}", shown, COLUMNS)
    _record.store_if_requested("sanitizer", rows, gpu.name, record, out)


def planted_bugs() -> dict:
    """Import the modules of the planted bugs; returns them by name."""
    folder = str(places.CHECKOUT / "tests" / "simulator")
    if folder not in sys.path:
        sys.path.append(folder)
    package = import_module("planted")
    return {m.name: import_module(f"planted.{m.name}") for m in iter_modules(package.__path__)}


def launch_of(bug, kernel: str) -> tuple:
    """Return grid and block of a bug's kernel, `wrong` or `right`."""
    names = ("RIGHT_GRID", "RIGHT_BLOCK") if kernel == "right" else ("GRID", "BLOCK")
    return getattr(bug, names[0], bug.GRID), getattr(bug, names[1], bug.BLOCK)


def compare() -> list[dict]:
    """Return a row for each kernel: the simulator's findings, and those of each tool."""
    bugs = planted_bugs()
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_leave_the_gpu_alone) as pool:
        kernels = list(product(bugs, ("wrong", "right")))
        rows = dict(zip(kernels, pool.map(simulate_kernel, *zip(*kernels)), strict=True))
    hanging = {(name, "wrong") for name, bug in bugs.items() if getattr(bug, "HANGS", False)}
    separate_runs = [[key] for key, row in rows.items() if row["simulator"] and key not in hanging]
    shared_run = [key for key, row in rows.items() if not row["simulator"]]
    runs = list(product([*separate_runs, shared_run], TOOLS))
    with ThreadPoolExecutor(PARALLEL_RUNS) as pool:
        outputs = pool.map(lambda run: run_sanitizer(*run), runs)
        for (kernels, tool), output in zip(runs, outputs, strict=True):
            for key in kernels:
                rows[key][tool], lines = verdict(output, *key)
                rows[key]["sanitizer_lines"] = sorted({*rows[key]["sanitizer_lines"], *lines})
    for key in hanging:
        rows[key] |= dict.fromkeys(TOOLS, NOT_RUN)
    return list(rows.values())


def _leave_the_gpu_alone():
    """Use the simulator's device arrays, in which it knows unwritten elements."""
    os.environ["LABKIT_DEVICE"] = "simulator"


def simulate_kernel(name: str, kernel: str) -> dict:
    """Return the row of a kernel with the simulator's kinds of errors and their lines."""
    bug = planted_bugs()[name]
    errors = labkit.simulate(getattr(bug, kernel), *launch_of(bug, kernel), *bug.arguments()).errors
    lines = sorted({line for e in errors for line in (e.line, e.other_line) if line})
    kinds = ", ".join(sorted({e.kind for e in errors}))
    return {"bug": name, "kernel": kernel, "simulator": kinds, "lines": lines, "sanitizer_lines": []}


def run_sanitizer(kernels: list[tuple[str, str]], tool: str) -> str:
    """Return the output of compute-sanitizer on some kernels, launched one after the other in one process."""
    names = [".".join(key) for key in kernels]
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1000", sys.executable, "-c", LAUNCH_SCRIPT]
    path = os.pathsep.join(filter(None, [str(places.CHECKOUT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [*command, *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # so that the whole group can be ended
    ) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S + len(kernels))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return NO_END
    return output


def verdict(output: str, bug: str, kernel: str) -> tuple[str, list[int]]:
    """Return the heading of the first report on a kernel ("" for none), and the lines that its reports name."""
    if output == NO_END:
        return NO_END, []
    if "COMPUTE-SANITIZER" not in output or " SUMMARY: " not in output:
        last = (output.strip().splitlines() or ["no output"])[-1]
        return f"failed: {last}", []
    name = re.compile(rf"{bug}.*(?<![a-z]){kernel}(?![a-z_])", re.DOTALL)  # demangled or not
    reports = [r for r in reports_in(output) if name.search(r)]
    lines = {int(line) for report in reports for line in re.findall(rf"{bug}\.py:(\d+)", report)}
    heading = reports[0].splitlines()[0].partition(" at ")[0] if reports else ""
    return heading, sorted(lines)


def reports_in(output: str) -> list[str]:
    """Return the reports on kernels in compute-sanitizer's output: a heading, and the indented lines below it."""
    lines = [line.removeprefix("=========") for line in output.splitlines() if line.startswith("=========")]
    reports = []
    for line in lines:
        if line.startswith("     ") and reports:
            reports[-1] += "\n" + line.strip()
        elif line.strip():
            reports.append(line.strip())
    return [r for r in reports if "SUMMARY" not in r and re.search(r"\+0x[0-9a-f]+|\.py:\d+", r)]


LAUNCH_SCRIPT = """
import sys
import numpy as np
from labkit import cuda
from labkit.bench import sanitizer

bugs = sanitizer.planted_bugs()
for name, kernel in (argument.split(".") for argument in sys.argv[1:]):
    bug = bugs[name]
    watched = cuda.jit(getattr(bug, kernel).py_func, lineinfo=True)
    arguments = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in bug.arguments()]
    watched[sanitizer.launch_of(bug, kernel)](*arguments)
    cuda.synchronize()
"""

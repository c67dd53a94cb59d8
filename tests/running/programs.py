"""Run a program's text as `labkit run` does, in a process of its own, from a folder of its own."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]

HEADER = """\
import numpy as np
from numba import cuda

"""
# One kernel with a race and an index beyond the end, launched in a loop.
SHIFT = (
    HEADER
    + """\
@cuda.jit
def shift(x, out):
    s = cuda.shared.array(64, "float32")
    t = cuda.threadIdx.x
    s[t] = x[t]
    out[t] = s[(t + 1) % 64] + x[t + 1]


x = np.arange(64, dtype=np.float32)
out = cuda.device_array_like(x)
for _ in range(3):
    shift[1, 64](x, out)
print("sum", out.copy_to_host()[:3].sum())
"""
)


def run(tmp_path, text, *arguments, options=(), name="program.py"):
    """Write a program to a file, and run it by `labkit run`; return the finished process.

    On Linux it is a fork of one that has imported labkit, which saves most of its time; `labkit` starts a new Python.
    """
    (tmp_path / name).write_text(dedent(text))
    if sys.platform != "linux":
        return labkit(tmp_path, "run", *options, name, *arguments)
    command = ["run", *options, name, *arguments]
    prepared = _prepared()
    print(json.dumps([str(tmp_path), command, _environment()]), file=prepared.stdin, flush=True)
    return subprocess.CompletedProcess(command, *json.loads(prepared.stdout.readline()))


@cache
def _prepared():
    program = Path(__file__).with_name("prepared.py")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, program], env=_environment(), text=True, **pipes)


def without_numba(tmp_path, text):
    """Run a program's text as `run`, in a Python that finds no numba."""
    (tmp_path / "program.py").write_text(dedent(text))
    code = "import sys; sys.modules['numba'] = sys.modules['numba_cuda'] = None; from labkit.cli import main; main()"
    return _python(tmp_path, "-c", code, "run", "program.py")


def labkit(folder, *arguments):
    """Run the command line in a folder."""
    return _python(folder, "-m", "labkit.cli", *arguments)


def pytest(folder, *arguments):
    """Run pytest with the plugin in a folder, without the options of this repository."""
    plugin = "-p", "labkit.running.plugin"  # and no others, nor this one a second time, where labkit is installed
    return _python(folder, "-m", "pytest", "-q", *plugin, *arguments, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")


def _python(folder, *arguments, **variables):
    command, environment = [sys.executable, *arguments], _environment() | variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def _environment():
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "COLUMNS": "80"}
    for name in ("LABKIT_DEVICE", "CI", "BUILD_NUMBER"):  # in CI, pytest's summary repeats whole messages
        environment.pop(name, None)
    return environment

"""Runs of a learner's kernel on the GPU, in a child process that can be killed if the kernel hangs.

The child gets text, never an object: `python -m labkit.exercises.on_gpu` reads it from its standard input.
Its last line of output is JSON: null if the answer is right, else a message and the label of the launch that failed.
"""

import ast
import dataclasses
import inspect
import json
import subprocess
import sys
import textwrap
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from labkit.checking.check import read_constants
from labkit.checking.exercise import Exercise
from labkit.checking.source import python_function
from labkit.checking.verdict import Verdict
from labkit.rebinding import names_used_by
from labkit.simulator.seam import types

TIMEOUT_S = 60


def judge_on_gpu(exercise: Exercise, kernel: Any, verdict: Verdict, seed: int, timeout_s: float = TIMEOUT_S) -> Verdict:
    """Return the simulator's `verdict` if the kernel is right on the GPU too, else the verdict on its GPU run."""
    function = python_function(kernel)
    task = {
        "exercise": exercise.id,
        "function": function.__name__,
        "constants": read_constants(exercise, function),
        "seed": seed,
        "text": _write_module(function),
    }
    command = [sys.executable, "-m", "labkit.exercises.on_gpu"]
    try:
        child = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return _make_gpu_verdict(verdict, f"the kernel did not come to an end within {timeout_s:g} s.")
    if child.returncode:
        lines = child.stderr.strip().splitlines() or ["no reason was given"]
        return _make_gpu_verdict(verdict, f"the kernel could not run: {lines[-1]}")
    result = json.loads(child.stdout.splitlines()[-1])
    return _make_gpu_verdict(verdict, result["message"], result["launch"]) if result else verdict


def _make_gpu_verdict(verdict, message, launch=""):
    message = f"All is well in the simulator, but on the GPU {message}"
    return dataclasses.replace(verdict, reason="gpu", message=message, launch=launch)


def _write_module(function) -> str:
    """Write a module with a kernel and everything that it uses: constants, modules, device functions."""
    parts = {"": "from labkit import cuda as _cuda"}
    _write_names(function, parts)
    parts[function.__name__] = f"@_cuda.jit\n{_source_without_decorators(function)}"
    return "\n".join(parts.values()) + "\n"


def _write_names(function, parts: dict[str, str]):
    for name, value in names_used_by(function).items():
        if isinstance(value, ModuleType):
            package, _, module = value.__name__.rpartition(".")
            parts[name] = f"from {package} import {module} as {name}" if package else f"import {module} as {name}"
        elif isinstance(value, type) and issubclass(value, np.generic):
            parts[name] = f"from numpy import {value.__name__} as {name}"
        elif isinstance(value, BuiltinFunctionType):  # such as math's
            parts[name] = f"from {value.__module__} import {value.__name__} as {name}"
        elif hasattr(value, "py_func") and name not in parts:
            _write_names(value.py_func, parts)
            parts[name] = f"@_cuda.jit(device=True)\n{_source_without_decorators(value.py_func)}"
        elif isinstance(value, types.Type):
            parts[name] = f"from numba.types import {value} as {name}"
        elif isinstance(value, bool | int | float | str | tuple | np.number):
            value = value.item() if isinstance(value, np.number) else value
            is_written = not isinstance(value, float) or np.isfinite(value)
            parts[name] = f"{name} = {value!r}" if is_written else f"{name} = float('{value}')"


def _source_without_decorators(function) -> str:
    """Return the function's text; its decorators may use names that the function itself does not."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function.__code__))).body[0]
    if isinstance(definition, ast.FunctionDef):
        definition.decorator_list = []
    return ast.unparse(definition)

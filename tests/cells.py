"""Kernels written as text, as a learner writes them in a notebook cell."""

import linecache
import math
from inspect import getsourcelines
from itertools import count
from textwrap import dedent

import numpy as np
from numba import float32, float64, int32, int64

from labkit import cuda

_cells = count(1)
NAMES = dict(cuda=cuda, np=np, math=math, float32=float32, float64=float64, int32=int32, int64=int64)


def run_cell(text: str, **names) -> dict:
    """Runs a cell with the usual imports and these names; returns the names it leaves."""
    text = dedent(text).strip("\n") + "\n"
    filename = f"<cell {next(_cells)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope = {**NAMES, **names}
    exec(compile(text, filename, "exec"), scope)
    return scope


def kernel_in(text: str, name: str | None = None, **names):
    """The last function (or the named one) that a cell defines."""
    scope = run_cell(text, **names)
    if name is None:
        defined = scope.keys() - NAMES.keys() - names.keys() - {"__builtins__"}
        name = [n for n in scope if n in defined and callable(scope[n])][-1]
    return scope[name]


def text_of(kernel) -> str:
    """The kernel's source."""
    return "".join(getsourcelines(kernel.py_func)[0])


def line_of(kernel, fragment: str, which: int = 0) -> int:
    """The number of the kernel's line that holds `fragment`, counted as the file or cell does."""
    lines, first = getsourcelines(kernel.py_func)
    return [first + i for i, line in enumerate(lines) if fragment in line][which]

"""Random kernels: the same values and the same types as numba gives them."""

import numpy as np
import pytest
from cells import run_cell
from numba import njit, types
from numba.core import ir
from random_kernels import ARRAYS, LENGTH, VARIABLES, random_body

import labkit
from labkit.simulator import numba_types, run
from labkit.simulator.translator.values import Array

THREADS = 72
COLUMNS = 2 * len(VARIABLES) + 1
SCALARS = {name: getattr(types, name) for name in "int8 int16 int32 int64 uint8 uint32 float32 float64".split()}


def inputs():
    rng = np.random.default_rng(3)
    ranges = {"xb": (0, 256), "xi": (-50, 50), "xl": (-9, 10)}
    arrays = [
        rng.integers(*ranges[n], LENGTH).astype(d) if n in ranges else rng.uniform(-3, 3, LENGTH).astype(d)
        for n, d in ARRAYS.items()
    ]
    return [*arrays, np.zeros((THREADS, COLUMNS))]


def written(body):
    """The body as a kernel, and as a function of one thread that numba compiles for the CPU."""
    names = ", ".join([*ARRAYS, "out"])
    kernel = f"@cuda.jit\ndef kernel({names}):\n    i = cuda.grid(1)\n{body}\n"
    thread = f"def thread(i, {names}):\n{body}\n"
    return run_cell(kernel, **SCALARS)["kernel"], run_cell(thread, **SCALARS)["thread"]


def inferred_types(thread):
    """The types that numba infers for each variable, over the versions that its code assigns or reads."""
    (compiled,) = thread.overloads.values()
    statements = [s for block in compiled.type_annotation.blocks.values() for s in block.body]
    named = {v.name for s in statements if not joins(s) for v in s.list_vars()}
    found = {}
    for name, kind in compiled.type_annotation.typemap.items():
        if name in named and not name.startswith(("$", "arg.")) and isinstance(kind, types.Number | types.Boolean):
            found.setdefault(name.split(".")[0], set()).add(types.unliteral(kind))
    return found


def joins(statement):
    """Does the statement only join the versions of a variable where paths meet, or end a version's life?"""
    if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Var):
        return statement.target.name.split(".")[0] == statement.value.name.split(".")[0]
    return isinstance(statement, ir.Del) or (
        isinstance(statement, ir.Assign) and getattr(statement.value, "op", None) == "phi"
    )


@pytest.mark.parametrize("seed", range(100))
def test_random_kernels_agree_with_numba(seed):
    body = random_body(seed)
    kernel, function = written(body)
    arguments = inputs()
    thread = njit(error_model="numpy")(function)
    expected = [a.copy() for a in arguments]
    thread.compile((types.int64, *(types.Array(numba_types.type_of(a.dtype), a.ndim, "C") for a in arguments)))
    for i in range(THREADS):
        thread(i, *expected)
    trace = labkit.simulate(kernel, 3, 24, *arguments)
    found, known = trace.outputs[-1].copy(), expected[-1]
    values, remainders = slice(0, len(VARIABLES)), slice(len(VARIABLES), 2 * len(VARIABLES))
    # a GPU's float remainder comes from a rounded quotient and loses its meaning when that is large
    large = np.abs(known[:, values]) > 2**20
    found[:, remainders][large] = known[:, remainders][large] = 0
    np.testing.assert_allclose(found, known, rtol=1e-6, equal_nan=True, err_msg=body)
    assert not [f for f in trace.errors if f.kind != "uninitialised"]

    kinds = tuple(Array(numba_types.type_of(a.dtype), a.ndim, "global") for a in arguments)
    ours = run._program(kernel.py_func, kinds, watch=False).variables
    theirs = inferred_types(thread)
    assert ours | {"i": None} == theirs | {"i": None}, body

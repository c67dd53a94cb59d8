"""A kernel on disk is found again by all that its machine code depends on, and by nothing else."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba.cuda.types", reason="numba-cuda is not installed")

import numpy as np
from numba.cuda import types

from labkit import cuda, ptx
from labkit.cuda.fingerprint import UnknownValue, fingerprint

TYPES = (types.Array(types.float32, 1, "C"), types.int32)
HELPER = "@cuda.jit(device=True)\ndef helper(x):\n    return {body}\n\n\n"
KERNEL = """{before}def kernel(x, n):
    '{doc}'
    i = cuda.grid(1)
    if i < n:
        x[i] = helper(x[i]) * SIZE
"""


def digest(body="x + 1", doc="A kernel.", before="", kinds=TYPES, options=(), capability=(9, 0), **names):
    scope = {"cuda": cuda, "np": np, "SIZE": 4, **names}
    exec(HELPER.format(body=body) + KERNEL.format(doc=doc, before=before), scope)
    return fingerprint(scope["kernel"], kinds, dict(options), capability)


def test_lines_and_docstrings_change_nothing():
    assert digest() == digest(doc="Another text.", before="\n\n\n# a comment\n")


@pytest.mark.parametrize(
    "change",
    [
        {"SIZE": 8},
        {"SIZE": 4.0},
        {"SIZE": np.float32(4)},
        {"SIZE": np.int64(4)},
        {"body": "x - 1"},
        {"body": "x + OTHER", "OTHER": (1, 2)},
        {"body": "x + OTHER[0]", "OTHER": np.arange(3)},
        {"body": "x + OTHER[0]", "OTHER": np.arange(3.0)},
        {"body": "ptx.something(x)", "ptx": ptx},
        {"kinds": (types.Array(types.float32, 1, "A"), types.int32)},
        {"kinds": (types.Array(types.float32, 1, "C"), types.int64)},
        {"options": {"fastmath": True}},
        {"capability": (9, 1)},
    ],
    ids=str,
)
def test_what_the_compiler_reads_changes_it(change):
    assert digest(**change) != digest()


def test_functions_of_a_user_s_module_are_read():
    def kernel(x):
        x[0] = module.helper(x[0])

    def made(text):
        module = type(pytest)("helpers")
        exec(text, vars(module))
        kernel.__globals__["module"] = module
        return fingerprint(kernel, TYPES, {}, (9, 0))

    try:
        assert made("def helper(x):\n    return x + 1") != made("def helper(x):\n    return x + 2")
    finally:
        del kernel.__globals__["module"]


def test_it_is_the_same_in_every_process():
    """Python gives the texts of each process other hashes, and with them sets another order."""
    program = (
        "import types as t; from labkit.cuda.fingerprint import fingerprint; m = t.ModuleType('helpers')\n"
        "exec('def a(x): return x\\ndef b(x): return 2 * x\\ndef c(x): return 3 * x', vars(m))\n"
        "def kernel(x): x[0] = m.a(x[0]) + m.b(x[0]) + m.c(x[0])\n"
        "print(fingerprint(kernel, (), {}, (9, 0)))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "123"
    }
    assert len(made) == 1


def test_functions_that_call_each_other_are_read_once():
    def first(x):
        return second(x) if x > 0 else x

    def second(x):
        return first(x - 1)

    assert fingerprint(first, TYPES, {}, (9, 0)) != fingerprint(second, TYPES, {}, (9, 0))


def test_an_object_of_a_class_that_nobody_knows_is_refused():
    class Thing:
        pass

    with pytest.raises(UnknownValue, match="Thing"):
        digest(body="x + OTHER", OTHER=Thing())

"""The table of the kernel language is true: what runs is run in a kernel, and what is refused says so."""

import ast
import cmath
import operator

import numba
import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit.simulator import coverage, language, random
from labkit.simulator.coverage import entries
from labkit.simulator.errors import KernelError

ENTRIES = entries()
TRIED_ELSEWHERE = set(language.FUNCTIONS)  # in functions/test_in_kernels.py

# A line or two for each piece of syntax: x is a vector of float32, A a matrix, n a vector of int32, i the thread.
STATEMENTS = {
    "x = ...": "v = 1",
    "x += ...": "x[i] += 1",
    "x: int32 = ...": "v: int32 = 1",
    "a call on a line of its own": "cuda.syncthreads()",
    "if": "if i > 3:\n    x[i] = 1\nelif i > 2:\n    x[i] = 2\nelse:\n    x[i] = 3",
    "for": "for k in range(3):\n    x[i] += k",
    "while": "k = 0\nwhile k < 3:\n    k += 1",
    "break": "for k in range(3):\n    break",
    "continue": "for k in range(3):\n    continue",
    "return": "return",
    "pass": "pass",
    "def inside a kernel": "def inner(v):\n    return v",
    "async def": "async def inner(v):\n    return v",
    "class": "class Inner:\n    pass",
    "with": "with x:\n    pass",
    "match": "match i:\n    case 0:\n        pass",
    "raise": "raise ValueError('negative')",
    "try": "try:\n    x[i] = 1\nexcept IndexError:\n    pass",
    "try with except*": "try:\n    x[i] = 1\nexcept* IndexError:\n    pass",
    "assert": "assert i < 4",
    "import": "import math",
    "from ... import": "from math import sqrt",
    "global": "global total",
    "del": "del i",
}
EXPRESSIONS = {
    "literal": "1.5",
    "name": "i",
    "a.b": "x.size",
    "a[i]": "x[i]",
    "a[i:j:k]": "x[0:4:2][0]",
    "f(x)": "abs(x[i])",
    "(a, b)": "A[(1, 2)]",
    "a + b": "1 + i",
    "-a": "-i",
    "a and b": "i and i",
    "a < b": "i < 3",
    "a if c else b": "1 if i else 2",
    "(a := b)": "(v := 2)",
    "lambda": "(lambda v: v)(i)",
    "[a, b]": "[1, 2]",
    "{a: b}": "{1: 2}",
    "{a, b}": "{1, 2}",
    "[... for ...]": "[k for k in range(3)]",
    "{... for ...}": "{k for k in range(3)}",
    "{...: ... for ...}": "{k: k for k in range(3)}",
    "(... for ...)": "(k for k in range(3))",
    'f"..."': 'f"{i}"',
    "*a": "(*A.shape, 1)",
    "yield": "(yield 1)",
    "yield from": "(yield from x)",
}
CALLS = {
    "range": "for k in range(3):\n    x[i] += k",
    "enumerate": "for k, v in enumerate(x):\n    x[i] += v",
    "zip": "for v, w in zip(x, x):\n    x[i] += v",
    "tuple": "k, v = tuple(A.shape)",
    "len": "x[i] = len(x)",
    "print": "print(i)",
    "cuda.grid": "k, v = cuda.grid(2)",
    "cuda.gridsize": "k = cuda.gridsize(1)",
    "cuda.shared.array": "s = cuda.shared.array(4, float32)",
    "cuda.local.array": "s = cuda.local.array(4, float32)",
    "cuda.const.array_like": "s = cuda.const.array_like(TABLE)\nx[i] = s[0]",
    "cuda.cg.this_grid": "g = cuda.cg.this_grid()",
    "cuda.cg.this_grid().sync": "cuda.cg.this_grid().sync()",
    "cuda.shfl_sync": "x[i] = cuda.shfl_sync(-1, x[i], 0)",
    "cuda.match_all_sync": "k, same = cuda.match_all_sync(-1, i)",
    "cuda.activemask": "k = cuda.activemask()",
    "cuda.lanemask_lt": "k = cuda.lanemask_lt()",
    "cuda.selp": "x[i] = cuda.selp(x[i] > 0, x[i], x[i])",
    "cuda.nanosleep": "cuda.nanosleep(100)",
    "pow": "x[i] = pow(x[i], 2)",
    "isinstance": "v = isinstance(i, int)",
    "np.iinfo": "k = np.iinfo(np.int32).max",
    "np.finfo": "v = np.finfo(np.float32).max",
    "min": "x[i] = min(x[i], 2)",
    "max": "x[i] = max(x[i], 2)",
    **{f"cuda.{name}": f"cuda.{name}()" for name in "syncthreads syncwarp threadfence threadfence_block".split()},
    "cuda.threadfence_system": "cuda.threadfence_system()",
    **{f"cuda.syncthreads_{how}": f"k = cuda.syncthreads_{how}(i)" for how in ("count", "and", "or")},
    **{f"cuda.shfl_{way}_sync": f"x[i] = cuda.shfl_{way}_sync(-1, x[i], 1)" for way in ("up", "down", "xor")},
    **{f"cuda.{name}_sync": f"k = cuda.{name}_sync(-1, i)" for name in "all any eq ballot match_any".split()},
    **{name: f"x[i] = {name}(x, i)" for name in language.INTRINSICS if language.INTRINSICS[name] == "hinted_load"},
    **{name: f"{name}(x, i, 1)" for name in language.INTRINSICS if language.INTRINSICS[name] == "hinted_store"},
    "cuda.atomic.cas": "cuda.atomic.cas(n, i, 0, 1)",
    "cuda.atomic.compare_and_swap": "cuda.atomic.compare_and_swap(n[i:], 0, 1)",
}


def example(entry):
    """A line or more of a kernel that uses the entry."""
    family, name = entry.family, entry.name
    if family == "statements":
        return STATEMENTS[name]
    if family == "expressions":
        return f"x[i] = {EXPRESSIONS[name]}"
    if family == "operators":
        unary = name.startswith(("~", "+a", "-a")) or name == "not"
        if name == "@":
            return "x[i] = A @ A"
        if name in ("in", "not in", "is", "is not"):
            return f"v = n[i] {name} {'(1, 2)' if 'in' in name else 'None'}"
        return f"v = {name.removesuffix('a')} n[i]" if unary else f"v = n[i] {name} n[i]"
    if family == "operator":
        one = name.endswith((".neg", ".pos", ".invert", ".not_"))
        return f"v = {name}(n[i])" if one else f"v = {name}(n[i], n[i])"
    if family == "arrays":
        if name == "a.flat":
            return "for v in x.flat:\n    pass"
        return f"v = {name.replace('a.', 'A.', 1)}{'(2, 8)' * name.endswith('reshape')}"
    if name in CALLS:
        return CALLS[name]
    if family == "types":
        return f"v = {name}(1)"
    if family == "vector types":
        return f"v = {name}({', '.join('1234'[: language.VECTORS[name][1]])})"
    if family == "atomics":
        return f"cuda.atomic.{name.rpartition('.')[2]}(u, i, 1)"
    if family == "cuda.random":
        return f"v = {name}(states, i)"
    if name in language.POSITIONS or name in language.CONSTANTS:
        return f"v = {name}"
    if name in language.CASTS:
        return f"v = {name}(1)"
    if entry.runs:  # NumPy's functions of a whole array
        return f"v = {name}(x)"
    return f"x[i] = {name}(x[i])"


def simulated(text):
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    cell = f"@cuda.jit\ndef kernel(x, A, n, u, states):\n    i = cuda.grid(1)\n{lines}"
    made = {"TABLE": np.ones(4, np.float32), "numba": numba, "cmath": cmath, "operator": operator, **vars(random)}
    arrays = [np.ones(32, np.float32), np.ones((4, 4), np.float32), np.ones(32, np.int32), np.ones(32, np.uint32)]
    states = random.create_xoroshiro128p_states(32, seed=1)
    return labkit.simulate(kernel_in(cell, **made), 1, 32, *arrays, states)


@pytest.mark.parametrize("family", dict.fromkeys(e.family for e in ENTRIES))
def test_what_the_table_says_of_a_family_is_what_the_simulator_does(family):
    for entry in ENTRIES:
        if entry.family != family or entry.name in TRIED_ELSEWHERE or entry.name == "nonlocal":
            continue
        text = example(entry)
        if entry.runs:
            try:
                simulated(text)
            except KernelError as error:
                pytest.fail(f"{entry.name}: {error}")
        else:
            with pytest.raises(KernelError) as refused:
                simulated(text)
            assert entry.refusal.replace("`a.", "`A.").replace("`a[", "`A[") in str(refused.value).replace("`a[", "`A[")


def test_nonlocal_is_refused():
    text = """
        def made():
            total = 0
            @cuda.jit
            def kernel(x):
                nonlocal total
                total = 1
            return kernel
    """
    (entry,) = (e for e in ENTRIES if e.name == "nonlocal")
    with pytest.raises(KernelError, match=entry.refusal):
        labkit.simulate(kernel_in(text)(), 1, 1, np.zeros(1))


def test_every_function_of_numbers_is_in_the_table():
    assert {e.name for e in ENTRIES if e.runs} >= TRIED_ELSEWHERE


def test_every_entry_stands_there_once():
    assert len({(e.family, e.name) for e in ENTRIES}) == len(ENTRIES)


# A part of an f-string; what Python itself refuses in a plain function; what not every Python that labkit runs on has.
NOT_FOR_KERNELS = {"FormattedValue", "AsyncFor", "AsyncWith", "Await", "TypeAlias"}


def test_all_of_pythons_syntax_is_in_the_table():
    ours = {n for nodes in (coverage.STATEMENTS, coverage.EXPRESSIONS, coverage.OPERATORS) for n in nodes}
    bases = (ast.stmt, ast.expr, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    nodes = {n for base in bases for n in base.__subclasses__() if n.__module__ == "ast"}
    pythons = {n for n in nodes if n.__name__ not in NOT_FOR_KERNELS}
    assert ours == pythons


@pytest.mark.needs("numba-cuda")
def test_everything_that_numba_cuda_has_for_kernels_is_in_the_table():
    from numba.cuda import stubs

    known = {e.name for e in ENTRIES}
    for name, value in vars(stubs).items():
        if isinstance(value, type) and issubclass(value, stubs.Stub) and value is not stubs.Stub and name != "Dim3":
            members = [m for m in vars(value) if not m.startswith("_")]
            assert {f"cuda.{name}"} <= known or {f"cuda.{name}.{m}" for m in members} <= known, name

"""Random kernels hold every pair of the language, and have numba's types and values, on a CPU and on a GPU.

`make test` runs one kernel of each part of the language, `make test-long` forty.
"""

import cmath
import importlib
import math
from collections import Counter, defaultdict
from functools import cache
from importlib.util import find_spec
from random import Random
from types import ModuleType

import numpy as np
import pytest
from cells import run_cell
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from random_kernels import oracles
from random_kernels.executed import counting
from random_kernels.uses import NO_CODE, typed_uses, uses
from random_kernels.writer import BLOCK, GRID, random_kernel
from sampling import WHOLE

import labkit
from labkit import cuda
from labkit.simulator import run
from labkit.simulator.arguments import typed_arguments
from labkit.simulator.language import SCALARS

pytestmark = pytest.mark.long
PARTS = 250  # of the uses: each kernel of a part holds all of its uses, and the first holds little else
SHARED_BYTES = 16 * BLOCK
HARMLESS = {"uninitialised", "unwritten"}  # what random control flow leaves out
RAN: Counter = Counter()  # in how many kernels each pair ran
DONE: set = set()  # the parts that were tried


def header(name):
    return importlib.import_module(name) if find_spec("numba_cuda") else ModuleType(name)


# CUDA's headers of 16-bit floats, as modules; the simulator knows them by their names
HEADERS = {f"{short}_header": header(f"numba.cuda._internal.cuda_{short}") for short in ("bf16", "fp16")}
NAMES = {**SCALARS, **HEADERS, "np": np, "math": math, "cmath": cmath}


@cache
def every_use():
    return uses()


@cache
def dealt():
    """The uses of each part; those that numba compiles for a CPU too are kept together."""
    thread = [use for use in every_use() if use.where == "thread"]
    others = [use for use in every_use() if use.where != "thread"]
    count = round(PARTS * len(thread) / len(every_use()))
    return [thread[n::count] for n in range(count)] + [others[n :: PARTS - count] for n in range(PARTS - count)]


def kernels(part, judge):
    """Calls `judge` with the random kernels of a part; hypothesis shrinks the one that it refuses."""

    @seed(part)
    @settings(max_examples=40 if WHOLE else 1, deadline=None, database=None)
    @given(st.randoms(use_true_random=False))
    def judged(rng):
        judge(random_kernel(rng, dealt()[part]))

    judged()


def defined(kernel, jit=cuda):
    device = jit.jit(device=True)
    return run_cell(kernel.cell, cuda=jit, device=device, **NAMES, **kernel.constants)["kernel"]


def simulated(kernel):
    """The outputs by name, the types of the variables, and the pairs that ran."""
    arrays = list(kernel.parameters.values())
    with counting() as ran:
        function = defined(kernel)
        trace = labkit.simulate(function, GRID, BLOCK, *arrays, shared_bytes=SHARED_BYTES)
        kinds, _ = typed_arguments(list(kernel.parameters), arrays, ())
        variables = run._program(function.py_func, kinds, watch=False).variables
    assert not [f for f in trace.errors if f.kind not in HARMLESS], kernel.cell
    return dict(zip(kernel.parameters, trace.outputs)), variables, ran


def assert_same(found, known, kernel):
    """Equal, but for what functions and complex arithmetic may differ by."""
    for name, expected in known.items():
        if name not in kernel.kept:
            np.testing.assert_array_equal(found[name], expected, err_msg=f"{name}\n{kernel.cell}")
    for name, kept in kernel.kept.items():
        for column, within in enumerate(kept):
            ours, theirs = found[name][:, column], known[name][:, column]
            far = ~within.near(ours, theirs)
            assert not far.any(), f"{name}[:, {column}] is {ours[far]}, not {theirs[far]}, in\n{kernel.cell}"


def assert_same_types(ours, theirs, kernel):
    """Alike in the kernel's own variables; `theirs` has none of its device functions."""
    found = {name: {str(kind) for kind in ours[name]} for name in theirs}
    assert found == theirs, kernel.cell


@pytest.mark.parametrize("part", range(PARTS))
def test_random_kernels_have_numbas_types_and_values(part):
    def judge(kernel):
        found, variables, ran = simulated(kernel)
        RAN.update(ran)
        if kernel.plain:
            return  # the other kernels of the part hold the same uses
        if find_spec("numba_cuda"):
            function = defined(kernel, importlib.import_module("numba.cuda")).py_func
            assert_same_types(variables, oracles.inferred_types(function, kernel.parameters.values()), kernel)
        if kernel.thread:
            assert_same(found, oracles.by_njit(kernel, NAMES), kernel)

    kernels(part, judge)
    DONE.add(part)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("part", range(PARTS))
def test_random_kernels_have_the_values_of_a_gpu(part):
    def judge(kernel):
        on_gpu = oracles.by_gpu(defined(kernel, importlib.import_module("numba.cuda")), kernel, SHARED_BYTES)
        assert_same(simulated(kernel)[0], on_gpu, kernel)

    kernels(part, judge)


@pytest.mark.needs("numba-cuda")
def test_what_has_a_type_and_no_code_does_not_compile():
    none = [use for use in typed_uses() if use.pair in NO_CODE]
    assert {use.pair for use in none} == NO_CODE
    for use in none:
        kernel = random_kernel(Random(1), [use])
        with pytest.raises(Exception):  # noqa: B017 - numba, llvmlite and NVVM each have errors of their own
            oracles.compiled(defined(kernel, importlib.import_module("numba.cuda")), kernel.parameters.values())


def test_every_pair_of_the_language_ran():
    """The tests above, all in this process, together run every pair of the language."""
    if len(DONE) < PARTS:
        pytest.skip("the kernels were not all run here")
    print(summary())
    assert not [use.pair for use in every_use() if not RAN[use.pair]]


def summary():
    """A table: of each kind of node or function, how many pairs there are, and in how many kernels each ran."""
    groups = defaultdict(list)
    for what, dtype in dict.fromkeys(use.pair for use in every_use()):
        group = what.rpartition(".")[0] if "." in what else what.split()[0]
        groups["a cast" if what.endswith("()") else group or what].append(RAN[what, dtype])
    lines = [f"\n{'node or function':24}{'pairs':>7}{'fewest':>8}{'median':>8} kernels"]
    lines += [f"{g:24}{len(n):7}{min(n):8}{int(np.median(n)):8}" for g, n in sorted(groups.items())]
    return "\n".join([*lines, f"{'all':24}{sum(map(len, groups.values())):7}{min(map(min, groups.values())):8}"])

"""Kernels of every kind compute what they must, with numba's types, and without an error finding."""

import numpy as np
import pytest
from kernels import cases
from numba import types

import labkit
from labkit import cuda
from labkit.simulator import translate

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_computes_the_expected_values_and_finds_no_error(case):
    before = [np.copy(a) for a in case.arguments]
    trace = labkit.simulate(case.kernel, case.grid, case.block, *case.arguments, shared_bytes=case.shared_bytes)
    assert trace.errors == ()
    for position, expected in case.expected.items():
        np.testing.assert_allclose(trace.outputs[position], expected, rtol=case.tolerance, atol=case.tolerance)
    for kept, argument in zip(before, case.arguments):
        np.testing.assert_array_equal(kept, argument)


def numba_variable_types(function, arguments):
    """The scalar types that numba infers for each variable, over all its SSA versions."""
    cuda_compiler = pytest.importorskip("numba.cuda.compiler")
    kinds = [types.Array(translate.lanes.type_of(a.dtype), a.ndim, "C") for a in arguments]
    typed = cuda_compiler.compile_cuda(function, types.void, tuple(kinds), cc=(9, 0)).type_annotation.typemap
    found: dict[str, set] = {}
    for name, kind in typed.items():
        if not name.startswith(("$", "arg.")) and isinstance(kind, (types.Number, types.Boolean)):
            found.setdefault(name.split(".")[0], set()).add(types.unliteral(kind))
    return found


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "with_device_functions"], ids=lambda c: c.name)
def test_types_are_numbas(case):
    function = case.kernel.py_func
    kinds = tuple(translate.Array(translate.lanes.type_of(a.dtype), a.ndim, "global") for a in case.arguments)
    ours = translate.translate(function, kinds).variables
    assert ours == numba_variable_types(bound_to_numba(function), case.arguments)


def bound_to_numba(function):
    """The same function with `cuda` bound to numba's module, which numba's typing knows."""
    from types import FunctionType

    import numba.cuda

    scope = {**function.__globals__, "cuda": numba.cuda}
    return FunctionType(function.__code__, scope, function.__name__, None, function.__closure__)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_counters_do_not_depend_on_the_chunk_width(case, monkeypatch):
    from labkit.simulator import run

    def counters():
        launch = labkit.simulate(case.kernel, case.grid, case.block, *case.arguments, shared_bytes=case.shared_bytes)
        return launch.counters, [s for s in launch.sites]

    wide = counters()
    monkeypatch.setattr(run, "CHUNK_LANES", 1)
    assert counters() == wide


@pytest.mark.skipif(not cuda.on_gpu(), reason="compares with a GPU, and there is none")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_gpu_computes_the_same(case):
    simulated = labkit.simulate(
        case.kernel, case.grid, case.block, *case.arguments, shared_bytes=case.shared_bytes
    )
    arrays = [np.copy(a) for a in case.arguments]
    case.kernel[case.grid, case.block, 0, case.shared_bytes](*arrays)
    for ours, theirs in zip(simulated.outputs, arrays):
        np.testing.assert_allclose(ours, theirs, rtol=case.tolerance, atol=case.tolerance)

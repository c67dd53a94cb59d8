"""Every function of numbers is called in a kernel, on lanes that differ and on lanes that agree."""

import numpy as np
import pytest
from cells import kernel_in
from family_kernels import FAMILIES, expected_of, kernel_of, signature

import labkit
from labkit.simulator.errors import KernelError
from labkit.simulator.numba_types import dtype_of, types

LANES = 4


def values(kind, place):
    """Numbers of a type, one a lane."""
    numbers = np.array([0.75, 0.5, 0.25, 0.125]) + place / 16
    if isinstance(kind, types.Integer):
        numbers = np.array([3, 5, 6, 9]) + place
    return numbers.astype(dtype_of(kind))


@pytest.mark.parametrize("uniform", [False, True], ids=["lanes that differ", "lanes that agree"])
@pytest.mark.parametrize("family", FAMILIES)
def test_functions_run_in_a_kernel(family, uniform):
    kernel, inputs, rows = kernel_of(list(FAMILIES[family].FUNCTIONS.values()), uniform)
    arguments = [values(*key)[0] if uniform else values(*key) for key in inputs]
    trace = labkit.simulate(kernel, 1, LANES, *arguments, np.zeros((len(rows), LANES), np.complex128))
    for found, (function, part, _) in zip(trace.outputs[-1], rows):
        kinds = signature(function)[0]
        expected = expected_of(function, [values(kind, place) for place, kind in enumerate(kinds)])[part]
        np.testing.assert_array_equal(found, expected[0] if uniform else expected, err_msg=function.name)


@pytest.mark.parametrize(
    "text", ["math.sqrt()", "math.sqrt(a, a)", "cuda.popc(a)", "cuda.libdevice.popc(1j)", "cuda.fma(a, a)"]
)
def test_a_call_with_other_arguments_is_refused(text):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x):\n    a = x[0]\n    x[0] = {text}")
    with pytest.raises(KernelError, match="does not take"):
        labkit.simulate(kernel, 1, 1, np.ones(1, complex))


def test_a_function_that_numba_cuda_has_no_code_for_is_refused_with_another():
    kernel = kernel_in("@cuda.jit\ndef kernel(x):\n    x[0] = np.exp(x[0])")
    with pytest.raises(KernelError, match=r"no code for `np.exp` in a kernel; write `math.exp\(x\)`"):
        labkit.simulate(kernel, 1, 1, np.ones(1))


@pytest.mark.needs("numba-cuda")
def test_functions_are_known_by_the_names_they_are_imported_under():
    from numba.cuda import bf16
    from numba.cuda import libdevice as devices

    text = "@cuda.jit\ndef kernel(x):\n    x[0] = brev(5) + bf16.hadd(bfloat16(1.0), one(2.0))"
    kernel = kernel_in(text, brev=devices.brev, bf16=bf16, bfloat16=bf16.bfloat16, one=bf16.float32_to_bfloat16)
    assert labkit.simulate(kernel, 1, 1, np.zeros(1)).outputs[0][0] == -1610612736 + 3


def test_fma_counts_two_operations():
    kernel = kernel_in("@cuda.jit\ndef kernel(x):\n    i = cuda.grid(1)\n    x[i] = cuda.fma(x[i], x[i], x[i])")
    assert labkit.simulate(kernel, 1, 32, np.ones(32, np.float32)).counters.flops_by_dtype == {"float32": 64}


# --- selp and cache hints ---


def test_selp_chooses_a_number():
    text = "@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n    y[i] = cuda.selp(x[i] > 0, x[i], float32(-1))"
    x = np.array([2, -2, 3, 0], np.float32)
    assert labkit.simulate(kernel_in(text), 1, 4, x, np.zeros(4)).outputs[1].tolist() == [2, -1, 3, -1]


@pytest.mark.parametrize(
    "text", ["cuda.selp(1, a, a)", "cuda.selp(a > 1, a, 1)", "cuda.selp(a > 1, uint8(1), uint8(2))"]
)
def test_selp_takes_a_comparison_and_two_numbers_of_one_type(text):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(x):\n    a = x[0]\n    x[0] = {text}", uint8=types.uint8)
    with pytest.raises(KernelError, match="cuda.selp"):
        labkit.simulate(kernel, 1, 1, np.ones(1))


@pytest.mark.parametrize("hint", ["ca", "cg", "cs", "lu", "cv"])
def test_hinted_loads_count_as_loads_and_may_leave_l1_out(hint):
    text = f"""
        @cuda.jit
        def kernel(x, y):
            i = cuda.grid(1)
            y[i] = cuda.ld{hint}(x, i)
            y[i] += cuda.ld{hint}(x, i)
    """
    trace = labkit.simulate(kernel_in(text), 1, 32, np.arange(32.0), np.zeros(32))
    assert trace.outputs[1].tolist() == [2 * i for i in range(32)]
    first, second = (s for s in trace.sites if s.site.array == "x")
    assert (first.accesses, first.sectors, second.sectors) == (32, 8, 8)
    assert second.l1_hits == (0 if hint in ("cg", "cv") else 8)
    assert second.l2_hits == 8 - second.l1_hits


@pytest.mark.parametrize("hint", ["cg", "cs", "wb", "wt"])
def test_hinted_stores_store(hint):
    text = f"@cuda.jit\ndef kernel(y):\n    i = cuda.grid(1)\n    cuda.st{hint}(y, (0, i), i + 0.5)"
    trace = labkit.simulate(kernel_in(text), 1, 8, np.zeros((1, 8), np.float32))
    assert trace.outputs[0].tolist() == [[i + 0.5 for i in range(8)]]
    assert [(s.site.kind, s.accesses) for s in trace.sites] == [("store", 8)]


def test_hints_are_for_global_arrays_of_plain_numbers():
    shared = "t = cuda.shared.array(4, float32)\n    t[0] = cuda.ldca(t, 0)"
    for text, message in ((shared, "global memory alone"), ("x[0] = cuda.ldcg(x, 0)", "integers and floats")):
        with pytest.raises(KernelError, match=message):
            labkit.simulate(kernel_in(f"@cuda.jit\ndef kernel(x):\n    {text}"), 1, 1, np.ones(1, complex))

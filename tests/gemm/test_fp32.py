"""The fp32 ladder: right on every shape, without a finding, and as costly as its docstrings say."""

import inspect
import re
from math import prod

import numpy as np
import pytest

import labkit
from labkit import cuda, gemm
from labkit.cuda import cpp

STEPS = gemm.ladder("fp32")
SHAPES = [
    (16, 16, 16),
    (32, 48, 64),
    (1, 1, 1),
    (17, 33, 5),
    (40, 24, 70),
    (3, 100, 16),
    (260, 132, 20),
    (129, 130, 37),
]


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def right(C, A, B):
    return (np.abs(C - gemm.oracle(A, B)) <= gemm.error_bound(A, B)).all()


def test_launch_writes_to_arrays_of_the_device(step):
    A, B, C = map(cuda.to_device, gemm.Problem(20, 35, 18).operands())
    step.launch(A, B, C)
    assert right(C.copy_to_host(), A.copy_to_host(), B.copy_to_host())


def test_launch_refuses_operands_that_do_not_fit(step):
    A, B, C = gemm.Problem(4, 5, 6).operands()
    with pytest.raises(ValueError, match="C is 5 x 4"):
        step.launch(A, B, C.T)


def test_launch_takes_any_order_of_elements_or_says_that_it_needs_rows(step):
    A, B, C = gemm.Problem(20, 35, 18).operands()
    transposed = np.asfortranarray(A)
    if step.name < "s06":
        step.launch(transposed, B, C)
        assert right(C, A, B)
        return
    with pytest.raises(ValueError, match=r"A is not in C order.*np.ascontiguousarray\(A\)"):
        step.launch(transposed, B, C)
    with pytest.raises(ValueError, match="C is not in C order"):
        step.launch(A, B, np.empty((20, 70), np.float32)[:, ::2])
    step.launch(A[:1], B, C[:1])
    assert right(C[:1], A[:1], B)


def run(step, M, N, K):
    (trace,) = step.simulate(*gemm.Problem(M, N, K).operands()).traces
    return trace


def test_what_is_advised_is_the_idea_of_a_later_step():
    advised = {}
    for step in STEPS:
        trace = run(step, 256, 128, 32)
        advised[step.slug] = {finding.kind for finding in trace.advice}
    assert advised.pop("naive") == {"uncoalesced"}
    assert advised.pop("vectorised") == {"bank-conflict"}
    assert not any(advised.values())


def costs(step) -> dict[str, str]:
    """The costs that a step states, as expressions by what they are."""
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: expression for expression, what in lines}


def test_a_step_costs_what_its_docstring_says(step):
    M, N, K = 256, 512, 64
    trace = run(step, M, N, K)
    counters, blocks = trace.counters, prod(trace.grid)
    warps = blocks * prod(trace.block) / 32
    counted = {
        "global loads per output": counters.global_loads / (M * N),
        "sectors per warp and k": counters.global_load_sectors / (warps * K),
        "shared loads per output": counters.shared_loads / (M * N),
        "bytes of shared memory per block": trace.shared_bytes,
        "barriers per block": counters.barriers / blocks,
        "bank conflicts per block": counters.bank_conflicts / blocks,
        "shared load wavefronts per warp and k": counters.shared_load_wavefronts / (warps * K),
    }
    stated = costs(step)
    assert len(stated) >= 3
    for what, expression in stated.items():
        assert eval(expression, {"K": K}, vars(step.module)) == counted[what], what


def test_steps_are_derived_from_the_folder():
    assert [step.name for step in STEPS][:3] == ["s01_naive", "s02_coalesced", "s03_tiled"]
    assert all(step.kernel.__name__ == step.slug for step in STEPS)
    assert gemm.step("fp32", "tiled") == STEPS[2]
    assert all(step.idea.endswith(".") for step in STEPS)


def test_all_steps_have_the_same_form(step):
    assert list(inspect.signature(step.module.launches).parameters) == ["A", "B", "C"]
    assert list(inspect.signature(step.geometry).parameters) == ["M", "N"]


def test_tile_and_geometry_can_be_specialised():
    tiled = gemm.step("fp32", "tiled")
    A, B, C = gemm.Problem(20, 35, 18).operands()
    geometry = labkit.specialise(tiled.geometry, TILE=8)(20, 35)
    assert geometry == ((5, 3), (8, 8))
    trace = labkit.simulate(labkit.specialise(tiled.kernel, TILE=8), *geometry, A, B, C)
    assert right(trace.outputs[2], A, B) and trace.errors == ()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_step_and_twin_multiply_on_the_gpu(step, shape):
    A, B, C = gemm.Problem(*shape).operands(seed=4)
    launches = [step.launch]
    if step.path in cpp.names():
        twin = cpp.kernel(step.path)
        launches.append(lambda A, B, C: twin[step.geometry(*shape[:2])](A, B, C, *shape))
    for launch in launches:
        C[:] = np.nan
        launch(A, B, C)
        assert right(C, A, B)
        on_gpu = [cuda.to_device(array) for array in (A, B, np.full_like(C, np.nan))]
        launch(*on_gpu)
        assert right(on_gpu[2].copy_to_host(), A, B)

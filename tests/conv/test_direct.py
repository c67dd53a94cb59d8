"""The direct ladder: as costly as its docstrings say, and each step's advice is the idea of the next."""

import inspect
import re
from math import prod

import numpy as np
import pytest

from labkit import conv, cuda
from labkit.cuda import cpp
from labkit.formats import FP32
from labkit.ladder import relative_error

STEPS = conv.ladder("direct")
WHOLE = conv.Forward(1, 4, 18, 40, 128, 3, 9, groups=2)  # whole blocks of outputs, and rows of whole sectors


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def costs(step) -> dict[str, str]:
    """The costs that a step states, as expressions by what they are."""
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: expression for expression, what in lines}


def test_a_step_costs_what_its_docstring_says(step):
    problem = WHOLE
    (trace,) = step.simulate(*problem.operands()).traces
    counters, blocks = trace.counters, prod(trace.grid)
    outputs = prod(problem.shapes["y"])
    taps = problem.terms
    threads = blocks * prod(trace.block)
    counted = {
        "global loads per output": counters.global_loads / outputs,
        "sectors per warp and tap": counters.global_load_sectors / (threads / 32 * taps),
        "shared loads per output": counters.shared_loads / outputs,
        "bytes of shared memory per block": trace.shared_bytes,
        "barriers per block": counters.barriers / blocks,
        "bank conflicts per block": counters.bank_conflicts / blocks,
        "shared load wavefronts per warp and tap": counters.shared_load_wavefronts / (threads / 32 * taps),
    }
    names = {"T": taps, "R": problem.R, "S": problem.S}
    if hasattr(step.module, "tile"):
        names |= dict(zip(("ROWS", "COLUMNS", "PITCH"), step.tile(problem), strict=True))
    stated = costs(step)
    assert len(stated) >= 3
    for what, expression in stated.items():
        assert eval(expression, names, vars(step.module)) == pytest.approx(counted[what], rel=1e-12), what


def test_pixels_are_shared_by_ever_more_outputs():
    loads = [step.simulate(*WHOLE.operands()).traces[0].counters.global_loads for step in STEPS]
    assert loads[0] == loads[1] > 30 * loads[2] > 300 * loads[3]


def test_what_is_advised_is_the_idea_of_a_later_step():
    advised = {
        step.slug: {finding.kind for finding in step.simulate(*WHOLE.operands()).traces[0].advice} for step in STEPS
    }
    assert advised == {"naive": {"uncoalesced"}, "coalesced": set(), "halo": set(), "registers": {"bank-conflict"}}


def test_a_filter_whose_tile_exceeds_shared_memory_is_refused():
    problem = conv.Forward(1, 1, 500, 500, 1, 3, 3, dilation_h=200, dilation_w=200)
    for slug in ("halo", "registers"):
        with pytest.raises(ValueError, match="need 7[0-9,]* bytes of shared memory"):
            STEPS.step(slug).launches(*problem.operands())


def test_all_steps_have_the_same_form(step):
    assert list(inspect.signature(step.module.launches).parameters) == ["x", "w", "y", "problem"]
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


def test_a_step_writes_to_arrays_of_the_device_and_refuses_others(step):
    problem = conv.Forward(1, 2, 5, 6, 3, 2, 3, top=1, groups=1)
    before = problem.operands()
    x, w, y = map(cuda.to_device, before[:3])
    step.launch(x, w, y, problem)
    assert problem.is_right(before, (x, w, y.copy_to_host()))
    with pytest.raises(ValueError, match="y, the outputs, is"):
        step.launch(x, w, cuda.to_device(np.zeros((1, 3, 4, 4), np.float32)), problem)
    with pytest.raises(ValueError, match="takes layout = NCHW"):
        images = conv.Forward(1, 2, 5, 6, 3, 2, 3, layout="NHWC")
        step.launch(*images.operands())


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("problem", [*STEPS[0].examples, WHOLE], ids=str)
def test_step_and_twin_are_right_on_the_gpu(step, problem):
    before = problem.operands(seed=4)
    (launch,) = step.launches(*map(cuda.to_device, before[:3]), problem)
    runs = [launch.run]
    if step.path in cpp.names():
        twin = cpp.kernel(step.path)[launch.grid, launch.block, 0, launch.shared_bytes]
        runs.append(lambda: twin(*launch.arguments[:3], *problem.cpp_sizes()))
    for run in runs:
        x, w, y = launch.arguments[:3]
        y.copy_to_device(before[2])
        run()
        assert problem.is_right(before, (x, w, y.copy_to_host()))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(("C", "K"), [(32, 1), (1, 32)], ids=["images", "outputs"])
def test_more_elements_than_32_bits_with_a_sign_count(step, C, K):
    problem = conv.Forward(2**31 // (32 * 64 * 64) + 1, C, 64, 64, K, 3, 3, top=1, bottom=1, left=1, right=1)
    before = problem.operands()
    x, w, y = map(cuda.to_device, before[:3])
    step.launch(x, w, y, problem)
    after = before[0], before[1], y.copy_to_host(), problem
    assert relative_error(problem, problem.expected(problem.checked_part(before)), after, FP32) < 1e-6

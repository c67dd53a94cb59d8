"""Implicit GEMM: right on problems of all kinds, cut up in any way, and as costly as the docstrings say."""

import re
from dataclasses import replace

import numpy as np
import pytest
from argument_types import argument_type
from assembler import assembled
from sampling import sampled

from labkit import conv, cuda
from labkit.arrays.workspace import Workspace
from labkit.conv.implicit_gemm.tilings import TILINGS, Tiling, best_split, best_tiling
from labkit.conv.sizes import make_sizes
from labkit.simulator.in_place import simulate_in_place

STEPS = conv.ladder("implicit_gemm")
TILED = [step for step in STEPS if step.name >= "s04"]


def simulated(step, operands, **options):
    """The traces of a step's launches, which write to the operands, and the bytes of its workspace."""
    workspace = Workspace()
    if "workspace" in step.module.launches.__code__.co_varnames:
        options["workspace"] = workspace
    traces = [
        simulate_in_place(one.kernel, one.grid, one.block, *one.arguments, shared_bytes=one.shared_bytes)
        for one in step.module.launches(*operands, **options)
    ]
    assert not [error for trace in traces for error in trace.errors]
    return traces, workspace.size_bytes


def is_right(step, problem, **options):
    before = problem.operands(seed=3)
    after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in before)
    simulated(step, after, **options)
    return problem.is_right(before, after)


def some_problems(count, seed):
    """Problems with strides, paddings, dilations, groups and turned filters, small and ragged, drawn at random."""
    rng = np.random.default_rng(seed)

    def draw(most):
        return int(rng.integers(1, most + 1))

    while count:
        groups = draw(3)
        R, S, dilation_h, dilation_w = draw(7), draw(7), draw(3), draw(3)
        found = {"N": draw(3), "C": groups * draw(4), "H": draw(12), "W": draw(12), "K": groups * draw(6)}
        found |= {"R": R, "S": S, "stride_h": draw(3), "stride_w": draw(3), "groups": groups}
        reach_h, reach_w = dilation_h * (R - 1), dilation_w * (S - 1)
        found |= {name: int(rng.integers(0, reach_h + 1)) for name in ("top", "bottom")}
        found |= {name: int(rng.integers(0, reach_w + 1)) for name in ("left", "right")}
        found |= {"dilation_h": dilation_h, "dilation_w": dilation_w, "flipped": bool(rng.integers(2))}
        try:
            yield conv.Forward(**found)
        except ValueError:  # the filter is larger than the image
            continue
        count -= 1


@pytest.mark.parametrize("problem", sampled(some_problems(300, 1), 10), ids=str)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
@pytest.mark.sample(10)
def test_a_step_is_right_on_problems_of_all_kinds(step, problem):
    problem = step.problem(**problem.fields)
    if why := problem.misfit(step.SUPPORTED):
        problem = replace(problem, groups=1, flipped=False)
        assert "this step takes" in why
    assert is_right(step, problem)


@pytest.mark.parametrize(
    ("step", "tiling"), sampled([(step, tiling) for tiling in TILINGS for step in TILED], 12), ids=str
)
@pytest.mark.sample(6)
def test_a_step_is_right_by_every_tiling(step, tiling):
    C, K = (70, 2) if step.slug == "backward_data" else (2, 70)
    assert is_right(step, step.problem(2, C, 6, 7, K, 3, 3, top=1, right=2), tiling=tiling)


@pytest.mark.parametrize("step", TILED, ids=lambda step: step.slug)
@pytest.mark.parametrize("numbers", [(3, 2, 5, 5, 4, 6, 6, 1, 1, 3, 5, 1, 4), (2, 12, 6, 6, 4, 2, 2, 2, 2)], ids=str)
@pytest.mark.sample(2)
def test_images_that_32_bits_do_not_count_take_several_launches(step, numbers, monkeypatch):
    problem = step.problem(*numbers)
    whole = len(simulated(step, problem.operands())[0])
    monkeypatch.setattr(step.module, "MAX_ELEMENTS", 30)
    assert len(simulated(step, problem.operands())[0]) > whole
    assert is_right(step, problem)


def test_what_32_bits_cannot_count_is_told():
    problem = conv.Forward(1, 1, 2**16, 2**15, 1, 1, 1)
    with pytest.raises(ValueError, match="the pixels of an image are 2147483648, and this step counts them below"):
        make_sizes(problem)


@pytest.mark.parametrize("step", TILED, ids=lambda step: step.slug)
def test_values_that_are_not_finite_stay_where_they_are_met(step):
    """Rows and columns that fill up a tile are zeros, or reach no result: nothing is multiplied by zero there."""
    problem = step.problem(1, 3, 5, 5, 3, 2, 2)
    operands = problem.operands()
    given = next(X for name, X in zip("xyw", (operands[0], operands[2], operands[1])) if name != problem.result)
    given.flat[0] = np.inf
    simulated(step, operands)
    result = operands["xwy".index(problem.result)]
    assert 0 < np.count_nonzero(~np.isfinite(result)) < result.size / 2


COSTLY = {  # whole tiles of every step, and no borders; and by which tiling
    **{slug: ((4, 16, 9, 9, 128, 2, 2), {}) for slug in ("index", "offsets", "magic")},
    "gathered": ((4, 16, 9, 9, 128, 2, 2), {"tiling": Tiling(64, 4)}),
    "split": ((4, 16, 9, 9, 128, 2, 2), {"tiling": Tiling(64, 4), "parts": 2}),
    "backward_data": ((4, 128, 8, 8, 64, 1, 1), {"tiling": Tiling(64, 4)}),
    "backward_filter": ((4, 64, 9, 9, 128, 2, 2), {"tiling": Tiling(64, 4), "parts": 2}),
}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
def test_a_step_costs_what_its_docstring_says(step):
    numbers, options = COSTLY[step.slug]
    problem = step.problem(*numbers)
    traces, workspace_bytes = simulated(step, problem.operands(), **options)
    trace = next(trace for trace in traces if trace.counters.flops_by_dtype)
    counters, blocks = trace.counters, trace.grid[0] * trace.grid[1] * trace.grid[2]
    elements = int(np.prod(problem.shapes[problem.result]))
    shared_loads = counters.shared_loads / elements
    counted = {
        "global loads per output": counters.global_loads / elements,
        "global loads per pixel": counters.global_loads / elements,
        "global loads per element of the filters": counters.global_loads / elements,
        "bytes of shared memory per block": trace.shared_bytes,
        "barriers per block": counters.barriers / blocks,
        "bank conflicts per block": counters.bank_conflicts / blocks,
        "bytes of workspace": workspace_bytes,
    }
    names = {"CRS": problem.C * problem.R * problem.S, "KRS": problem.K * problem.R * problem.S}
    names |= {"NPQ": problem.N * problem.P * problem.Q, "K": problem.K, "C": problem.C, "N": problem.N}
    names |= {"PQ": problem.P * problem.Q, "parts": 2}
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:[:;,].*)?$", step.module.__doc__, re.MULTILINE)
    assert len(lines) >= 4
    value = {what: eval(expression, dict(names), vars(step.module)) for expression, what in lines}
    for_shared = [value.pop(what) for what in list(value) if what.startswith("shared loads per output")]
    assert not for_shared or sum(for_shared) == shared_loads
    assert value == {what: counted[what] for what in value}


@pytest.mark.parametrize(
    ("numbers", "parts"), [((1, 50, 5, 4, 3, 2, 2), 3), ((2, 70, 3, 3, 2, 1, 1, 1, 1), 5)], ids=str
)
def test_parts_of_a_sum_are_added_up(numbers, parts):
    problem, step = conv.Forward(*numbers), STEPS.step("split")
    traces, found = simulated(step, problem.operands(), tiling=Tiling(32, 1), parts=parts)
    parts = traces[0].grid[2]
    assert len(traces) == 2 and parts > 1
    assert found == -(-4 * parts * problem.N * problem.K * problem.P * problem.Q // 256) * 256
    assert is_right(step, problem, tiling=Tiling(32, 1), parts=parts)


def test_only_where_it_fills_the_gpu_is_a_sum_cut_into_parts():
    assert best_split(128, 401408, 5184) == (Tiling(64, 4), 1)
    tiling, parts = best_split(128, 1600, 6272)
    blocks = -(-128 // tiling.tile[0]) * -(-1600 // tiling.tile[1])
    assert parts > 4 and 100 < blocks * parts < 600


def test_no_forward_step_but_those_with_a_table_or_parts_takes_workspace():
    assert [step.slug for step in STEPS if "workspace" in step.module.launches.__code__.co_varnames] == [
        "offsets",
        "split",
        "backward_data",
        "backward_filter",
    ]


def test_the_table_and_the_filters_brought_together_take_exactly_what_is_stated():
    problem = conv.BackwardData(2, 5, 9, 8, 3, 4, 3, 2, 3, 2, 1, 1)
    _, found = simulated(STEPS.step("backward_data"), problem.operands())
    rows = [4 * problem.C * -(-problem.K * taps // 4) * 4 for taps in (2 * 1,) * 6]  # 2 x 3 remainders, 2 x 1 taps each
    assert found == sum(-(-size // 256) * 256 for size in rows)


def test_a_long_sum_is_cut_into_parts_that_a_second_launch_adds_up():
    step = STEPS.step("backward_filter")
    problem = step.examples[-1]
    traces, found = simulated(step, problem.operands())
    parts = traces[0].grid[2] // problem.groups
    assert len(traces) == 2 and parts > 1
    assert found == -(-parts * 4 * int(np.prod(problem.shapes["w"])) // 256) * 256
    traces, found = simulated(step, step.examples[0].operands())
    assert len(traces) == 1 and found == 0


@pytest.mark.parametrize(
    ("rows", "cols", "expected"),
    [(128, 401408, (64, 4)), (96, 1782272, (48, 1)), (128, 73728, (64, 1)), (64, 200704, (32, 4))],
)
def test_the_tiling_fits_the_filters_and_the_last_round(rows, cols, expected):
    assert best_tiling(rows, cols) == expected


@pytest.mark.long
@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize(
    ("step", "tiling", "border"), sampled([(s, t, b) for b in range(3) for t in TILINGS for s in TILED], 1), ids=str
)
def test_a_tiling_assembles_without_spills(step, tiling, border, tmp_path):
    if step.slug == "backward_data" and border == 0:
        border = 1  # it leaves out none
    problem = step.examples[0]
    options = {"workspace": Workspace()} if "workspace" in step.module.launches.__code__.co_varnames else {}
    kernel = step.specialise_tiling(tiling, border > 0 if step.slug == "backward_filter" else border)[0]
    launches = step.module.launches(*problem.operands(), tiling=tiling, **options)
    arguments = next(one.arguments for one in launches if one.kernel.py_func.__name__ == step.slug)
    from labkit.cuda.compiling import ptx_text

    report, _ = assembled(ptx_text(kernel, map(argument_type, arguments), (9, 0)), (9, 0), tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in report


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
@pytest.mark.parametrize(
    "layer", [(16, 8, 13, 15, 96, 3, 3, 1, 1, 1, 1, 1, 1), (9, 12, 30, 31, 40, 5, 7, 2, 3)], ids=str
)
def test_a_step_is_right_on_the_gpu(step, layer):
    problem = step.problem(*layer)
    before = problem.operands()
    after = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*after)
    found = [X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in after]
    assert problem.is_right(before, tuple(found))

"""Every step of softmax: its passes over memory, huge and missing values, wide rows, wrong kernels, equal bits."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, simulate, softmax, specialise
from labkit.formats import BF16, FP32
from labkit.ladder import TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.softmax.online import exp, warp_max

PROBLEMS = 200 if WHOLE else 8  # random ones, of a step
AS_DRAWN = [Phase.generate]
STEPS = [*softmax.ladder("forward"), *softmax.ladder("backward")]


@pytest.fixture(params=STEPS, ids=lambda step: step.path)
def step(request):
    return request.param


def right(step, problem, format=FP32, seed=0) -> bool:
    """Whether a step is right in the simulator, which has nothing to say against it."""
    before = problem.operands(format, seed)
    result = step.simulate(*before, format=format)
    assert result.errors == ()
    return problem.is_right(before, result.operands, format)


def stated(step) -> dict[str, float]:
    """The costs that a step states, by what they are of."""
    lines = re.findall(r"^    (\d+) +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: float(number) for number, what in lines}


def passes(trace, problem) -> float:
    """How often a launch reads or writes all elements of a matrix."""
    return sum(result.bytes for result in trace.sites if result.site.array in problem.ARRAYS) / (4 * problem.elements)


def test_a_step_makes_as_many_passes_over_memory_as_it_says(step):
    problem = step.problem(16, 256)
    costs = stated(step)
    counted = {trace.kernel: passes(trace, problem) for trace in step.simulate(*problem.operands()).traces}
    assert costs.pop("passes in all") == sum(costs.values())
    assert costs == counted


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    arrays = len(step.problem.ARRAYS)
    assert names[: arrays + 1] == [*step.problem.ARRAYS, "problem"]
    assert set(names[arrays + 1 :]) <= {"workspace", "format"}
    assert step.idea.endswith(".") and step.kernel.__name__ == step.slug


def test_a_step_refuses_arrays_that_do_not_fit(step):
    *arrays, problem = step.problem(3, 40).operands()
    for index, X in enumerate(arrays):
        for wrong in (X[:2], X.astype(np.float64)):
            with pytest.raises(
                (TypeError, ValueError), match=f"{problem.ARRAYS[index]} (is 2 x 40, but|holds float64)"
            ):
                step.simulate(*arrays[:index], wrong, *arrays[index + 1 :], problem)


def test_huge_logits_and_a_first_value_of_minus_infinity_come_out_right(step):
    for columns in (200, 333):
        for format in step.formats:
            assert right(step, step.problem(6, columns, hard=True), format, seed=1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
def test_a_row_of_no_numbers_is_as_expected_and_harms_no_other(value):
    """In torch too a row becomes NaN that has NaN or infinity anywhere, or nothing but minus infinity."""
    for step in softmax.ladder("forward"):
        problem = softmax.Forward(4, 300)
        before = problem.operands()
        before[0][1, 137] = value
        before[0][2] = value
        with np.errstate(invalid="ignore", divide="ignore"):
            result = step.simulate(*before).operands
        assert problem.is_right(before, result), step.slug
        assert np.isnan(result[1][2]).all() and np.isfinite(result[1][[0, 3]]).all(), step.slug
        assert (result[1][1, 137] == 0) if value == -np.inf else np.isnan(result[1][1]).all(), step.slug


@pytest.mark.needs("torch")
def test_what_is_no_number_is_where_torch_has_it():
    import torch

    x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    x[1, 3], x[2, 3], x[3, 3] = np.nan, np.inf, -np.inf
    x[4], x[5, 1:] = -np.inf, -np.inf
    problem = softmax.Forward(6, 40)
    ((_, one),) = problem.expected((x, None, problem)).items()
    assert one.holds(torch.softmax(torch.from_numpy(x), 1).numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_no_number_stays_in_its_row(value):
    for step in softmax.ladder("backward"):
        problem = softmax.Backward(3, 300)
        before = problem.operands()
        before[0][1, 137] = value
        dx = step.simulate(*before).operands[2]
        assert not np.isfinite(dx[1]).any() and np.isfinite(dx[[0, 2]]).all(), step.slug


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("name", ["forward", "backward"])
@pytest.mark.parametrize("columns", [32_776, 80_000, 131_072])
def test_a_cluster_shares_a_row(columns, name, format):
    """Also where its last block has fewer columns than the others, or none."""
    step = softmax.ladder(name).step("clusters")
    assert right(step, step.problem(2, columns, hard=format is FP32), format)


@pytest.mark.parametrize("name", ["forward", "backward"])
def test_a_cluster_takes_single_values_of_rows_that_begin_anywhere(name):
    step = softmax.ladder(name).step("clusters")
    for format in (FP32, BF16):
        assert right(step, step.problem(1, 16_385), format)


@pytest.mark.parametrize("columns", [3, 53, 197, 614, 2051])
@pytest.mark.parametrize("name", ["forward", "backward"])
def test_rows_may_begin_at_any_alignment(name, columns):
    step = softmax.ladder(name).step("unaligned")
    for format in step.formats:
        assert right(step, step.problem(11, columns, hard=format is FP32), format)


@pytest.mark.parametrize(
    ("name", "most"), [("forward", {4: 32_768, 8: 65_536, 1: 32_768}), ("backward", {4: 8192, 8: 16_384, 1: 8192})]
)
def test_a_row_has_no_more_blocks_than_it_takes(name, most):
    """`most`: columns that one block keeps, by how many values its threads load at once."""
    geometry = softmax.ladder(name).step("clusters").geometry
    for width, columns in most.items():
        for blocks in (1, 2, 4, 8):
            assert geometry(blocks * columns, width)[0] == blocks
            if blocks < 8:
                assert geometry(blocks * columns + width, width)[0] == 2 * blocks


def test_rows_that_a_step_cannot_keep_are_refused():
    for name, slug, columns, why in (
        ("forward", "on_chip", 32_769, "a row has 32769 values, and a block keeps 32768 in registers"),
        ("forward", "warps", 1025, "a row has 1025 values, and a warp keeps 1024 in registers: choose another step"),
        ("forward", "clusters", 262_148, "a row has 262148 values, and a cluster keeps 262144"),
        ("forward", "lanes", 513, "a row has 513 values, and 16 lanes keep 512 in registers"),
        ("backward", "on_chip", 16_385, "a row has 16385 values, and a block keeps 16384 in registers"),
        ("backward", "warps", 513, "a row has 513 values, and a warp keeps 512 in registers"),
        ("backward", "clusters", 131_076, "a row has 131076 values, and a cluster keeps 131072"),
    ):
        step = softmax.ladder(name).step(slug)
        step.geometry(columns // 32 * 32, 4)  # the widest row that it keeps
        with pytest.raises(TooLarge, match=why):
            step.simulate(*step.problem(1, columns).operands())
        if slug != "clusters":  # whose registers keep two of bfloat16
            with pytest.raises(TooLarge, match=why):
                step.simulate(*step.problem(1, columns).operands(BF16), format=BF16)


# --- wrong kernels ---------------------------------------------------------------------------------


@cuda.jit(device=True)
def without_rescaling(maximum, total, value):
    larger = max(maximum, value)
    return larger, total + exp(value - larger)


@cuda.jit(device=True)
def by_the_wrong_difference(maximum, total, value):
    larger = max(maximum, value)
    return larger, total * exp(larger - value) + exp(value - larger)


@cuda.jit(device=True)
def of_a_warp_by_sum(maximum, total):
    return warp_max(maximum), warp_all_sum(total)


@cuda.jit(device=True)
def of_the_first_warp(maximum, total, of_warps):
    t = cuda.threadIdx.x
    if t == 0:
        of_warps[0, 0], of_warps[1, 0] = maximum, total
    cuda.syncthreads()
    return of_warps[0, 0], of_warps[1, 0]


WRONG = {
    "what was summed is not rescaled": {"update_max_and_sum": without_rescaling},
    "rescaled by what it is not": {"update_max_and_sum": by_the_wrong_difference},
    "lanes are added up": {"warp_max_and_sum": of_a_warp_by_sum},
    "other warps are forgotten": {"block_max_and_sum": of_the_first_warp},
    "the maximum begins at zero": {"LOWEST_FLOAT32": np.float32(0)},
    "the maximum begins at minus infinity": {"LOWEST_FLOAT32": np.float32(-np.inf)},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_wrong_kernel_is_refused(change, monkeypatch):
    step = softmax.ladder("forward").step("online")
    problem = softmax.Forward(5, 700, hard=True)
    assert right(step, problem)
    monkeypatch.setattr(step.module, "online", specialise(step.kernel, **change))
    before = problem.operands()
    with np.errstate(all="ignore"):
        assert not problem.is_right(before, step.simulate(*before).operands)


def test_a_block_that_forgets_its_barrier_is_told():
    @cuda.jit(device=True)
    def without_a_barrier(maximum, total, of_warps):
        t = cuda.threadIdx.x
        if t % 32 == 0:
            of_warps[0, t // 32], of_warps[1, t // 32] = maximum, total
        return of_warps[0, t % 32 % (cuda.blockDim.x // 32)], total

    step = softmax.ladder("forward").step("on_chip")
    problem = softmax.Forward(2, 1024)
    (launch,) = step.launches(*problem.operands())
    trace = simulate(specialise(launch.kernel, block_max_and_sum=without_a_barrier), 2, launch.block, *launch.arguments)
    assert any(finding.kind == "race" for finding in trace.errors)


# --- many problems ---------------------------------------------------------------------------------


def problems(step):
    """Random small problems that a step takes: any number of columns, and sometimes many rows."""
    most = {"warps": 500, "lanes": 500}.get(step.slug, 2500)

    @st.composite
    def drawn(draw):
        rows, columns = draw(st.integers(1, 5) | st.sampled_from([40, 70])), draw(st.integers(1, most))
        return step.problem(rows, draw(st.sampled_from([columns, -(-columns // 8) * 8])), draw(st.booleans()))

    return drawn()


def launched(step, problem, format, seed) -> bool:
    before = problem.operands(format, seed)
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*on_gpu, format=format)
    return problem.is_right(before, tuple(map(on_host, on_gpu)), format)


def on_host(X):
    return X.copy_to_host() if hasattr(X, "copy_to_host") else X


@pytest.mark.parametrize("run", [right, pytest.param(launched, marks=pytest.mark.needs("gpu"))])
def test_a_step_is_right_on_random_problems(step, run):
    @settings(max_examples=PROBLEMS, phases=AS_DRAWN, deadline=None)
    @given(problem=problems(step), seed=st.integers(0, 2**16), format=st.sampled_from(step.formats))
    def check(problem, seed, format):
        assert run(step, problem, format, seed)

    check()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("sizes", [(2000, 256), (40, 1001), (9, 16384), (40, 65536)], ids=str)
def test_a_step_gives_the_same_bits_in_100_runs_on_the_gpu(step, sizes):
    problem = step.problem(*sizes)
    before = problem.operands(seed=4)
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    first = None
    for _ in range(100):
        try:
            step.launch(*on_gpu)
        except TooLarge:
            pytest.skip("the step does not take rows of this width")
        after = tuple(map(on_host, on_gpu))
        first = first or after
        assert all(np.array_equal(*pair) for pair in zip(after[:-1], first[:-1], strict=True))
    assert problem.is_right(before, first)


@pytest.mark.needs("gpu")
@pytest.mark.long
@pytest.mark.parametrize("columns", [512, 65536])
def test_more_elements_than_32_bits_count(step, columns):
    """The first and the last rows and some between them."""
    problem = step.problem(2**31 // columns + 65, columns)
    before = problem.operands()
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    try:
        step.launch(*on_gpu)
    except TooLarge:
        pytest.skip("the step does not take rows of this width")
    after = problem.checked_part(tuple(map(on_host, on_gpu)))
    assert all(one.holds(after[index]) for index, one in problem.expected(problem.checked_part(before)).items())

"""Every step of the norms of rows: its passes over memory, hard and endless values, wide rows, and the same bits."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, norm
from labkit.arrays.workspace import CountingWorkspace
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import TooLarge
from norm.gpus import give_sms

PROBLEMS = 200 if WHOLE else 8  # random ones, of a step
AS_DRAWN = [Phase.generate]
KINDS = "layer", "rms"
STEPS = [*norm.ladder("rows"), *norm.ladder("rows_backward")]


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
    matrices = [name for name, shape in problem.shapes.items() if len(shape) == 2]
    return sum(result.bytes for result in trace.sites if result.site.array in matrices) / (4 * problem.elements)


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


@pytest.mark.parametrize("kind", KINDS)
def test_hard_rows_come_out_right(step, kind):
    for columns in (200, 333):
        assert right(step, step.problem(6, columns, kind, hard=True), seed=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_value_far_from_all_others_does_no_harm(kind):
    """Were it taken away from all values, its square would drown the variance."""
    for step in norm.ladder("rows"):
        problem = norm.RowForward(2, 500, kind)
        before = problem.operands()
        before[0][:, 0] = 1e4
        assert problem.is_right(before, step.simulate(*before).operands), step.slug


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_stays_in_its_row(kind, value):
    """Infinity makes rstd 0 in RMS norm: its row becomes 0, but for a NaN where the infinity was."""
    for step in norm.ladder("rows"):
        problem = norm.RowForward(3, 300, kind)
        before = problem.operands()
        before[0][1, 137] = value
        with np.errstate(invalid="ignore"):
            after = dict(zip(problem.ARRAYS, step.simulate(*before).operands, strict=False))
            whole = {problem.ARRAYS[index]: one.value for index, one in problem.expected(before).items()}
        is_zero = kind == "rms" and np.isinf(value)
        assert np.isnan(after["y"][1]).sum() == (1 if is_zero else 300), step.slug
        assert after["rstd"][1] == 0 if is_zero else np.isnan(after["rstd"][1]), step.slug
        for name in whole:
            assert np.allclose(after[name][[0, 2]], whole[name][[0, 2]], rtol=1e-4, atol=1e-4), (step.slug, name)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_gradients_that_are_no_numbers_stay_in_their_row_and_column(value):
    for step in norm.ladder("rows_backward"):
        problem = norm.RowBackward(3, 300)
        before = problem.operands()
        before[0][1, 137] = value
        after = dict(zip(problem.ARRAYS, step.simulate(*before).operands, strict=False))
        assert not np.isfinite(after["dx"][1]).any() and np.isfinite(after["dx"][[0, 2]]).all(), step.slug
        for name in ("dweight", "dbias"):
            assert not np.isfinite(after[name][137]) and np.isfinite(np.delete(after[name], 137)).all(), step.slug


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [24, 2 * 8192 + 8, 8192 + 3])
@pytest.mark.sample(3)
def test_a_cluster_takes_several_rows(columns, kind, format, monkeypatch):
    """More than have room at once, and where the last block has fewer columns than the others."""
    step, at_once = norm.ladder("rows_backward").step("clusters"), 1 if columns % 8 else 16 // format.itemsize
    many = norm.RowBackward(10**6, columns)
    _, blocks, *_ = step.geometry(many, format.itemsize, at_once)
    give_sms(monkeypatch, blocks)
    clusters, *_ = step.geometry(many, format.itemsize, at_once)
    assert right(step, norm.RowBackward(4 * clusters + 1, columns, kind, hard=format is FP32), format)


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [24, 1400, 1001])
def test_a_block_takes_several_rows(columns, kind, format, monkeypatch):
    step, at_once = norm.ladder("rows").step("overlapped"), 1 if columns % 8 else 16 // format.itemsize
    give_sms(monkeypatch, 1)
    blocks, *_ = step.geometry(norm.RowForward(10**6, columns), format.itemsize, at_once)
    assert right(step, norm.RowForward(3 * blocks + 1, columns, kind, hard=format is FP32), format)


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [8192 + 3, 2 * 8192 + 8, 65_540])
@pytest.mark.sample(2)
def test_a_row_is_shared_by_a_cluster(columns, kind, format):
    """An odd number of rows, of which it takes two at once if it can, and a last block with fewer columns."""
    step = norm.ladder("rows").step("clusters")
    assert right(step, norm.RowForward(3, columns, kind, hard=format is FP32), format)


@pytest.mark.parametrize("slug", ["one_read", "warps", "split", "sums_first"])
def test_a_block_adds_up_several_rows(slug, monkeypatch):
    step = norm.ladder("rows_backward").step(slug)
    give_sms(monkeypatch, 1)
    for format in step.formats:
        for sizes in ((150, 300, "layer"), (150, 301, "rms")):
            assert right(step, norm.RowBackward(*sizes), format)


@pytest.mark.parametrize(("columns", "blocks"), [(4096, 1), (16384, 2), (65536, 8), (65540, 8)])
def test_a_row_has_no_more_blocks_than_it_takes(columns, blocks):
    assert norm.ladder("rows").step("clusters").geometry(columns, 4)[0] == blocks


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [3, 53, 197, 614, 2051])
@pytest.mark.parametrize("path", ["rows/unaligned", "rows_backward/wide"])
@pytest.mark.sample(5)
def test_rows_may_begin_at_any_alignment(path, columns, kind, format):
    """Where all matrices begin at a vector, and where none does."""
    name, slug = path.split("/")
    step = norm.ladder(name).step(slug)
    problem = step.problem(11, columns, kind, hard=format is FP32 and columns > 8)
    assert right(step, problem, format)
    before = tuple(one_element_further(X) if np.ndim(X) == 2 else X for X in problem.operands(format))
    assert problem.is_right(before, step.simulate(*before, format=format).operands, format)


def one_element_further(X):
    """A copy that begins one element after a multiple of 16 bytes."""
    begin = 16 // X.itemsize
    memory = np.empty(X.size + 2 * begin, X.dtype)
    begin = -(memory.ctypes.data // X.itemsize) % begin + 1
    memory[begin : begin + X.size] = X.ravel()
    return memory[begin : begin + X.size].reshape(X.shape)


@pytest.mark.parametrize(("rows", "kernels"), [(7, 2), (40, 3)])
def test_few_rows_need_no_merge_of_partial_sums(rows, kernels):
    step = norm.ladder("rows_backward").step("wide")
    problem = norm.RowBackward(rows, 4096)
    assert len(step.launches(*problem.operands(), workspace=CountingWorkspace())) == kernels
    assert right(step, problem)


@pytest.mark.parametrize(("rows", "sms", "at_once"), [(8, 132, 1), (64, 132, 4), (512, 132, 4), (64, 16, 4)])
def test_a_cluster_takes_more_rows_only_if_all_sms_have_work(rows, sms, at_once, monkeypatch):
    give_sms(monkeypatch, sms)
    step = norm.ladder("rows").step("clusters")
    assert step.rows_per_cluster(norm.RowForward(rows, 131_072), 8, BF16.itemsize, 8) == at_once


def test_rows_that_a_step_cannot_keep_are_refused():
    for name, slug, columns, why in (
        ("rows", "warps", 1025, "a row has 1025 values, and a warp keeps 1024 in registers: choose another step"),
        ("rows", "lanes", 513, "a row has 513 values, and 16 lanes keep 512 in registers"),
        ("rows", "on_chip", 32769, "a row has 32769 values, and a block keeps 32768 in registers"),
        ("rows", "overlapped", 57345, "a row has 57345 values, and a block keeps 57344 in shared memory"),
        ("rows", "clusters", 131_073, "a row has 131073 values, and a cluster keeps 131072"),
        ("rows_backward", "warps", 513, "a row has 513 values, and a warp keeps 512 in registers"),
        ("rows_backward", "lanes", 513, "a row has 513 values, and 32 lanes keep 512 in registers"),
        ("rows_backward", "one_read", 8193, "a row has 8193 values, and a block keeps 8192 in registers"),
        ("rows_backward", "clusters", 65537, "a row has 65537 values, and a cluster keeps 65536"),
    ):
        step = norm.ladder(name).step(slug)
        with pytest.raises(TooLarge, match=why):
            step.simulate(*step.problem(1, columns).operands())
        if slug != "overlapped":  # which counts bytes
            with pytest.raises(TooLarge, match=why):
                step.simulate(*step.problem(1, columns).operands(BF16), format=BF16)


def problems(step):
    """Random small problems that a step takes: any number of columns, and sometimes many rows."""
    most = {"warps": 500, "lanes": 500}.get(step.slug, 2500)

    @st.composite
    def drawn(draw):
        rows, columns = draw(st.integers(1, 5) | st.sampled_from([40, 70])), draw(st.integers(1, most))
        columns = draw(st.sampled_from([columns, -(-columns // 8) * 8]))
        assume(columns >= 8)  # sums of squares are as wrong as two values are near
        others = draw(st.sampled_from(KINDS)), draw(st.sampled_from([1e-5, 1e-3])), draw(st.booleans())
        return step.problem(rows, columns, *others)

    return drawn()


def launched(step, problem, format, seed) -> bool:
    before = problem.operands(format, seed)
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*on_gpu, format=format)
    return problem.is_right(before, tuple(map(on_host, on_gpu)), format)


def on_host(X):
    return X.copy_to_host() if hasattr(X, "copy_to_host") else X


@pytest.mark.long
@pytest.mark.parametrize("run", [right, pytest.param(launched, marks=pytest.mark.needs("gpu"))])
@pytest.mark.sample(4)
def test_a_step_is_right_on_random_problems(step, run):
    @settings(max_examples=PROBLEMS, phases=AS_DRAWN, deadline=None)
    @given(problem=problems(step), seed=st.integers(0, 2**16), format=st.sampled_from(step.formats))
    def check(problem, seed, format):
        assert run(step, problem, format, seed)

    check()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(2000, 256), (40, 1001), (9, 16384), (40, 65536)], ids=str)
def test_a_step_gives_the_same_bits_in_100_runs_on_the_gpu(step, sizes, kind):
    problem = step.problem(*sizes, kind)
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
        assert all(np.array_equal(*pair) for pair in zip(after[:-1], first[:-1], strict=True) if pair[0] is not None)
    assert problem.is_right(before, first)


@pytest.mark.needs("gpu")
@pytest.mark.long
@pytest.mark.parametrize("columns", [512, 65536])
def test_more_elements_than_32_bits_count(step, columns):
    """Statistics, y and dx, of the first and the last rows and of some between them."""
    problem = step.problem(2**31 // columns + 65, columns)
    before = problem.operands()
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    try:
        step.launch(*on_gpu)
    except TooLarge:
        pytest.skip("the step does not take rows of this width")
    after = problem.checked_part(tuple(map(on_host, on_gpu)))
    assert all(one.holds(after[index]) for index, one in problem.expected(problem.checked_part(before)).items())

"""Every step of attention forward: what it counts and touches, random problems, values that are no numbers."""

import inspect
import re
from collections import Counter
from itertools import product
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from sampling import WHOLE, sampled

from labkit import attention, cuda
from labkit.attention import traffic
from labkit.attention.problem import ARRAYS, as_bhsd
from labkit.formats import BF16, FP32
from labkit.simulator import limits

Problem = attention.AttentionForward
STEPS = attention.ladder("forward")
PROBLEMS = 100 if WHOLE else 2  # random ones, of a step


BY_TILES = {step.slug for step in STEPS if hasattr(step.module, "WARPGROUPS")}  # test_wgmma_steps.py has more


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


@pytest.fixture(params=[step for step in STEPS if step.slug not in BY_TILES], ids=lambda step: step.slug)
def step_by_rows(request):
    return request.param


def traces_of(step, problem, format=None):
    format = format or step.formats[0]
    before = problem.operands(format)
    run = step.simulate(*before, format=format)
    assert run.errors == () and problem.is_right(before, run.operands, format)
    return run.traces


def stated(step) -> dict[str, str]:
    """The costs that a step states, as expressions by what they are."""
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:, (?:of|where) .*)?$", step.module.__doc__, re.MULTILINE)
    return {what: expression for expression, what in lines}


def test_a_step_costs_what_its_docstring_says(step_by_rows):
    step = step_by_rows
    problem = Problem(1, 1, 128, 64)
    traces = traces_of(step, problem)
    sites = [found for trace in traces for found in trace.sites]

    def of(names, kind, amount="accesses"):
        chosen = [found for found in sites if found.site.space == "global" and found.site.array in names]
        return sum(getattr(found, amount) for found in chosen if found.site.kind == kind)

    counted = {
        "vectors of Q loaded": of("Q", "load"),
        "vectors of K and V loaded": of("KV", "load"),
        "vectors of O loaded": of("O", "load"),
        "vectors of O stored": of("O", "store"),
        "copies of Q": of("Q", "load"),
        "copies of K and V": of("KV", "load"),
        "bytes of workspace": of("S", "store", "bytes") // 2,
        "bytes of scores written": of("S", "store", "bytes"),
        "bytes of scores read": of("S", "load", "bytes"),
        "bytes of shared memory per block": max(trace.shared_bytes for trace in traces),
        "bank conflicts per block": sum(trace.counters.bank_conflicts / prod(trace.grid) for trace in traces),
    }
    costs = stated(step)
    assert len(costs) >= 3
    for what, expression in costs.items():
        assert eval(expression, {"queries": 128, "keys": 128}, vars(step.module)) == counted[what], what


MASKED = [
    Problem(1, 6, 129, 64, kv_heads=2, causal=True),  # the last tile has one key
    Problem(1, 1, 129, 64, keys=257, window=2),  # each tile of queries sees one key of those before it and behind it
    Problem(1, 1, 150, 64, keys=84, causal=True, window=61),  # one key of a tile is hidden, the first or the last
]


@pytest.mark.parametrize("problem", MASKED, ids=str)
@pytest.mark.sample(3)
def test_no_tile_is_loaded_that_is_all_masked(step, problem):
    """The bytes of each array are those of a formula, which knows the tiles of which some scores are seen."""
    check_traffic(step, problem)


OTHERS = [
    Problem(2, 4, 35, 40, keys=140, kv_heads=2, causal=True, layout="BSHD"),
    Problem(1, 1, 30, 64, keys=300, causal=True, window=10),
    Problem(1, 1, 300, 64, keys=30, causal=True),
    Problem(1, 3, 40, 72, keys=90, kv_heads=1, window=33),
    Problem(1, 1, 30, 136, keys=70, causal=True),
    Problem(1, 1, 20, 256, keys=60, window=30),
]
CASES = [(step, one) for step in STEPS for one in OTHERS if one.head_dim <= max(getattr(step.module, "TILES", [256]))]


@pytest.mark.parametrize(("step", "problem"), sampled(CASES, 9), ids=lambda one: getattr(one, "slug", str(one)))
@pytest.mark.sample(3)
def test_traffic_is_that_of_the_formula_for_other_sizes(step, problem):
    check_traffic(step, problem)


def check_traffic(step, problem):
    format, moved = step.formats[0], Counter()
    for found in (found for trace in traces_of(step, problem, format) for found in trace.sites):
        if found.site.space == "global":
            moved[found.site.array.removesuffix("_map")] += found.bytes
    if step.slug == "standard":
        wanted = traffic.standard(problem, step.TILE)
    else:
        order = traffic.kv_outer if step.slug == "kv_outer" else traffic.q_outer
        wanted = order(problem, *tile_of(step, problem.head_dim), format)
    wanted.pop("sums", None)  # which all threads of a row read
    assert {name: moved[name] for name in wanted} == wanted


def tile_of(step, head_dim) -> tuple[int, int]:
    """Queries and keys of a step's tiles, of which some are smaller for wide heads."""
    if step.slug in BY_TILES:
        return step.BM, step.TILES[-(-head_dim // 64) * 64]
    if FP32 in step.formats:
        return step.BM, step.BN
    fragments, keys = step.TILES[-(-head_dim // 64) * 64]
    return 16 * fragments * step.WARPS, keys


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    assert names[:6] == [*ARRAYS, "problem"] and set(names[6:]) <= {"format", "workspace"}
    assert step.idea.endswith((".", ":")) and step.kernel.__name__ == step.slug


@st.composite
def problems(draw):
    """Small problems of all kinds."""
    kv_heads = draw(st.integers(1, 2))
    queries, keys = draw(st.integers(1, 150)), draw(st.integers(1, 150))
    return Problem(
        draw(st.integers(1, 2)),
        kv_heads * draw(st.integers(1, 2)),
        queries,
        8 * draw(st.sampled_from((1, 5, 8, 8, 9, 16, 23, 32))),
        draw(st.sampled_from((queries, keys))),
        kv_heads,
        draw(st.booleans()),
        draw(st.none() | st.integers(1, 150)),
        draw(st.none() | st.sampled_from((0.5, 0.0, -0.3))),
        draw(st.sampled_from(("BHSD", "BSHD"))),
        draw(st.sampled_from(("", "", "huge", "rising"))) if draw(st.booleans()) else "",
    )


def simulated(step, before, format):
    run = step.simulate(*before, format=format)
    return run.operands, run.errors


def launched(step, before, format):
    on_gpu = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*on_gpu, format=format)
    return tuple(X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in on_gpu), ()


@pytest.mark.long
@pytest.mark.parametrize("run", [simulated, pytest.param(launched, marks=pytest.mark.needs("gpu"))])
@pytest.mark.sample(6)
def test_a_step_is_right_on_random_problems(step, run):
    @settings(max_examples=PROBLEMS, phases=[Phase.generate], deadline=None)
    @given(problem=problems(), seed=st.integers(0, 2**16), format=st.sampled_from(step.formats))
    def check(problem, seed, format):
        assume(problem.head_dim <= max(getattr(step.module, "TILES", [256])))
        if problem.hard == "rising" and problem.scale == 0:
            problem = Problem(**{**problem.fields, "hard": ""})
        before = problem.operands(format, seed)
        after, errors = run(step, before, format)
        assert errors == ()
        assert problem.is_right(before, after, format)

    check()


@pytest.mark.parametrize("hard", ["huge", "rising"])
@pytest.mark.sample(3)
def test_hard_scores_come_out_right(step, hard):
    """Those that rise from tile to tile make a step rescale at each; huge ones would be endless without a maximum."""
    for format in step.formats:
        traces_of(step, Problem(1, 1, 20, 64, keys=150, hard=hard), format)


HEAVY = {  # a key, and a query that does not see it, where all others of the tile are seen
    "below": (Problem(1, 1, 140, 128, 300, window=159), 128, 127),
    "above": (Problem(1, 1, 70, 128, 132, causal=True), 127, 64),
}


@pytest.fixture
def patience(monkeypatch):
    """The steps in float32 take long for so many keys."""
    monkeypatch.setattr(limits, "MAX_CHUNK_WORK", 10 * limits.MAX_CHUNK_WORK)


@pytest.mark.parametrize(("problem", "key", "blind"), HEAVY.values(), ids=HEAVY)
@pytest.mark.sample(2)
def test_a_hidden_key_of_almost_all_weight_has_none(step, problem, key, blind, patience):
    format, rng = step.formats[0], np.random.default_rng(0)
    assert not problem.allowed()[blind, key] and problem.allowed()[[blind - 1, blind + 1], key].any()
    Q, K, V = (rng.standard_normal(problem.shapes[name]) / 4 for name in "QKV")
    Q, K[:, :, key], V[:, :, key] = Q + 1, 2, 5
    before = (*map(format.encode, (Q, K, V)), *problem.operands(format)[3:])
    run = step.simulate(*before, format=format)
    assert run.errors == () and problem.is_right(before, run.operands, format)
    assert (format.result.decode(run.operands[3])[0, 0, blind] < 4).all()


@pytest.mark.sample(2)
def test_keys_that_are_none_have_no_weight_beside_scores_far_below_zero(step, patience):
    format, rng, problem = step.formats[0], np.random.default_rng(0), Problem(1, 1, 70, 128, 255)
    Q, K, V = (rng.standard_normal(problem.shapes[name]) / 4 for name in "QKV")
    before = (*map(format.encode, (Q + 2, K - 2, V)), *problem.operands(format)[3:])
    run = step.simulate(*before, format=format)
    assert run.errors == () and problem.is_right(before, run.operands, format)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.sample(3)
def test_what_is_no_number_stays_where_it_is_seen(step, value):
    """In a query it spoils that row, and its log-sum-exp; in a key or a value those rows that see it."""
    format, problem = step.formats[0], Problem(1, 1, 70, 64, keys=90, causal=True)
    for place, row, spoilt in ((0, 30, slice(30, 31)), (1, 60, slice(40, 70)), (2, 60, slice(40, 70))):
        before = problem.operands(format)
        before[place][0, 0, row] = format.encode(np.full(64, value))
        with np.errstate(all="ignore"):
            after = step.simulate(*before, format=format).operands
        fine = np.isfinite(format.decode(after[3])[0, 0]).all(1)
        assert (np.isnan(after[4][0, 0]) == (~fine if place < 2 else False)).all(), (ARRAYS[place], row)
        if place < 2 or np.isnan(value):
            assert not fine[spoilt].any(), (ARRAYS[place], row)
        assert np.delete(fine, np.arange(70)[spoilt]).all() or place == 2, (ARRAYS[place], row)


def test_rows_that_lie_apart_are_found(step_by_rows):
    """Q, K, V and O as parts of arrays, none of which is like another, and with their axes turned."""
    step = step_by_rows
    format, problem = step.formats[0], Problem(2, 2, 40, 64, causal=True, layout="BSHD")
    before = problem.operands(format)
    *parts, O = (np.stack([X] * (2 + n), axis=2)[:, :, n] for n, X in enumerate(before[:4]))  # B S 2 H D, B S 3 H D
    assert not parts[0].flags.c_contiguous and parts[1].strides != parts[2].strides
    lse = before[4].copy()
    for launch in step.launches(*parts, O, lse, problem, format=format, workspace=_host_workspace()):
        _run(launch)
    assert problem.is_right(before, (*before[:3], O, lse, problem), format)
    turned = Problem(**{**problem.fields, "layout": "BHSD"})
    heads = [as_bhsd(X, "BSHD") for X in (*before[:3], O)]
    O[:] = before[3]
    for launch in step.launches(*heads, lse, turned, format=format, workspace=_host_workspace()):
        _run(launch)
    assert problem.is_right(before, (*before[:3], O, lse, problem), format)


def _host_workspace():
    from labkit.arrays.workspace import Workspace
    from labkit.simulator import host

    return Workspace(memory=host)


def _run(launch):
    from labkit.simulator.in_place import simulate_in_place

    shared = {"shared_bytes": launch.shared_bytes}
    assert simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, **shared).errors == ()


@pytest.mark.parametrize(("kib", "head_dim"), [(64, 128), (64, 256), (99, 256)])
def test_rows_take_smaller_tiles_where_a_block_has_less_shared_memory(kib, head_dim, monkeypatch):
    """A GPU of compute capability 7.5 gives a block 64 KB, one of 8.6 or 8.9 99 KB."""
    older = SimpleNamespace(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=kib * 1024)
    monkeypatch.setattr(cuda, "get_current_device", lambda: older)
    (trace,) = traces_of(STEPS.step("q_outer"), Problem(1, 2, 50, head_dim, keys=40, kv_heads=1, window=20))
    assert trace.shared_bytes <= kib * 1024


def test_a_step_refuses_arrays_that_do_not_fit(step):
    *arrays, problem = Problem(1, 2, 16, 64).operands(step.formats[0])
    for place, X in enumerate(arrays):
        for wrong in (X[:, :1], X.astype(np.float64)):
            with pytest.raises((TypeError, ValueError), match=f"{ARRAYS[place]} (is 1 x 1 x 16.*, but|holds float64)"):
                step.simulate(*arrays[:place], wrong, *arrays[place + 1 :], problem)


def test_arrays_that_a_step_cannot_take_are_refused_in_a_sentence():
    tensor, rows = STEPS.step("mma"), STEPS.step("q_outer")
    with pytest.raises(ValueError, match="head_dim is 12, but copies take 16 bytes at a time: make it a multiple of 8"):
        tensor.simulate(*Problem(1, 1, 5, 12).operands(BF16))
    with pytest.raises(TypeError, match="Q holds float32, but this step takes uint16: convert it"):
        tensor.simulate(*Problem(1, 1, 5, 16).operands(FP32))
    *arrays, problem = Problem(1, 2, 5, 16).operands()
    wide = np.zeros((1, 2, 5, 24), np.float32)[..., :16]  # a row has 64 bytes
    with pytest.raises(ValueError, match="rows of K are 0, 480, 96 bytes apart, and steps find them at multiples of a"):
        rows.launches(arrays[0], wide, *arrays[2:], problem)
    with pytest.raises(ValueError, match="elements of a row of V lie apart in memory"):
        rows.launches(*arrays[:2], np.zeros((1, 2, 5, 32), np.float32)[..., ::2], *arrays[3:], problem)


SPILLS = {
    ("kv_outer", 256),  # of whose thread 8 rows of 16 sums each want half of all registers
    ("pipelined", 128),  # 20 bytes; its tiles of 64 keys are faster on an H100 than those of 32, which spill none
}
COMPILED = [
    (step, head_dim, kib)
    for step, head_dim in product(STEPS, (64, 128, 192, 256))
    for kib in ((64, 99, 227) if step.slug == "q_outer" else (227,))
    if head_dim <= max(getattr(step.module, "TILES", [256])) and (step.slug, head_dim) not in SPILLS
]


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "head_dim", "kib"), sampled(COMPILED, 3), ids=lambda value: getattr(value, "slug", None)
)
@pytest.mark.sample(1)
def test_a_step_spills_nothing_for_any_head_dim(step, head_dim, kib, tmp_path, monkeypatch):
    """On all GPUs that have its instructions, from compute capability 7.5 on; in float32 alone before 8.0."""
    from argument_types import argument_type
    from assembler import assembled, ptx_for_the_oldest

    gpu = SimpleNamespace(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=kib * 1024, MULTIPROCESSOR_COUNT=132)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    format = step.formats[0]
    operands = Problem(1, 1, 64, head_dim).operands(format)
    for launch in step.launches(*operands, format=format, workspace=_host_workspace()):
        types = [argument_type(argument) for argument in launch.arguments]
        code, targets = ptx_for_the_oldest(launch.kernel, types, [(7, 5), (8, 0), (8, 9), (9, 0, "a")])
        oldest = (7, 5) if format is FP32 else (9, 0, "a") if step.slug in BY_TILES else (8, 0)
        assert targets[0] == oldest and ".f64" not in code
        for target in targets:
            report, _ = assembled(code, target, tmp_path)
            assert "0 bytes spill stores, 0 bytes spill loads" in report

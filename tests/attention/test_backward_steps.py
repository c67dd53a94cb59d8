"""Every step of attention backward: what it costs and touches, random problems, values that are no numbers."""

import dataclasses
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
from labkit.attention.problem import AttentionForward, as_bhsd
from labkit.ladder import TooLarge

Problem = attention.AttentionBackward
STEPS = attention.ladder("backward")
LSE = Problem.ARRAYS.index("lse")
GRADIENTS = [Problem.ARRAYS.index(name) for name in ("dQ", "dK", "dV")]


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


BY_TILES = {step.slug for step in STEPS if hasattr(step.module, "WARPGROUPS")}  # test_backward_wgmma.py has more


@pytest.fixture(params=[step for step in STEPS if step.slug not in BY_TILES], ids=lambda step: step.slug)
def step_by_rows(request):
    return request.param


def ran(step, problem, format=None, seed=0):
    """The run of a step, whose gradients must be right."""
    format = format or step.formats[0]
    before = problem.operands(format, seed)
    found = step.simulate(*before, format=format)
    assert found.errors == () and problem.is_right(before, found.operands, format), str(problem)
    return found


EXAMPLES = [(step, format, problem) for step in STEPS for format in step.formats for problem in step.examples]


@pytest.mark.parametrize(("step", "format", "problem"), sampled(EXAMPLES, 5), ids=str)
@pytest.mark.sample(1)
def test_examples_are_right(step, format, problem):
    found = ran(step, problem, format)
    assert not [finding for trace in found.traces for finding in trace.findings if finding.severity == "error"]


def loads_of(trace):
    """How often elements, or vectors, of each array in global memory are loaded."""
    found = Counter()
    for one in trace.sites:
        if (one.site.space, one.site.kind) == ("global", "load"):
            found[one.site.array] += one.accesses
    return found


def test_a_step_costs_what_its_docstring_says(step_by_rows):
    step, problem = step_by_rows, Problem(1, 1, 128, 64)
    traces, each = ran(step, problem).traces, "vectors" if hasattr(step.module, "MI") else "numbers"
    purpose = {
        "deltas": "of O and dO loaded for delta",
        step.slug: "loaded for dK and dV",
        "of_queries": "loaded for dQ",
    }
    counted = {
        f"{each} {purpose[trace.kernel]}": sum(loads_of(trace)[name] for name in ("Q", "K", "V", "O", "dO"))
        for trace in traces
    } | {"bytes of shared memory per block": max(trace.shared_bytes for trace in traces)}
    costs = {what: cost for cost, what in re.findall(r"^    (\S.*?)  +(\S.*)$", step.module.__doc__, re.MULTILINE)}
    assert set(costs) == set(counted)
    for what, expression in costs.items():
        assert eval(expression, {"queries": 128, "keys": 128}, vars(step.module)) == counted[what], what
    assert sum(trace.counters.bank_conflicts for trace in traces) == 0


def test_no_tile_is_touched_that_is_all_masked(step_by_rows):
    step = step_by_rows
    is_in_vectors = hasattr(step.module, "MI")
    own, passing = (step.BM, step.BN) if is_in_vectors else (step.TILE, step.TILE)
    length = own * (2 if is_in_vectors else 4)
    traces = {trace.kernel: trace for trace in ran(step, Problem(1, 1, length, 64, causal=True)).traces}
    of_keys, of_queries = traces[step.slug], traces["of_queries"]
    blocks = range(0, length, own)
    seen = {"keys": sum((length - left) // passing for left in blocks), "queries": sum(top + own for top in blocks)}
    seen["queries"] //= passing
    for trace, outside, tiles in ((of_keys, "KV", seen["keys"]), (of_queries, ("Q", "dO"), seen["queries"])):
        loads, row = loads_of(trace), 64 // (8 if is_in_vectors else 1)
        for name in ("Q", "K", "V", "dO"):
            assert loads[name] == row * (length if name in outside else tiles * passing)


@pytest.mark.sample(1)
def test_a_window_hides_either_side_of_a_tile(step):
    """Some tiles have keys before it, others keys behind it, and none has both."""
    length, window = (320, 150) if step.slug in BY_TILES else (160, 75)
    ran(step, Problem(1, 1, length, 64, window=window))


@pytest.mark.parametrize("window", [66, 130, 159])
@pytest.mark.sample(1)
def test_a_window_may_end_one_row_behind_a_tile_or_hide_one_element_of_it(step, window):
    """Tiles have 32, 64, 96 or 128 rows. Heads share keys, some of which are seen from a later tile on."""
    ran(step, Problem(1, 2, 264, 64, 264, 1, window=window), seed=3)


def test_keys_behind_the_last_weigh_nothing_beside_scores_far_below_zero(step):
    """A tile has zeros there, whose scores would be far above all others."""
    problem, format = Problem(1, 1, 40, 64), step.formats[0]
    Q, K, V, _, _, dO, *gradients, _ = problem.operands(format)
    Q, K = (format.encode(side * (4 + 0.1 * format.decode(X))) for side, X in ((1, Q), (-1, K)))
    forward = AttentionForward(**problem.fields)
    O, lse = (one.value for one in forward.expected((Q, K, V, None, None, forward), format).values())
    assert lse.max() < -100
    before = Q, K, V, format.result.encode(O), lse.astype(np.float32), dO, *gradients, problem
    assert problem.is_right(before, step.simulate(*before, format=format).operands, format)


def widest(step) -> int:
    """The widest heads that a step takes."""
    return max(getattr(step.module, "TILES", [256]))


@settings(max_examples=60 if WHOLE else 4, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_random_problems_are_right(data):
    step = data.draw(st.sampled_from(list(STEPS)))
    kv_heads, group = (data.draw(st.integers(1, 2)) for _ in range(2))
    problem = Problem(
        batch=data.draw(st.integers(1, 2)),
        heads=kv_heads * group,
        kv_heads=kv_heads,
        queries=data.draw(st.integers(1, 90)),
        keys=data.draw(st.integers(1, 90)),
        head_dim=data.draw(st.integers(1, 20)) * 8,
        causal=data.draw(st.booleans()),
        window=data.draw(st.none() | st.integers(1, 60)),
        layout=data.draw(st.sampled_from(["BHSD", "BSHD"])),
        hard=data.draw(st.sampled_from(["", "huge", "rising"])),
    )
    assume(problem.head_dim <= widest(step))
    ran(step, problem, data.draw(st.sampled_from(step.formats)), seed=data.draw(st.integers(0, 9)))


def test_queries_without_keys_get_and_give_nothing(step):
    problem = Problem(1, 2, 50, 64, 20, 1, True)
    dQ = step.formats[0].decode(ran(step, problem).operands[GRADIENTS[0]])
    assert not dQ[:, :, :30].any() and dQ[:, :, 31:].any(-1).all()  # one key alone has the weight 1, and no slope


def test_a_gradient_that_is_no_number_spoils_its_query_and_the_keys_that_this_one_sees(step):
    problem, format = Problem(1, 2, 70, 64, causal=True), step.formats[0]
    before = problem.operands(format)
    dO = before[5].copy()
    dO[0, 0, 40, 3] = format.encode(np.nan)
    with np.errstate(invalid="ignore"):
        after = step.simulate(*before[:5], dO, *before[6:], format=format).operands
    dQ, dK, dV = (format.decode(after[place]) for place in GRADIENTS)
    assert np.isnan(dQ[0, 0, 40]).all() and np.isfinite(np.delete(dQ[0, 0], 40, 0)).all()
    assert np.isnan(dK[0, 0, :41]).all() and np.isnan(dV[0, 0, :41, 3]).all()
    assert np.isfinite(np.delete(dV[0, 0], 3, 1)).all()
    assert all(np.isfinite(X[0, 1]).all() for X in (dQ, dK, dV))


def test_rows_that_lie_apart_are_found(step):
    """All arrays as parts of others, none of which is like another, and with their axes turned."""
    problem = Problem(2, 2, 40, 64, causal=True, layout="BSHD")
    before = problem.operands(step.formats[0])
    wholes = [
        cuda.to_device(np.stack([X] * (2 + n), axis=2)) for n, X in enumerate(before[:-1])
    ]  # B S 2 H D, and so on
    parts = [X[:, :, n] for n, X in enumerate(wholes)]
    parts[LSE] = cuda.to_device(before[LSE])
    asked = dataclasses.replace(problem, layout="BHSD")
    turned = [X if n == LSE else as_bhsd(X, "BSHD") for n, X in enumerate(parts)]
    step.launch(*turned, asked, format=step.formats[0])
    after = [wholes[n].copy_to_host()[:, :, n] for n in GRADIENTS]
    assert problem.is_right(before, (*before[:6], *after, problem), step.formats[0])


IN_ANY_ORDER = {"bulk_reduction"}  # blocks add to dQ


@pytest.mark.sample(1)
def test_the_same_call_gives_the_same_bits(step):
    problem = step.examples[0]
    first, again = (ran(step, problem).operands for _ in range(2))
    same = GRADIENTS[1:] if step.slug in IN_ANY_ORDER else GRADIENTS
    assert all(np.array_equal(first[place], again[place]) for place in same)


def test_arrays_that_do_not_fit_are_refused_in_a_sentence(step):
    problem = Problem(1, 2, 20, 64, 30, 1)
    operands = list(problem.operands(step.formats[0]))
    for name, X, why in (
        ("dK", operands[6], "dK is 1 x 2 x 20 x 64, but BHSD of this attention is 1 x 1 x 30 x 64: give it that shape"),
        ("lse", operands[4].astype(np.float64), "lse holds float64, but this step takes float32: convert it"),
    ):
        wrong = list(operands)
        wrong[Problem.ARRAYS.index(name)] = X
        with pytest.raises((TypeError, ValueError), match=why):
            step.simulate(*wrong)


def test_tiles_that_fit_nowhere_are_refused(monkeypatch):
    step = STEPS.step("recomputed")
    gpu = SimpleNamespace(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=64 * 1024, MULTIPROCESSOR_COUNT=72)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    assert step.choose_tile(128, gpu.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)[0] == 16
    with pytest.raises(TooLarge, match=r"tiles of 256 numbers take 71936 bytes, and a block has 65536: choose another"):
        step.simulate(*Problem(1, 1, 20, 256).operands())


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    assert names[:10] == [*Problem.ARRAYS, "problem"] and set(names[10:]) <= {"format", "workspace"}
    assert step.idea.endswith((".", ":")) and step.kernel.__name__ == step.slug
    assert all(prod(launch.grid if isinstance(launch.grid, tuple) else (launch.grid,)) for launch in _launches(step))


COMPILED = [(step, head_dim) for step, head_dim in product(STEPS, (64, 128, 192, 256)) if head_dim <= widest(step)]


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.long
@pytest.mark.parametrize(("step", "head_dim"), sampled(COMPILED, 1), ids=lambda value: getattr(value, "slug", None))
def test_a_step_spills_nothing_for_any_head_dim(step, head_dim, tmp_path, monkeypatch):
    """On all GPUs that have its instructions, from compute capability 7.5 on; in float32 alone before 8.0."""
    from argument_types import argument_type
    from assembler import assembled, ptx_for_the_oldest

    gpu = SimpleNamespace(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=227 * 1024, MULTIPROCESSOR_COUNT=132)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    for launch in _launches(step, Problem(1, 1, 64, head_dim)):
        types = [argument_type(argument) for argument in launch.arguments]
        code, targets = ptx_for_the_oldest(launch.kernel, types, [(7, 5), (8, 0), (8, 9), (9, 0, "a")])
        assert ".f64" not in code
        for target in targets:
            report, _ = assembled(code, target, tmp_path)
            assert "0 bytes spill stores, 0 bytes spill loads" in report and "serialized" not in report


def _launches(step, problem=None):
    from labkit.arrays.workspace import Workspace
    from labkit.simulator import host

    operands = (problem or step.examples[0]).operands(step.formats[0])
    return step.launches(*operands, workspace=Workspace(memory=host))

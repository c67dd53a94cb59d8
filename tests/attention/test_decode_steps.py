"""Every step of decoding: what it costs and reads, random problems, pages, divisions of the keys, and missing waits."""

import inspect
import re
from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cells import run_cell
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE, sampled

from labkit import attention, cuda
from labkit.arrays.workspace import Workspace
from labkit.attention.problem import as_bhsd
from labkit.formats import BF16, FP16, FP32
from labkit.simulator import host
from labkit.simulator.in_place import simulate_in_place

Problem = attention.AttentionDecode
STEPS = attention.ladder("decode")
O, LSE = Problem.ARRAYS.index("O"), Problem.ARRAYS.index("lse")


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def ran(step, problem, format=None, seed=0):
    """The run of a step, which must be right and without findings that are errors."""
    format = format or step.formats[0]
    before = problem.operands(format, seed)
    found = step.simulate(*before, format=format)
    assert found.errors == () and problem.is_right(before, found.operands, format), str(problem)
    return found


EXAMPLES = [(step, format, problem) for step in STEPS for format in step.formats for problem in step.examples]


@pytest.mark.parametrize(("step", "format", "problem"), sampled(EXAMPLES, 5), ids=str)
@pytest.mark.sample(1)
def test_examples_are_right(step, format, problem):
    ran(step, problem, format)


@pytest.mark.sample(1)
def test_a_step_costs_what_its_docstring_says(step):
    batch, heads, kv_heads, keys = 2, 4, 2, 512
    traces = ran(step, Problem(batch, heads, 1, 128, keys, kv_heads)).traces

    def of(names, kind, amount):
        chosen = [
            s for s in traces[0].sites if (s.site.space, s.site.kind) == ("global", kind) and s.site.array in names
        ]
        return sum(getattr(s, amount) for s in chosen)

    counted = {
        "copies of K and V": of("KV", "load", "accesses"),
        "bytes of shared memory per block": step.shared_bytes,
        "blocks": prod(traces[0].grid),
        "bytes of partial results": of(("results",), "store", "bytes"),
        "bank conflicts per block": sum(trace.counters.bank_conflicts for trace in traces),
    }
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:, (?:of|on) .*)?$", step.module.__doc__, re.MULTILINE)
    assert len(lines) >= 4
    parts = keys // (8 * 16)  # a tile for each of a block's eight warps
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "keys": keys, "parts": parts}
    for expression, what in lines:
        assert eval(expression, sizes, vars(step.module)) == counted[what], what
    assert 0 <= traces[0].shared_bytes - step.shared_bytes <= 1024  # for a word that all warps of a block read


@pytest.mark.sample(1)
def test_no_key_is_read_that_no_sequence_has_and_each_other_once(step):
    problem = Problem(5, 8, 1, 64, 90, 2, page=16, ragged=True)
    (trace, *_) = ran(step, problem).traces
    for name in "KV":
        found = sum(s.bytes for s in trace.sites if s.site.array == name and s.site.kind == "load")
        assert found == problem.lengths.sum() * problem.kv_heads * 64 * 2


@settings(max_examples=60 if WHOLE else 6, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_random_problems_are_right(data):
    step = data.draw(st.sampled_from(list(STEPS)))
    kv_heads = data.draw(st.integers(1, 3))
    problem = Problem(
        batch=data.draw(st.integers(1, 5)),
        heads=kv_heads * data.draw(st.integers(1, 8)),
        queries=data.draw(st.integers(1, 16)),
        head_dim=data.draw(st.integers(1, 16)) * 8,
        keys=data.draw(st.integers(1, 200)),
        kv_heads=kv_heads,
        causal=data.draw(st.booleans()),
        scale=data.draw(st.none() | st.sampled_from((0.5, -0.3))),
        layout=data.draw(st.sampled_from(["BHSD", "BSHD"])),
        hard=data.draw(st.sampled_from(["", "", "huge", "rising"])),
        page=data.draw(st.none() | st.sampled_from((16, 48, 64))),
        ragged=data.draw(st.booleans()),
    )
    ran(step, problem, data.draw(st.sampled_from(step.formats)), seed=data.draw(st.integers(0, 9)))


def test_no_weight_is_more_than_float16_holds(step, monkeypatch):
    """One block reads all keys, so that a warp has several tiles, of scores of several hundred."""
    monkeypatch.setattr(cuda, "get_current_device", lambda: SimpleNamespace(MULTIPROCESSOR_COUNT=1))
    ran(step, Problem(1, 2, 10, 64, 400, 1, True, hard="huge"), FP16)


def test_a_sequence_without_keys_gets_zeros(step):
    problem = Problem(2, 4, 2, 64, 50, 2, ragged=True)
    after = ran(step, problem).operands
    assert problem.lengths.tolist() == [1, 0]
    assert not after[O][1].any() and (after[LSE][1] == -np.inf).all() and after[O][0].any()


def test_queries_before_the_first_key_see_nothing(step):
    """Of four queries of a sequence with one key the last one sees it."""
    problem = Problem(1, 2, 4, 64, 30, 1, True, ragged=True)
    after = ran(step, problem).operands
    assert not after[O][0, :, :3].any() and (after[LSE][0, :, :3] == -np.inf).all()
    assert after[O][0, :, 3].any() and np.isfinite(after[LSE][0, :, 3]).all()


@pytest.mark.parametrize("page", [None, 32])
def test_rows_that_lie_apart_are_found(step, page):
    """Q, K, V and O as parts of other arrays, none of which is like another, and with their axes turned."""
    problem = Problem(3, 4, 3, 64, 70, 2, True, layout="BSHD", page=page, ragged=True)
    before = problem.operands(BF16)
    wholes = {n: cuda.to_device(np.stack([before[n]] * (2 + n), axis=2)) for n in (0, 1, 2, O)}  # B S 2 H D, and so on
    asked = replace(problem, layout="BHSD")
    turned = [as_bhsd(wholes[n][:, :, n], "BSHD") if n in wholes else cuda.to_device(before[n]) for n in range(LSE + 1)]
    step.launch(*turned, asked, format=BF16)
    after = wholes[O].copy_to_host()[:, :, O], turned[LSE].copy_to_host()
    assert problem.is_right(before, (*before[:O], *after, problem), BF16)


def test_pages_change_no_bit(step):
    plain = ran(step, Problem(3, 4, 1, 64, 150, 2, ragged=True)).operands
    paged = ran(step, Problem(3, 4, 1, 64, 150, 2, page=16, ragged=True)).operands
    assert np.array_equal(plain[O], paged[O]) and np.array_equal(plain[LSE], paged[LSE])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("slug", ["split", "stream_k"])
@pytest.mark.sample(3)
def test_keys_may_be_divided_among_any_number_of_blocks(slug, count, monkeypatch):
    """Blocks begin and end within heads, at their ends, and where sequences have no keys."""
    gpu = SimpleNamespace(MULTIPROCESSOR_COUNT=count)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    fewer_tiles_than_blocks = Problem(2, 4, 1, 64, 200, 2, ragged=True)
    for problem in (Problem(4, 4, 1, 64, 200, 2, ragged=True), Problem(2, 2, 2, 64, 256, 2), fewer_tiles_than_blocks):
        ran(STEPS.step(slug), problem)


def test_blocks_of_stream_k_read_as_much_as_each_other(monkeypatch):
    gpu = SimpleNamespace(MULTIPROCESSOR_COUNT=6)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    problem = Problem(5, 4, 1, 64, 500, 2, ragged=True)
    operands = problem.operands(BF16)
    (launch,) = STEPS.step("stream_k").launches(*operands, format=BF16, workspace=Workspace(memory=host))
    shared, blocks = {"shared_bytes": launch.shared_bytes}, [(block, 0, 0) for block in range(launch.grid)]
    trace = simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, record=blocks, **shared)
    of_keys = [n for n, s in enumerate(trace.sites) if (s.site.array, s.site.kind) == ("K_tiles", "store")]
    copies = np.bincount(trace.samples.block[np.isin(trace.samples.site, of_keys)])
    tiles = copies / (16 * 64 * 2 / 16)
    assert launch.grid == 6 and tiles.max() - tiles.min() <= 1 + 2  # two heads have a tile of no keys


def test_the_same_workspace_serves_the_next_call(step):
    """Counters are left at 0, and partial results are not mixed up with older ones."""
    workspace, problem = Workspace(memory=host), Problem(3, 4, 1, 64, 400, 2, ragged=True)
    results = []
    for seed in (0, 1, 0):
        before = problem.operands(BF16, seed)
        after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in before)
        needed = {"workspace": workspace} if step.slug != "one_block" else {}
        for launch in step.launches(*after, format=BF16, **needed):
            shared = {"shared_bytes": launch.shared_bytes}
            trace = simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, **shared)
            assert trace.errors == ()
        assert problem.is_right(before, after, BF16)
        results.append(after)
    assert np.array_equal(results[0][O], results[2][O]) and not np.array_equal(results[0][O], results[1][O])


def test_all_steps_have_the_same_form(step):
    names = list(inspect.signature(step.module.launches).parameters)
    assert names[:8] == [*Problem.ARRAYS, "problem"] and set(names[8:]) <= {"format", "workspace"}
    assert step.idea.endswith((".", ":")) and step.kernel.__name__ == step.slug


def test_what_a_step_does_not_take_is_refused_in_a_sentence(step):
    for problem, why in (
        (Problem(1, 2, 1, 64, 50, 1, window=9), "this step takes window = None, and the attention has window = 9"),
        (Problem(1, 2, 1, 64, 50, 1, page=24), "a page has 24 positions, and steps copy 16 at a time"),
        (Problem(1, 2, 1, 136, 50, 1), "head_dim is 136, but steps take up to 128: use more heads"),
        (Problem(1, 2, 1, 12, 50, 1), "head_dim is 12, but copies take 16 bytes at a time: make it a multiple of 8"),
    ):
        with pytest.raises(ValueError, match=why):
            step.simulate(*problem.operands(BF16), format=BF16)
    with pytest.raises(TypeError, match="Q holds float32, but this step takes uint16: convert it"):
        step.simulate(*Problem(1, 2, 1, 64, 50, 1).operands(FP32), format=BF16)


SMALL = Problem(1, 2, 1, 64, 700, 2)
NEEDED = re.compile(r" +(cuda\.sync|cuda\.threadfence|ptx\.cp_async_(wait|commit))")
UNTOLD = re.compile(r" +(cuda\.threadfence|if is_last)")  # what follows orders threads of other blocks


def without_a_wait(step):
    """The step's source with one wait, barrier or fence left out, and which."""
    lines = Path(step.module.__file__).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if NEEDED.match(line) and not UNTOLD.match(lines[number - 1]):
            never = re.sub(r"^( +)(.*)", r"\1if lane < 0: \2", line)
            text = [*lines[:number], never, *lines[number + 1 :]]
            yield pytest.param("\n".join(text), id=f"{step.slug} {number + 1} {line.split('#')[0].strip()}")


def errors_of(text):
    operands = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in SMALL.operands(BF16))
    given = {"workspace": Workspace(memory=host)} if "workspace" in text else {}
    found = []
    for launch in run_cell(text)["launches"](*operands, format=BF16, **given):
        shared = {"shared_bytes": launch.shared_bytes}
        trace = simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, **shared)
        found += trace.errors
    return found


def test_a_step_as_it_stands_has_no_error(step):
    assert errors_of(Path(step.module.__file__).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", sampled((case for step in STEPS for case in without_a_wait(step)), 8))
def test_a_step_without_one_of_its_waits_is_told(text, monkeypatch):
    monkeypatch.setattr(cuda, "get_current_device", lambda: SimpleNamespace(MULTIPROCESSOR_COUNT=4))
    assert errors_of(text)


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.long
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.sample(1)
def test_a_step_spills_nothing(step, head_dim, tmp_path):
    from argument_types import argument_type
    from assembler import assembled, ptx_for_the_oldest

    operands = Problem(1, 4, 1, head_dim, 64, 1).operands(BF16)
    needed = {"workspace": Workspace(memory=host)} if step.slug != "one_block" else {}
    for launch in step.launches(*operands, format=BF16, **needed):
        types = [argument_type(argument) for argument in launch.arguments]
        code, targets = ptx_for_the_oldest(launch.kernel, types, [(8, 0), (9, 0, "a")])
        assert ".f64" not in code
        for target in targets:
            report, _ = assembled(code, target, tmp_path)
            assert "0 bytes spill stores, 0 bytes spill loads" in report

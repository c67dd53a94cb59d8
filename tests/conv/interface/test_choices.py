"""Choice of the algorithm: predictions agree with records; measured choices are stored and shown."""

import json
import warnings
from math import exp, log
from types import SimpleNamespace

import numpy as np
import pytest

from labkit import conv, cuda, results
from labkit.calls import call as calls
from labkit.calls import tuner, tuning
from labkit.conv.interface import choices, convolution, costs, finder
from labkit.conv.interface.algorithms import algorithms, find_algorithm
from labkit.conv.interface.choices import Ranking, Row, choose
from labkit.conv.interface.costs import Gemms
from labkit.conv.layers import TABLE_2
from labkit.formats import BF16, FP32
from labkit.machine import device
from labkit.simulator import limits

LAYER = conv.Forward(2, 4, 9, 8, 6, 3, 3)
KINDS = {"y": conv.Forward, "x": conv.BackwardData, "w": conv.BackwardFilter}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of this test's own."""
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    forget()
    yield tmp_path
    forget()


def forget():
    """Forget cached choices, as in a new process."""
    tuning._stored_choices.cache_clear()
    calls.forget()


def recorded():
    """The recorded times in ms of algorithms, by problem."""
    times = {}
    known = {(one.step.ladder.record, one.step.slug): one for result in KINDS for one in algorithms(result)}
    for machine, operation in results.recorded():
        for row in results.load(operation, machine).rows if operation.startswith("conv_") else ():
            algorithm = known.get((operation, row["step"]))
            if algorithm is not None and row["dtype"] == "float32":
                problem = KINDS[algorithm.step.problem.result](**{name: row[name] for name in LAYER.fields})
                times.setdefault((machine, problem), {})[algorithm] = row["time_ms"]
    return times


def test_the_heuristic_names_winners_of_the_records_or_loses_little():
    """The mean loss is that of the geometric mean over all problems of which several algorithms are recorded."""
    losses = []
    for (_, problem), times in recorded().items():
        if len(times) > 1:
            best = next(one for one in conv.heuristic(problem).candidates if one in times)
            losses.append(times[best] / min(times.values()))
    assert len(losses) > 30
    assert sum(loss == 1 for loss in losses) >= 0.8 * len(losses)
    assert exp(sum(map(log, losses)) / len(losses)) < 1.02 and max(losses) < 1.2


def test_what_is_multiplied_is_what_the_algorithm_leaves():
    layer = conv.Forward(64, 256, 56, 56, 256, 3, 3, 1, 1, 1, 1, 1, 1)

    def products(name):
        algorithm = find_algorithm(name, "y")
        return costs.count_gemms(algorithm.step, layer, algorithm.dry_run(layer, FP32).launches)

    whole = products("implicit_gemm/gathered")
    assert 2 * np.prod(whole[:4]) == layer.flops
    savings = {"f2x2": 2.25, "f4x4": 4}
    for name, saving in savings.items():
        assert np.prod(whole[:4]) / np.prod(products(f"winograd/{name}")[:4]) == saving
    bins = products("fft/tiled")
    assert bins.count in (16 * 8 + 2, 32 * 16 + 2, 64 * 32 + 2) and (bins.rows, bins.depth, bins.factors) == (
        256,
        256,
        4,
    )
    assert products("fft/few_taps").factors == products("fft/three_products").factors == 3


def test_products_that_leave_sms_idle_count_as_more():
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    one = Gemms(sms, 128, 256, 64)
    assert one.multiply_adds == sms * 128 * 256 * 64
    assert Gemms(1, 128, 256, 64).multiply_adds == one.multiply_adds
    assert Gemms(sms + 1, 128, 256, 64).multiply_adds == pytest.approx(2 * one.multiply_adds)
    assert Gemms(1, 128, 256, 64, is_split=True).multiply_adds == one.multiply_adds / sms


def test_a_step_that_was_never_recorded_is_predicted_too(monkeypatch):
    costs._recorded_rate.cache_clear()
    monkeypatch.setattr(costs.results, "nearest", lambda *_: {})
    try:
        ranked = [one.step.slug for one in conv.heuristic(LAYER).candidates]
        assert len(ranked) > 5 and ranked.index("split") < ranked.index("gathered")  # the later step first
    finally:
        costs._recorded_rate.cache_clear()


def test_what_does_not_fit_into_the_gpu_is_not_taken(monkeypatch):
    whole = {str(row.algorithm): row.workspace_bytes for row in conv.heuristic(LAYER)}
    monkeypatch.setattr(choices, "gpu_memory_bytes", lambda: whole["winograd/f4x4"] - 1)
    reasons = {str(row.algorithm): row.reason for row in conv.heuristic(LAYER)}
    assert "bytes of workspace, and this GPU has" in reasons["winograd/f4x4"] and not reasons["implicit_gemm/gathered"]


# --- find ----------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch):
    """Pretend a GPU on which winograd/f2x2 and then direct/registers are fastest."""
    fast = {"winograd/f2x2": 0.5, "direct/registers": 0.75}
    timed = []

    def times(launches):
        timed.append({str(algorithm): sets for algorithm, sets in launches.items()})
        return {algorithm: fast.get(str(algorithm), 1.0 + n) for n, algorithm in enumerate(launches)}

    there = SimpleNamespace(current=lambda: SimpleNamespace(kind="gpu"))
    monkeypatch.setattr(finder, "device", there)
    monkeypatch.setattr(tuner, "device", there)
    monkeypatch.setattr(choices, "is_quick", lambda step: False)
    monkeypatch.setattr(tuning.timing, "gpu_times_ms", times)
    monkeypatch.setattr(finder, "MAX_SETS", 2)
    monkeypatch.setattr(tuner, "_launch", lambda plan: lambda stream: None)
    return timed


def test_on_a_gpu_the_prediction_is_taken_where_nothing_was_found(gpu):
    for kind in KINDS.values():
        problem = kind(**LAYER.fields)
        assert choose(problem, FP32) == conv.heuristic(problem).best


@pytest.mark.parametrize(("result", "N"), [("y", 1), ("y", 3), ("x", 1), ("w", 1)])
def test_in_the_simulator_what_is_chosen_is_simulated_soon(result, N, monkeypatch):
    """With a fifth of the work that it allows: what is predicted to be the fastest on a GPU takes more than that."""
    problem = KINDS[result](N, 64, 9, 9, 24, 3, 3, 1, 1, 1, 1, 1, 1)
    monkeypatch.setattr(limits, "MAX_CHUNK_WORK", limits.MAX_CHUNK_WORK // 5)
    x, w, y, _ = problem.operands()
    given = {name: X for name, X in zip("xwy", (x, w, y)) if name != result}
    size = {"x": {"H": 9, "W": 9}, "w": {"R": 3, "S": 3}, "y": {}}[result]
    function = {"y": conv.forward, "x": conv.backward_data, "w": conv.backward_filter}[result]
    found = function(*given.values(), padding=1, **size)
    assert np.abs(found - problem.oracle(*given.values())).max() < 1e-3


def test_each_kind_of_problem_has_an_algorithm_that_is_quickly_simulated():
    for result in KINDS:
        assert any(getattr(one.step.module, "QUICK_TO_SIMULATE", False) for one in algorithms(result))


def test_on_an_h100_no_recorded_problem_has_an_algorithm_that_is_faster_than_the_chosen_one(gpu):
    times, count = {}, 0
    for (machine, problem), times_ms in recorded().items():
        if machine == "nvidia-h100-80gb-hbm3":
            times.setdefault(problem, {}).update(times_ms)
    for problem, times_ms in times.items():
        algorithm = choose(problem, FP32)
        if algorithm in times_ms:  # else it was never timed there, and is predicted to be faster
            candidates = conv.heuristic(problem).candidates
            assert times_ms[algorithm] <= 1.02 * min(times_ms[one] for one in candidates if one in times_ms)
            count += 1
    assert count > 30


def test_recorded_times_are_of_all_the_workspace_that_an_algorithm_wants(gpu, monkeypatch):
    slow = conv.heuristic(LAYER).candidates[-1]
    monkeypatch.setattr(choices, "recorded_ms", lambda step, *_: 1e-9 if step == slow.step else None)
    assert choose(LAYER, FP32) == slow != choose(LAYER, FP32, 10**9)


def test_find_times_all_that_apply_and_keeps_the_fastest_in_later_processes(gpu, capsys):
    assert choose(LAYER, FP32) == conv.heuristic(LAYER).best != find_algorithm("winograd/f2x2", "y")
    found = conv.find(LAYER)
    assert {*gpu[0]} == {str(one) for one in conv.heuristic(LAYER).candidates}
    assert all(len(launches) == 2 for launches in gpu[0].values())  # sets of operands
    assert found.is_measured and [str(row.algorithm) for row in found][:2] == ["winograd/f2x2", "direct/registers"]
    assert found[0].time_ms == 0.5 and found[0].workspace_bytes == found[0].algorithm.workspace_bytes(LAYER, FP32)
    assert "forward 2x4x9x8 6x3x3, float32" in (shown := capsys.readouterr().err) and ": 100%" in shown
    forget()
    assert choose(LAYER, FP32) == found.best


def test_what_is_found_holds_for_its_problem_format_and_limit_alone(gpu):
    predicted = choose(LAYER, FP32, 10**9)
    conv.find(LAYER)
    assert choose(LAYER, FP32, 10**9) == predicted == choose(conv.Forward(3, 4, 9, 8, 6, 3, 3), FP32)
    within = conv.find(LAYER, workspace_limit_bytes=0)
    assert {row.workspace_bytes for row in within if not row.reason} == {0}
    assert {*gpu[1]} < {*gpu[0]} and str(choose(LAYER, FP32, 0)) == "direct/registers"
    assert str(choose(LAYER, FP32)) == "winograd/f2x2"


def test_forward_takes_what_was_found_also_if_it_had_planned_before(gpu, monkeypatch):
    launched, make_launches = [], convolution.make_launches
    monkeypatch.setattr(
        convolution, "make_launches", lambda *arguments: launched.append(str(arguments[0])) or make_launches(*arguments)
    )
    x, w, y = map(cuda.to_device, LAYER.operands()[:3])
    conv.forward(x, w, y=y)
    assert {*launched} == {str(conv.heuristic(LAYER).best)}
    conv.find(LAYER)
    launched.clear()
    conv.forward(x, w, y=y)
    assert {*launched} == {"winograd/f2x2"}


def test_what_was_found_with_another_compiler_is_not_taken(gpu, monkeypatch):
    conv.find(LAYER)
    monkeypatch.setattr(choices, "compiler", lambda: "numba-cuda 99.0")
    assert choose(LAYER, FP32) == conv.heuristic(LAYER).best


@pytest.mark.parametrize("spoilt", ["", "{", '{"choices": []}', "[]"])
def test_a_corrupt_cache_is_rebuilt_with_a_warning(gpu, spoilt):
    conv.find(LAYER)
    path = tuning.cache_file("conv", tuning.gpu_name())
    path.write_text(spoilt, encoding="utf-8")
    forget()
    with pytest.warns(UserWarning, match="holds no choices"):
        assert choose(LAYER, FP32) == conv.heuristic(LAYER).best
    with pytest.warns(UserWarning, match="holds no choices"):
        conv.find(LAYER)
    forget()
    assert list(json.loads(path.read_text(encoding="utf-8"))["choices"]) == [choices.question(LAYER, FP32, None)]
    with warnings.catch_warnings(action="error"):
        assert str(choose(LAYER, FP32)) == "winograd/f2x2"


def test_a_choice_that_no_longer_applies_is_not_taken(gpu):
    conv.find(LAYER)
    path = tuning.cache_file("conv", tuning.gpu_name())
    path.write_text(path.read_text(encoding="utf-8").replace("winograd/f2x2", "winograd/f3x3"), encoding="utf-8")
    forget()
    assert choose(LAYER, FP32) == conv.heuristic(LAYER).best


def test_find_without_a_gpu_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(device, "current", lambda: SimpleNamespace(kind="simulator"))
    with pytest.raises(RuntimeError, match="find times kernels on a GPU, and none is in use here: heuristic"):
        conv.find(LAYER)


# --- how it is shown -----------------------------------------------------------------------------


def test_a_ranking_is_a_table_with_reasons():
    few = Ranking(
        LAYER,
        FP32,
        None,
        (
            Row(find_algorithm("direct/registers", "y"), 1.23456, 0),
            Row(find_algorithm("fft/tiled", "y"), 2.0, 1_500_000),
            Row(find_algorithm("winograd/f4x4", "y"), None, None, "it takes R < 4"),
        ),
        is_measured=True,
    )
    assert repr(few).splitlines() == [
        "algorithm            ms  workspace, MB  why not",
        "direct/registers  1.235            0.0",
        "fft/tiled         2.000            1.5",
        "winograd/f4x4                           it takes R < 4",
    ]
    assert "it takes R &lt; 4" in few._repr_html_()
    assert "ms, predicted" in repr(conv.heuristic(LAYER))
    assert len(few) == 3 and list(few)[1].time_ms == 2.0 and few.best == few[0].algorithm


def test_where_nothing_applies_all_reasons_are_told():
    ranking = conv.heuristic(conv.Forward(128, *TABLE_2[1]), BF16, 0)
    if not ranking.candidates:
        with pytest.raises(
            ValueError, match="nothing here computes forward .* in bfloat16 .*direct/registers, .*: this step"
        ):
            _ = ranking.best


@pytest.mark.parametrize(
    "sizes",
    [
        {"R": 16, "S": 16, "stride_h": 16, "stride_w": 16},  # patches of an image
        {"R": 3, "S": 3, "dilation_h": 130},
        {"R": 1, "S": 3, "dilation_h": 300},
        {"R": 260, "S": 1},
        {"R": 201, "S": 1, "top": 200, "bottom": 200},
    ],
)
def test_what_tma_does_not_take_is_left_to_a_step_without_it(sizes):
    problem = conv.Forward(1, 8, 300, 300, 6, layout="NHWC", **sizes)
    ranking = conv.heuristic(problem, "bfloat16")
    assert "tensor/mma" in map(str, ranking.candidates)
    reasons = {str(row.algorithm): row.reason for row in ranking}
    assert "TMA" in reasons["tensor/im2col"] and "TMA" in reasons["tensor/persistent"]


@pytest.mark.parametrize("format", ["float32", "bfloat16"])
@pytest.mark.parametrize("sizes", [{"N": 2**18, "H": 512, "W": 512}, {"H": 2**17, "W": 2**15}])
def test_what_is_too_large_is_told_by_each_algorithm(sizes, format):
    problem = conv.Forward(**{"N": 1, "C": 8, "K": 2**5, "R": 1, "S": 1, "layout": "NHWC"} | sizes)
    ranking = conv.heuristic(problem, format)
    assert all(row.reason for row in ranking)
    with pytest.raises(ValueError, match="nothing here computes forward"):
        ranking.check()


@pytest.mark.parametrize("sizes", [(1, 64, 28, 28, 128, 3, 3), (64, 128, 28, 28, 128, 9, 9), (16, 3, 40, 40, 8, 1, 1)])
def test_a_limit_on_a_ranking_is_the_ranking_with_a_limit(sizes):
    problem = conv.Forward(*sizes)
    for limit_bytes in (0, 1000, 10**6, 16 * 10**6, 10**9):
        limited = choices.limit_workspace(conv.heuristic(problem), limit_bytes)
        assert limited == conv.heuristic(problem, workspace_limit_bytes=limit_bytes)

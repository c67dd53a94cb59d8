"""Recorded times of convolutions, combined from several benches."""

import pytest

from labkit import conv, results
from labkit.conv import records
from labkit.results import Results

LAYER = conv.Forward(2, 4, 9, 8, 6, 3, 3)
OTHER = conv.Forward(2, 4, 9, 8, 6, 5, 5)


def row(step, time_ms, baseline="torch", baseline_ms=3.0, problem=LAYER, dtype="float32", **more):
    named = {"step": step, "dtype": dtype, "time_ms": time_ms, "problem": str(problem), **problem.fields}
    return named | ({"baseline": baseline, "baseline_time_ms": baseline_ms} if baseline else {}) | more


@pytest.fixture
def recorded(monkeypatch):
    """Makes these records the only ones, by GPU and operation."""

    def record(found):
        monkeypatch.setattr(results, "recorded", lambda: sorted(found))
        monkeypatch.setattr(
            results, "load", lambda operation, machine: Results(operation, {}, found[machine, operation])
        )
        records.measured.cache_clear()

    yield record
    records.measured.cache_clear()


def test_ladders_are_put_together_and_stand_in_the_order_of_their_times(recorded):
    recorded(
        {
            ("t4", "conv_direct"): [row("naive", 9.0), row("halo", 5.0, problem=OTHER)],
            ("t4", "conv_winograd"): [row("f4x4", 2.0, workspace_bytes=77), row("f2x2", 4.0, baseline_ms=5.0)],
            ("t4", "gemm"): [{"step": "tiled"}],
            ("l4", "conv_direct"): [row("naive", 1.0)],
        }
    )
    assert records.machines() == ["l4", "t4"]
    first, second = records.measured("t4")
    assert (first.problem, second.problem) == (LAYER, OTHER)
    assert list(first.ours) == ["winograd/f4x4", "winograd/f2x2", "direct/naive"]
    assert first.fastest == "winograd/f4x4" and first.ours[first.fastest].workspace_bytes == 77
    assert first.baselines["torch"].time_ms == 3.0 and first.ratio == 1.5, "the median of 3, 3 and 5"
    assert first.tflops(2.0) == LAYER.flops / 2e9


def test_what_all_algorithms_in_one_run_took_stands_before_the_rest(recorded):
    recorded(
        {
            ("t4", "conv_choices"): [row("fft/tiled", 1.0), row("direct/naive", 8.0)],
            ("t4", "conv_direct"): [row("naive", 9.0)],
        }
    )
    (one,) = records.measured("t4")
    assert {name: timed.time_ms for name, timed in one.ours.items()} == {"fft/tiled": 1.0, "direct/naive": 8.0}


def test_a_bench_of_several_ladders_names_steps_by_their_slug(recorded):
    recorded({("t4", "conv_taps"): [row("few_taps", 1.0), row("backward_data", 1.0), row("unheard_of", 1.0)]})
    (one,) = records.measured("t4")
    assert list(one.ours) == ["fft/few_taps"], "several ladders have a step backward_data"


def test_directions_and_formats_are_apart(recorded):
    recorded({("t4", "conv_fft"): [row("tiled", 1.0), row("backward_data", 2.0), row("whole", 3.0, dtype="float16")]})
    (forward,), (backward,) = records.measured("t4"), records.measured("t4", result="x")
    assert list(forward.ours) == ["fft/tiled"] and list(backward.ours) == ["fft/backward_data"]
    assert isinstance(backward.problem, conv.BackwardData)
    assert list(records.measured("t4", "float16")[0].ours) == ["fft/whole"]


def test_a_baseline_in_another_format_is_left_out(recorded):
    tf32 = {"baseline": "torch, TF32", "baseline_dtype": "tf32"}
    recorded({("t4", "conv_batches"): [row("direct/naive", 4.0), row("direct/naive", 4.0, baseline_ms=0.5, **tf32)]})
    (found,) = records.measured("t4")
    assert list(found.baselines) == ["torch"] and found.ratio == 0.75


def test_the_search_tells_what_it_found_and_baselines_may_be_missing(recorded):
    search = {"baseline": "cuDNN's search", "baseline_algorithm": "FFT", "baseline_workspace_bytes": 5}
    recorded(
        {("t4", "conv_fft"): [row("tiled", 1.0, baseline_ms=2.0, **search), row("whole", 2.0, None, problem=OTHER)]}
    )
    found, alone = records.measured("t4")
    assert found.baselines["cuDNN's search"] == records.Timed(2.0, 5, "FFT")
    assert alone.baselines == {} and alone.fastest_baseline == "" and alone.ratio is None


def test_the_book_s_own_records_hold_the_paper_s_layers_and_baselines():
    for machine in records.machines():
        problems = {one.problem for one in records.measured(machine)}
        assert conv.Forward(128, 64, 64, 64, 128, 9, 9) in problems
        assert all(one.ours and one.problem.result == "y" for one in records.measured(machine))


def test_a_record_knows_its_gpu():
    assert records.gpu_of("nvidia-h100-80gb-hbm3").sms == 132
    assert records.gpu_of("an unknown machine") is None

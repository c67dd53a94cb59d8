"""Benches: what they store and print, and what they say where they cannot run."""

import json
from math import inf
from types import SimpleNamespace

import pytest

from labkit import results
from labkit.bench import _harness, _record, batch, blas, counters, gemm, gemm_calls, gemm_tensor, layouts, simulator
from labkit.formats import BF16, E5M2, FP32
from labkit.gemm import Problem as gemm_problem
from labkit.machine import device


def test_a_record_says_on_what_it_was_measured_and_goes_where_it_is_asked_for(tmp_path, capsys):
    _record.store_if_requested("gemm", [{"step": "naive"}], "Some GPU", record=False, out=tmp_path)
    stored = json.loads((tmp_path / "some-gpu" / "gemm.json").read_text())
    assert stored["rows"] == [{"step": "naive"}]
    assert {"date", "cpu", "system", "python", "labkit", "numpy", "numba"} <= stored["header"].keys()
    assert "gemm.json" in capsys.readouterr().out.replace("\n", "")


def test_nothing_is_stored_unasked(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    _record.store_if_requested("gemm", [], "Some GPU", record=False, out=None)
    assert not list(tmp_path.iterdir())
    _record.store_if_requested("gemm", [], "Some GPU", record=True, out=None)
    assert list(tmp_path.iterdir())


def test_a_step_has_one_line_in_the_table_however_many_baselines(capsys):
    row = {"problem": "64x64x64", "step": "naive", "dtype": "float32", "time_ms": 2.0}
    _harness.print_comparison(
        "times", [{**row, "baseline": baseline, "ratio": ratio} for baseline, ratio in (("C++", 0.91), ("BLAS", 0.12))]
    )
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "naive" in line]
    assert "91.0%" in line and "12.0%" in line


def test_what_takes_too_long_is_left_out_and_other_formats_get_the_fastest():
    def row(step, size, time_ms):
        problem = gemm_problem(size, size, size)
        rate = {
            "problem": str(problem),
            "time_ms": time_ms,
            "tflops": problem.flops / time_ms / 1e9,
            "gb_s": problem.min_bytes() / time_ms,
        }
        return {"step": step, "dtype": "float32", **rate}

    rows = [row("slow", 1024, 2.0), row("fast", 1024, 0.05), row("slow", 2048, 16.0), row("fast", 2048, 0.4)]
    slow, fast = (SimpleNamespace(slug=slug) for slug in ("slow", "fast"))
    large = gemm_problem(4096, 4096, 4096)
    assert _harness._predicted_ms(rows, slow, large, FP32) == pytest.approx(128)
    assert _harness._predicted_ms(rows, fast, large, FP32) == pytest.approx(3.2)
    assert _harness._predicted_ms([], slow, large, FP32) == 0
    assert [_harness._last_time_ms(rows, step, FP32) for step in (slow, fast)] == [16.0, 0.4]
    assert _harness._last_time_ms(rows[:-1], fast, FP32) == inf
    assert _harness._last_time_ms([], fast, FP32) == inf


def test_a_table_shows_formatted_figures(capsys):
    _record.print_table(
        "times", [{"step": "naive", "time_ms": 1.23456}], {"step": "", "time_ms": ".2f", "ratio": ".2f"}
    )
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if line.strip() and "─" not in line] == [
        ["times"],
        ["time"],
        ["step", "ms", "ratio"],
        ["naive", "1.23"],
    ]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_figure_is_cut_in_a_narrow_terminal(columns, monkeypatch, capsys):
    monkeypatch.setattr(_record, "WIDTH_OF_FILES", columns)
    figures = {name: float(10**n + 0.125) for n, name in enumerate(("time_ms", "ns_per_lane_operation", "error", "gb"))}
    row = {"step": "python with lists", "problem": "4096x4096x4096", **figures}
    _record.print_table("times", [row], {"step": "", "problem": "", **dict.fromkeys(figures, ",.3f")})
    shown = capsys.readouterr().out
    assert not {f"{figure:,.3f}" for figure in figures.values()} - {*shown.split()} and "…" not in shown
    assert max(map(len, shown.splitlines())) <= max(columns, 80)


def test_a_bench_of_minutes_says_what_it_times(monkeypatch, capsys):
    monkeypatch.setattr(_harness, "measure", lambda *_: [])
    benchmark = _harness.default_benchmark("softmax")
    _harness.rows_of_ladder(benchmark, benchmark.ladders[0])
    said = capsys.readouterr()
    assert "timing softmax 16384x4096 in float32\n" in said.err and not said.out


@pytest.mark.parametrize("bench", [gemm, gemm_calls, blas, batch, layouts, counters])
def test_a_bench_for_a_gpu_says_what_is_missing(bench, monkeypatch, capsys):
    monkeypatch.setattr(device, "detect", lambda: device.Device("simulator", "H100 SXM", "no NVIDIA GPU was found"))
    with pytest.raises(SystemExit):
        bench.main()
    assert "no NVIDIA GPU was found; run `python -m labkit doctor`" in " ".join(capsys.readouterr().out.split())


def test_a_format_that_torch_does_not_multiply_is_timed_without_a_baseline():
    problem = gemm_problem(64, 64, 64)
    assert list(gemm_tensor.baselines(problem, BF16)) == ["cuBLAS"] and gemm_tensor.baselines(problem, E5M2) == {}


def test_both_simulators_are_timed_on_the_same_kernel():
    row = simulator.compare("tiled", 32)
    assert row["numba_ms"] > row["labkit_ms"] > 0
    assert row["ratio"] == pytest.approx(row["numba_ms"] / row["labkit_ms"])


@pytest.mark.parametrize(("sample", "blocks"), [(None, 36), (20, 20)])
def test_larger_problems_tell_their_time_and_memory_by_lane_operation(sample, blocks):
    """Per multiply-add two shared loads and two FLOPs; by tile two global loads and two shared stores; a store each."""
    row = simulator.measure_growth("tiled", 96, sample)
    of_block = 256 * (96 * 4 + 6 * 4 + 1)
    assert row["blocks_run"] == blocks
    assert row["lane_operations"] == blocks * of_block
    assert row["ns_per_lane_operation"] == pytest.approx(row["labkit_ms"] * 1e6 / row["lane_operations"])
    assert row.get("peak_mb", 100) > 50


@pytest.mark.sample(0)
def test_the_first_simulate_is_timed_in_a_fresh_process(tmp_path):
    cold = simulator.first_simulate("cold", str(tmp_path))
    warm = simulator.first_simulate("warm", str(tmp_path))
    assert cold["first_simulate_s"] > warm["first_simulate_s"] > 0

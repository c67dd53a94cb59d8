"""The chart of a ladder: speeds and gains are those of the record."""

import pytest

from labkit import results
from labkit.results import Results
from labkit.results.computed import add_computed
from labkit.views import ladder
from tests.views.texts import touching, written

HEADER = {"gpu": "NVIDIA H100 80GB HBM3", "date": "2026-11-22", "torch": "2.11.0"}
STEPS = ["tiled", "tile", "tuned"]
TIMES = {"small": {"tiled": 1.0, "tile": 2.0, "tuned": 0.5}, "large": {"tiled": 4.0, "tuned": 1.0}}
PROBLEMS = {"small": "1,024", "large": "4,096"}


def record():
    work = {"flops": 32 * 10**9, "min_bytes": 10**6, "dtype": "float32", "baseline": "cuBLAS", "baseline_time_ms": 0.8}
    rows = [
        {"step": step, "problem": problem, "time_ms": time_ms, **work}
        for problem, times in TIMES.items()
        for step, time_ms in times.items()
    ]
    return Results("gemm", HEADER, [add_computed(row) for row in rows])


@pytest.fixture(scope="module")
def view():
    notes = {"shared\ncycles": {"tuned": "0.46"}, "ms": "time_ms"}
    return ladder(record(), "A title", STEPS, "cuBLAS", PROBLEMS, start="large", notes=notes)


def test_speeds_and_gains_are_computed_from_times(view):
    assert view.data["speeds"][0] == pytest.approx([32, 16, 64])
    assert view.data["gains"][0] == [None, pytest.approx(-0.5), pytest.approx(3)]
    assert view.data["baseline"] == ["cuBLAS", [pytest.approx(40)] * 2]
    assert view.data["peak"][0] == pytest.approx(66.9, abs=0.1)


def test_a_step_that_was_not_measured_has_no_speed_and_no_gain(view):
    assert view.data["speeds"][1] == [pytest.approx(8), None, pytest.approx(32)]
    assert view.data["gains"][1] == [None, None, None]


def test_a_sentence_names_the_fastest_step_at_each_size(view):
    assert view.sentence == "4,096: tuned is the fastest step, 32 TFLOP/s, 80% of cuBLAS and 48% of the peak."


def test_the_table_holds_all_sizes_and_notes(view):
    assert view.data["table"]["columns"] == ["step", "1,024, TFLOP/s", "4,096, TFLOP/s", "shared cycles", "ms"]
    assert view.data["table"]["rows"][2] == ["tuned", "64", "32", "0.46", "1.0"]
    assert view.data["table"]["rows"][3] == ["cuBLAS", "40", "40", "", ""]
    assert "baseline: cuBLAS (torch 2.11.0)" in view.data["caption"]


def test_a_problem_without_rows_is_refused():
    with pytest.raises(ValueError, match="No step was measured against cuBLAS on huge"):
        ladder(record(), "", STEPS, "cuBLAS", {"huge": "huge"})


def test_the_record_of_this_package_can_be_drawn(tmp_path):
    steps = ["tiled", "register_column", "register_tile", "tuned"]
    found = ladder("gemm", "Speed", steps, "cuBLAS fp32", {"4096x4096x4096": "4,096"})
    (row,) = results.load("gemm").select(step="tuned", problem="4096x4096x4096", baseline="cuBLAS fp32")
    assert found.data["speeds"][0][3] == pytest.approx(row["tflops"])
    found.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 5000


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [818, 970])
def test_notes_are_shown_in_jupyterlab_beside_its_files_and_their_headings_stay_apart(browser, tmp_path, width):
    steps = ["tiled", "register_column", "register_tile", "tuned"]
    cycles, shares = {"tuned": "0.46"}, {"tuned": "90%"}
    notes = {"shared cycles": cycles, "instructions that\nare multiply-adds": shares, "registers": "registers"}
    view = ladder("gemm", "Speed", steps, "cuBLAS fp32", {"4096x4096x4096": "4,096"}, notes=notes)
    texts = written(browser, view, tmp_path / "view.html", width)
    assert {"0.46", "90%", "registers", "multiply-adds"} <= {one["text"] for one in texts}
    assert not touching(texts, gap=2)
    assert all(one["top"] >= 0 and one["left"] >= 0 and one["right"] <= one["wide"] for one in texts)

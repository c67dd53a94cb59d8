"""Shapes of a record as dots: each row is drawn, and means are those of its columns."""

import pytest

from labkit.results import Results
from labkit.views import shape_ratios


def row(M, N, K, ratio):
    return {
        "step": "ours", "M": M, "N": N, "K": K, "dtype": "bfloat16", "time_ms": 1.0,
        "baseline": "cuBLAS", "baseline_time_ms": ratio, "ratio": ratio,
    }  # fmt: skip


ROWS = [row(1, 4096, 4096, 1.1), row(1, 8192, 4096, 1.21), row(64, 4096, 64, 0.5), row(64, 64, 64, 2.0)]


def test_the_sentence_counts_shapes_and_means_their_ratios(tmp_path):
    view = shape_ratios(
        Results("shapes", {"gpu": "NVIDIA H100 80GB HBM3"}, ROWS), "A title", step="ours", baseline="cuBLAS"
    )
    mean = (1.1 * 1.21 * 0.5 * 2.0) ** 0.25
    assert view.sentence == (
        f"The geometric mean of 4 shapes is {mean:.2f}x the speed of cuBLAS, from 0.50x to 2.00x; "
        "0% are within 5% of it."
    )
    assert view.data["table"]["rows"][1] == ["1", "8,192", "4,096", "1", "1.21", "1.210"]
    assert [entry[2] for entry in view.data["legend"]][:3] == ["N = 4,096", "N = 8,192", "squares"]
    view.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_all_recorded_shapes_are_drawn():
    view = shape_ratios("gemm_shapes", "A title", step="multiply", baseline="cuBLAS")
    assert "of 67 shapes" in view.sentence and len(view.data["table"]["rows"]) == 68  # one was measured twice


def test_a_record_without_such_a_ratio_is_refused():
    with pytest.raises(ValueError, match="no ratio of ours to cuBLAS"):
        shape_ratios(Results("shapes", {}, [{"step": "ours", "M": 1}]), "A title", step="ours", baseline="cuBLAS")

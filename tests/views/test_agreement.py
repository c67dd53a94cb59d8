"""The agreement view: what a row of recorded counters says, and how it looks."""

import pytest

from labkit import results
from labkit.views import agreement
from labkit.views.agreement import verdict


def row(counter="flops", predicted=1000, factor=1.0, measured=1000.0, bound=0.0, held=True):
    agreed = 1 + measured - predicted if counter.endswith("_rate") else measured / (predicted * factor)
    return {
        "kernel": "k", "problem": "8", "counter": counter, "predicted": predicted, "sass_factor": factor,
        "measured": measured, "agreement": agreed, "bound": bound, "held": held, "reason": "",
    }  # fmt: skip


EQUAL = row()
MERGED = row("shared_load_requests", factor=0.625, measured=625.0)
NEAR = row("dram_read_bytes", measured=1070.0, bound=0.15)
OPEN = row("global_atomic_sectors", measured=1110.0, held=None)
MISSED = row(measured=990.0, held=False)
RATE = row("l2_hit_rate", predicted=0.5, measured=0.46, bound=0.1)


def test_verdicts_and_the_sentence_that_counts_them():
    rows = [EQUAL, MERGED, NEAR, OPEN, RATE]
    assert [verdict(r) for r in rows] == ["exact", "exact", "held", "open", "held"]
    said = agreement(rows, "T4").sentence
    counts = "5 counters of 1 launches: 2 are equal, 2 are within their bound, 1 are left open."
    assert said == f"{counts} The table also has 1 hit rate, which the chart leaves out."
    assert agreement([EQUAL, MISSED], "T4").sentence.endswith("0 are left open, 1 are beyond their bound.")


def test_the_table_has_every_row_with_the_compilers_factor_in():
    rows = agreement([MERGED, RATE], "T4").data["table"]["rows"]
    assert rows == [
        ["k", "8", "shared_load_requests", "625", "625", "equal"],
        ["k", "8", "l2_hit_rate", "50.0%", "46.0%", "within its bound"],
    ]


def test_the_legend_names_what_the_chart_shows():
    assert [text for *_, text in agreement([EQUAL, OPEN, RATE], "T4").data["legend"]] == ["equal", "left open"]


def test_the_chart_follows_the_theme():
    for svg in agreement([EQUAL, NEAR], "T4").data["charts"].values():
        assert "var(--A)" in svg and "var(--C)" in svg and "measured on T4" in svg


def test_nothing_to_show_is_told():
    with pytest.raises(ValueError, match="needs the rows of `python -m labkit bench counters`"):
        agreement([], "T4")


def test_a_still_picture_of_the_recorded_rows_is_drawn(tmp_path):
    found = results.load("counters", "nvidia-h100-80gb-hbm3")
    agreement(found.rows, found.header["gpu"]).save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000

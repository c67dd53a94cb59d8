"""Recorded times of convolutions related to one another: each ratio is that of the records it is made of."""

import pytest

from labkit import conv, results
from labkit.conv import comparisons, records
from labkit.views import records as draw


def times(record, problem):
    """Times of steps and baselines of one problem."""
    rows = results.load(record).select(problem=problem)
    return {row["step"]: row["time_ms"] for row in rows} | {row["baseline"]: row["baseline_time_ms"] for row in rows}


def test_choices_are_compared_with_the_fastest_of_all():
    found = comparisons.choices()
    assert len({row["layer"] for row in found.rows}) == 5 and len(found.rows) == 25
    known = times("conv_choices", "128x64x64x64 128x9x9")
    by_name = {row["step"]: row for row in found.select(layer="layer 2: 9 x 9 taps")}
    fastest_ms = min(known.values())
    assert by_name["torch, 10 candidates"]["ratio"] == pytest.approx(
        fastest_ms / by_name["torch, 10 candidates"]["time_ms"]
    )
    assert by_name["torch, 10 candidates"]["ratio"] < 0.1 < 0.9 < by_name["conv.heuristic"]["ratio"] <= 1
    few, every = (by_name[f"torch, {name} candidates"]["time_ms"] for name in ("10", "all"))
    assert every == pytest.approx(few, rel=0.02), "more candidates find nothing faster"


def test_the_error_of_torch_is_that_of_what_it_chose():
    """An error depends on the order of sums: torch's is that of an implicit GEMM, or that of an FFT."""
    errors = {}
    for row in comparisons.choices().rows:
        errors.setdefault(row["layer"][:7], {})[row["step"]] = row["error"]
    for layer in ("layer 2", "layer 3", "layer 4"):
        of_torch, of_gemm = (errors[layer][name] for name in ("torch, 10 candidates", "our implicit GEMM"))
        assert of_torch == pytest.approx(of_gemm, rel=0.05) and of_torch > 3 * errors[layer]["cuDNN's search"]
    assert errors["layer 1"]["torch, 10 candidates"] == pytest.approx(errors["layer 1"]["cuDNN's search"], rel=0.02)


def test_an_fft_is_level_with_winograd_at_3_x_3_and_rounds_less():
    rows = [row for row in comparisons.fft_and_winograd().rows if row["step"] == "FFT"]
    assert len(rows) == 12
    (small,) = (row for row in rows if row["layer"] == "512 to 512 channels, 7 x 7")
    assert small["ratio"] < 0.5 < min(row["ratio"] for row in rows if row is not small)
    assert sum(row["ratio"] > 1 for row in rows) >= 6
    errors = {row["layer"]: row["error"] for row in comparisons.fft_and_winograd().rows if row["step"] == "Winograd"}
    assert sum(row["error"] < errors[row["layer"]] for row in rows) >= 11


def test_calls_pay_the_search_back_by_what_they_save():
    for row in comparisons.first_calls().rows:
        saved_ms = row["baseline_time_ms"] - row["time_ms"]
        known = results.load("conv_first_calls").select(problem=row["problem"])
        first_ms = {one["step"]: one["first_ms"] for one in known}
        paid_ms = first_ms["torch, benchmark"] - first_ms["torch"]
        assert row["calls_until_it_pays"] * saved_ms == pytest.approx(paid_ms)


@pytest.mark.parametrize("baseline", ["direct/registers", comparisons.BY_IMAGE])
def test_an_implicit_gemm_is_compared_at_each_number_of_images(baseline):
    found = comparisons.by_images(baseline)
    assert len(found.rows) == 20 and {row["N"] for row in found.rows} == {1, 16, 64, 128}
    for row in found.rows:
        known = times("conv_batches", row["problem"])
        assert row["baseline_time_ms"] == known[comparisons.RECORDED_NAMES.get(baseline, baseline)]
        assert row["time_ms"] == min(known["implicit_gemm/gathered"], known["implicit_gemm/split"])
    assert ("torch" in found.header) == (baseline == comparisons.BY_IMAGE), "its version is that of a baseline of torch"


def test_the_lead_over_a_direct_kernel_is_largest_with_one_image():
    ratios = {}
    for row in comparisons.by_images("direct/registers").rows:
        ratios.setdefault(row["layer"], {})[row["N"]] = row["ratio"]
    assert all(max(by_images, key=by_images.get) == 1 for by_images in ratios.values())
    lowered = comparisons.by_images(comparisons.BY_IMAGE)
    assert all(row["ratio"] > 1 for row in lowered.rows if row["N"] > 1)
    assert max(row["ratio"] for row in lowered.select(N=1)) < 1.5


def test_16_bits_are_ahead_on_each_layer_of_the_paper():
    for layer in (f"layer {number}" for number in range(1, 6)):
        rows = {row["step"]: row for row in comparisons.by_format().rows if row["layer"].startswith(layer)}
        assert rows["labkit, bfloat16"]["tflops"] > max(
            rows["labkit, float32"]["tflops"], rows["cuDNN, float32"]["tflops"]
        )
        assert rows["labkit, float32"]["dtype"] == "float32" and rows["implicit GEMM"]["tflops"] < 67
        assert rows["torch, TF32"]["tflops"] < rows["labkit, bfloat16"]["tflops"]


def test_directions_are_compared_with_the_search():
    found = comparisons.by_direction()
    assert {row["step"] for row in found.rows} == {"forward", "backward data", "backward filter"}
    machine = results.slug(found.gpu)
    for row in found.select(step="backward data"):
        (one,) = (one for one in records.measured(machine, result="x") if str(one.problem) == row["problem"])
        assert row["time_ms"] == one.ours[one.fastest].time_ms


def test_layers_have_short_names_and_can_be_drawn():
    assert comparisons.layer_name(conv.Forward(1, 384, 13, 13, 384, 3, 3)) == "layer 5: 3 x 3 taps"
    assert comparisons.layer_name(conv.Forward(1, 64, 56, 56, 128, 3, 3)) == "64 to 128 channels, 56 x 56"
    chart = draw(comparisons.choices(), "Choices", x="layer", y="ratio", baseline=comparisons.FASTEST)
    assert "conv.heuristic" in chart.sentence

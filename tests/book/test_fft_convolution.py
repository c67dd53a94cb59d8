"""The figures that the chapter on FFTs writes into its sentences, held against the records and the counts."""

import numpy as np
import pytest

from labkit import conv, places, results
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
H100 = "nvidia-h100-80gb-hbm3"


@pytest.fixture(scope="module")
def text():
    return source(places.PACKAGE.parent / "notebooks", "fft-convolution").read_text(encoding="utf-8")


def times_ms(record, **fields):
    return {(row["step"], row["problem"]): row["time_ms"] for row in results.load(record, H100).select(**fields)}


def test_fft_and_winograd_are_close_at_3_x_3(text):
    fastest = {}
    for (step, problem), time_ms in times_ms("conv_choices_3x3").items():
        fastest.setdefault(problem, {}).setdefault(step.split("/")[0], []).append(time_ms)
    speedups = [min(of["winograd"]) / min(of["fft"]) for of in fastest.values()]
    assert len(speedups) == 12 and sum(speedup > 1 for speedup in speedups) == 7
    assert sum(1 / 1.15 < speedup < 1.15 for speedup in speedups) == 10
    assert "On ten layers the two are within 15%" in text
    assert sum(1 / 1.01 < speedup < 1 for speedup in speedups) == 2
    assert "on two of Winograd's five layers the lead is below 1%" in text
    rows = results.load("conv_choices_3x3", H100).rows
    winograd = {row["problem"] for row in rows if "Winograd" in row.get("baseline_algorithm", "")}
    tiled_fft = {row["problem"] for row in rows if row.get("baseline_algorithm") == "tiled FFT"}
    assert (len(winograd), len(tiled_fft)) == (10, 2)
    workspace_mb = {
        step: [row["workspace_bytes"] / 1e6 for row in rows if row["step"] == step]
        for step in ("fft/few_taps", "winograd/fused")
    }
    assert (round(min(workspace_mb["fft/few_taps"])), round(max(workspace_mb["fft/few_taps"]))) == (85, 2173)
    assert round(max(workspace_mb["winograd/fused"])) == 17
    assert "85 to 2,173 MB, while our fused Winograd needs 17 MB" in text


@pytest.mark.parametrize(("channels", "taps", "speedup"), [(128, 11, 10.6), (16, 11, 5.3), (128, 3, 2.7), (16, 3, 1.3)])
def test_the_claim_by_the_clock(channels, taps, speedup, text):
    of = {row["step"]: row["time_ms"] for row in results.load("conv_taps", H100).select(C=channels, R=taps)}
    assert round(of["gathered"] / of["few_taps"], 1) == speedup and f"{speedup}x" in text


def test_steps_and_baselines_on_the_layers_of_table_2(text):
    times = times_ms("conv_fft")
    both_batches = {layer for _, layer in times}
    dense = [times["tiled", layer] / times["few_taps", layer] for layer in both_batches]
    assert f"{min(dense):.2f}x to {max(dense):.2f}x the speed of the dense `tiled`" in text
    layers = [str(problem) for problem in conv.ladder("fft").step("tiled").benched[:5]]

    def ratios(slower, faster):
        return np.array([times[slower, layer] / times[faster, layer] for layer in layers])

    tiled = conv.ladder("fft").step("tiled")
    assert all(tiled.choose_tiles(problem)[2] == (1, 1) for problem in tiled.benched[1:5]), "one tile per image"
    assert (ratios("whole", "tiled") > 10).all() and (ratios("whole", "tiled") < 14.5).all()
    assert [round(100 * (ratio - 1)) for ratio in ratios("tiled", "three_products")[1:]] == [4, 6, 3, 6]
    searched = {
        row["problem"]: row["baseline_time_ms"]
        for row in results.load("conv_fft", H100).select(step="few_taps", baseline="cuDNN's search")
    }
    ahead = [f"{searched[layer] / times['few_taps', layer] - 1:.0%}" for layer in layers[1:4]]
    assert f"{ahead[0]}, {ahead[1]} and {ahead[2]} faster" in text
    assert times["tiled", layers[2]] > searched[layers[2]], "on layer 3 tiled is behind"
    in_16_bits = {
        row["problem"]: row["time_ms"]
        for row in results.load("conv_tensor", H100).select(step="persistent", dtype="bfloat16")
    }
    gains = [round(times["few_taps", layer] / in_16_bits[layer], 1) for layer in layers]
    assert gains == [1.5, 1.2, 1.2, 2.2, 9.2] and "1.2x faster on layers 2 and 3, and 9.2x on layer 5" in text
    second = results.load("conv_fft", H100).select(step="few_taps", problem=layers[1])[0]
    assert round(second["tflops"]) == 633 and round(second["tflops"] * 2.70 / 81) == 21


def test_errors_at_3_x_3(text):
    errors = {row["step"]: row["error"] for row in results.load("conv_taps", H100).select(C=128, R=3)}
    assert (f"{errors['f4x4']:.1e}", f"{errors['few_taps']:.1e}") == ("2.3e-06", "3.2e-07")
    assert "2.3e-6 for F(4 x 4)" in text and "3.2e-7" in text
    fused = results.load("conv_choices_3x3", H100).select(step="winograd/fused", C=128, H=28)
    assert {f"{row['error']:.1e}" for row in fused} == {"3.5e-07"} and "3.5e-7 for the fused Winograd" in text


def test_the_fold_of_figures_without_a_cell(text):
    registers = {row["step"]: row["registers"] for row in results.load("conv_fft", H100).rows}
    assert registers["three_products"] == registers["few_taps"] == 157 and registers["tiled"] == 126
    assert "157 of `three_products` and `few_taps`, 126 of `tiled`" in text


def test_in_bfloat16_every_side_is_predicted_to_be_faster(text):
    def predicted_ms(taps, **options):
        pads = conv.pads("same", 28, taps)
        problem = conv.Forward(64, 128, 28, 28, 128, taps, taps, 1, 1, *pads, *pads, **options)
        ranking = conv.heuristic(problem, "bfloat16" if options else "float32")
        return min(row.time_ms for row in ranking if not row.reason)

    gains = [predicted_ms(taps) / predicted_ms(taps, layout="NHWC") for taps in (1, 3, 5, 7, 9, 11)]
    assert f"{min(gains):.1f}x to {max(gains):.1f}x faster than the best of ours in float32" in text


def test_a_pruned_transform_leaves_out_butterflies_that_only_copy(text):
    line = np.array([1, 10, 100, 0, 0, 0, 0, 0], complex)[[0, 4, 2, 6, 1, 5, 3, 7]]
    copies = []
    for half in (1, 2, 4):
        pairs = line.reshape(-1, 2, half)
        turned = pairs[:, 1] * np.exp(-1j * np.pi * np.arange(half) / half)
        copies.append(int((pairs[:, 1] == 0).sum()))
        line = np.stack([pairs[:, 0] + turned, pairs[:, 0] - turned], 1).ravel()
    assert copies == [4, 2, 0] and "leaves out these 6 of 12" in text

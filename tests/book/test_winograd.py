"""Numbers that the chapter on Winograd states in prose, held against records and counts."""

from collections import Counter

import numpy as np
import pytest

from labkit import conv, gpu, places, results
from labkit.book.contents import source
from labkit.views import tile_transform
from labkit.views.tile_errors import tile_error

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
STEPS = {step.slug: step for step in conv.ladder("winograd")}
H100 = "nvidia-h100-80gb-hbm3"


def chapter():
    return " ".join(source(places.PACKAGE.parent / "notebooks", "winograd").read_text().split())


def layers():
    """Return TFLOP/s by layer of 3 x 3 taps, and in each by step or baseline; the algorithm that the search found."""
    speeds, algorithms = {}, {}
    for row in results.load("conv_choices_3x3", H100).rows:
        of_layer = speeds.setdefault(row["problem"], {})
        of_layer[row["step"]] = row["tflops"]
        of_layer[row["baseline"]] = row["tflops"] * row["time_ms"] / row["baseline_time_ms"]
        if row["baseline"] == "cuDNN's search":
            algorithms[row["problem"]] = row["baseline_algorithm"]
    return speeds, algorithms


def fastest(layer, ladder):
    return max(speed for name, speed in layer.items() if name.startswith(ladder))


def test_fft_is_fastest_on_7_of_12_layers_and_winograd_on_5_two_of_them_by_less_than_1_percent():
    speeds, algorithms = layers()
    assert Counter(algorithms.values()) == {"non-fused Winograd": 10, "tiled FFT": 2}
    ours = [{name: speed for name, speed in layer.items() if "/" in name} for layer in speeds.values()]
    winners = Counter(max(layer, key=layer.get).split("/")[0] for layer in ours)
    assert winners == {"fft": 7, "winograd": 5}
    ratios = [fastest(layer, "winograd") / fastest(layer, "fft") for layer in ours]
    assert sum(1 < ratio < 1.01 for ratio in ratios) == 2
    assert "an FFT is fastest on 7 of 12 layers and Winograd on 5; on two of these five they are within 1%" in chapter()


def test_f2x2_over_implicit_gemm():
    speeds, _ = layers()
    ratios = [of["winograd/f2x2"] / of["implicit_gemm/gathered"] for of in speeds.values()]
    assert len(ratios) == 12
    assert f"`f2x2` is {min(ratios):.2g} to {max(ratios):.2g} times as fast on the 12 layers" in chapter()


def test_the_error_of_cudnns_winograd_is_that_of_4_x_4():
    found = results.load("conv_winograd", H100)
    chosen = {"N": 64, "baseline": "cuDNN's search", "baseline_algorithm": "non-fused Winograd"}
    ratios = {}
    for slug in ("f2x2", "f4x4"):
        ratios[slug] = [row["baseline_error"] / row["error"] for row in found.select(step=slug, **chosen)]
        assert len(ratios[slug]) == 10
    assert f"{min(ratios['f4x4']):.2g} to {max(ratios['f4x4']):.2g} times that of `f4x4`" in chapter()
    assert min(ratios["f2x2"]) > 6, "more than six times that of f2x2"


def test_the_largest_error_and_workspace():
    found = results.load("conv_winograd", H100)
    worst = max(row["error"] for row in found.select(step="f6x6"))
    coarser = np.finfo(np.float16).eps / np.finfo(np.float32).eps
    assert f"{coarser:,.0f} times that of float32" in chapter()
    assert f"`f6x6` becomes {worst * coarser:.0%}" in chapter()
    workspace = max(row["workspace_bytes"] for row in found.select(step="f2x2"))
    assert f"up to {workspace / 1e9:.1f} GB" in chapter()


def test_bytes_take_most_of_the_time_of_the_first_three_steps():
    problem = STEPS["f2x2"].benched[[p.H for p in STEPS["f2x2"].benched].index(224)]
    for slug in ("f2x2", "f4x4", "f6x6"):
        row = results.load("conv_winograd", H100).select(step=slug, problem=str(problem))[0]
        gb = (2 * row["workspace_bytes"] + problem.min_bytes()) / 1e9
        assert 0.7 < 1e3 * gb / gpu("H100 SXM").dram_gb_s / row["time_ms"] < 0.8


def test_without_a_transform_tensor_cores_are_faster_in_bfloat16():
    speeds, _ = layers()
    for row in results.load("conv_tensor", H100).select(dtype="bfloat16", step="persistent", R=3, N=64):
        assert row["tflops"] > 3 * max(speeds[row["problem"]].values())


def test_what_is_said_of_the_first_picture():
    problem = conv.Forward(N=1, C=1, H=6, W=6, K=1, R=3, S=3)
    x, w, y, _ = problem.operands()
    x[0, 0] = [
        [7, 2, 5, 1, 3, 6], [4, 9, 3, 8, 0, 2], [6, 1, 8, 2, 5, 4],
        [0, 5, 7, 9, 1, 3], [2, 8, 4, 6, 7, 0], [3, 6, 0, 5, 2, 9],
    ]  # fmt: skip
    assert str(x[0, 0].astype(int).tolist()) in chapter()
    w[0, 0] = [[1, 2, 0], [0, 3, -1], [2, 1, -2]]
    small, large = (
        tile_transform({"": STEPS[slug].simulate(x, w, y, problem).traces}).data for slug in ("f2x2", "f4x4")
    )
    assert "16 products" in small["say"][35 - 1], "step 35"
    assert "= **26**" in large["say"][115 - 1] and "add up to 990" in large["say"][115 - 1], "step 115"
    sizes = [float(say.split("add up to ")[1].rstrip(".")) for say in small["say"] if "add up to" in say]
    assert len(sizes) == 4 and max(sizes) == 67
    assert large["stats"]["values"][-1][2] == 204, "products with constants"


def test_a_tile_of_10_has_a_thousand_times_the_error_of_4():
    assert 500 < tile_error(8, 3) / tile_error(2, 3) < 2000

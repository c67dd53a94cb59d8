"""Numbers that the chapter on Winograd states in prose, held against records and counts."""

import importlib
from collections import Counter
from fractions import Fraction

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


def test_what_cudnns_search_takes():
    _, algorithms = layers()
    assert Counter(algorithms.values()) == {"non-fused Winograd": 10, "tiled FFT": 2}
    assert "cuDNN's search picks a Winograd on 10 of the 12 layers" in chapter()


def test_which_winograd_is_fastest():
    speeds, _ = layers()
    winners = {
        problem: max((name for name in of if name.startswith("winograd")), key=of.get) for problem, of in speeds.items()
    }
    fused = [problem for problem, name in winners.items() if name == "winograd/fused"]
    assert [problem.split()[0] for problem in fused] == ["64x64x56x56", "64x256x14x14"]
    others = {name: of for name, of in speeds[fused[1]].items() if name.startswith("winograd") and "fused" not in name}
    assert speeds[fused[1]]["winograd/fused"] / max(others.values()) == pytest.approx(1.02, abs=0.005), "by 2%"
    (last,) = (of for problem, of in speeds.items() if problem.startswith("64x512x14x14"))
    assert f"`f4x4` reaches {last['winograd/f4x4']:.1f} TFLOP/s and `f6x6` {last['winograd/f6x6']:.1f}" in chapter()
    gained = [problem for problem, of in speeds.items() if of["winograd/f2x2"] > 2.25 * of["implicit_gemm/gathered"]]
    assert [problem.split()[0] for problem in gained] == ["64x512x14x14"], "gains more than 2.25"
    assert last["implicit_gemm/gathered"] == pytest.approx(33.5, abs=0.05)


def test_f6x6_is_11_percent_faster_than_fused_with_64_channels():
    found = results.load("conv_winograd", H100).select(H=224, C=64, K=64)
    times = {row["step"]: row["time_ms"] for row in found}
    for slug in ("fused", "f4x4"):
        assert times[slug] / times["f6x6"] == pytest.approx(1.11, abs=0.01)
    assert pytest.approx(2.2, abs=0.05) == 16 * (224 // 2) ** 2 / (64 * ((224 + 5) // 6) ** 2), "2.2x fewer products"
    products = 2 * 64 * 224**2 * 64 * 64 * 4  # four per output
    assert times["fused"] > 2e3 * products / gpu("H100 SXM").peak_tflops["float32"] / 1e12, "twice its limit"


def test_f2x2_over_implicit_gemm():
    speeds, _ = layers()
    ratios = [of["winograd/f2x2"] / of["implicit_gemm/gathered"] for of in speeds.values()]
    assert len(ratios) == 12
    assert f"`f2x2` runs at {min(ratios):.2g}x to {max(ratios):.2g}x the speed of our implicit GEMM" in chapter()


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
        assert max(speeds[row["problem"]].values()) < 96, "passes 96 TFLOP/s"


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
    assert tile_error(6, 3) / tile_error(4, 3) == pytest.approx(2, abs=0.2), "only doubles"


def test_what_is_said_of_the_points(monkeypatch):
    largest = {m: [abs(matrix.astype(float)).max() for matrix in conv.transforms(m, 3)] for m in (4, 6, 8)}
    assert [largest[m][2] for m in (4, 6)] == [5, 5.25]
    assert int(largest[8][2]) == 89 and largest[8][0] == 16384
    with_four = tile_error(8, 3)
    module = importlib.import_module("labkit.conv.winograd.transforms")
    monkeypatch.setattr(module, "POINTS", (*module.POINTS[:8], Fraction(-1, 4)))  # in place of -4
    assert with_four / tile_error(8, 3) == pytest.approx(5, abs=0.5), "some five times smaller"

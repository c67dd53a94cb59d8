"""Numbers that the chapter on direct convolution states in prose, held against records and counts."""

import inspect
import re
from pathlib import Path

import pytest

from labkit import conv, places, results, time_bound
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
STEPS = {step.slug: step for step in conv.ladder("direct")}


def chapter():
    return source(places.PACKAGE.parent / "notebooks", "direct-convolution").read_text()


def speeds():
    """Return TFLOP/s by layer, and in each by step or baseline."""
    numbers = [str(problem) for problem in STEPS["naive"].benched]
    speeds = {number: {} for number in range(1, len(numbers) + 1)}
    for row in results.load("conv_direct", "nvidia-h100-80gb-hbm3").select(dtype="float32"):
        layer = speeds[1 + numbers.index(row["problem"])]
        layer[row["step"]] = row["tflops"]
        layer[row["baseline"]] = row["tflops"] * row["time_ms"] / row["baseline_time_ms"]
    return speeds


def test_the_verdict_says_how_many_times_the_best_library_is_faster():
    factors = [
        max(layer["torch"], layer["torch.fft"], layer["cuDNN's search"]) / layer["naive"]
        for layer in speeds().values()
        if "naive" in layer
    ]
    assert f"is {min(factors):.0f}x to {max(factors):.0f}x faster than `naive`" in chapter()
    of_torch = [layer["torch"] / layer["naive"] for layer in speeds().values() if "naive" in layer]
    assert f"torch's pick {min(of_torch):.0f}x to {max(of_torch):.0f}x" in chapter()
    assert [number for number, layer in speeds().items() if "naive" in layer] == [1, 4, 5]
    assert all(0.7 < layer["naive"] < 1.2 for layer in speeds().values() if "naive" in layer), "about 1 TFLOP/s"


def test_what_is_said_of_the_steps_is_what_was_recorded():
    layers = speeds()
    assert layers[1]["coalesced"] / layers[1]["naive"] == pytest.approx(2, abs=0.05), "twice as fast"
    for number in (4, 5):
        assert layers[number]["coalesced"] / layers[number]["naive"] == pytest.approx(1, abs=0.02), "gains nothing"
        assert layers[number]["halo"] < 0.9 * layers[number]["naive"], "loses"
    assert all("halo" not in layers[number] for number in (1, 2, 3)), "was not measured on layer 1"
    for number in (2, 3, 4):
        assert layers[number]["cuDNN's search"] > 5 * layers[number]["torch"], "far apart"


def test_a_halo_pays_on_large_planes_where_many_taps_use_each_pixel():
    recorded = results.load("conv_planes", "nvidia-h100-80gb-hbm3")
    times = {}
    for row in recorded.rows:
        times.setdefault(row["problem"], {})[row["step"]] = row["time_ms"]
        assert row["problem"] in chapter()
    gains = {problem: of["coalesced"] / of["halo"] for problem, of in times.items()}
    assert {problem: round(gain, 1) for problem, gain in gains.items()} == {
        "8x3x128x128 96x11x11": 1.6,
        "8x64x112x112 64x3x3": 0.8,
        "8x16x224x224 16x3x3": 0.8,
    }
    assert all(of["registers"] < 0.3 * min(of["coalesced"], of["halo"]) for of in times.values()), "always pays"
    three_by_three = [of for problem, of in times.items() if problem.endswith("3x3")]
    assert all(of["naive"] < of["halo"] for of in three_by_three), "as the last appendix says"
    rows, columns, _ = STEPS["halo"].tile(conv.Forward(1, 1, 64, 64, 1, 11, 11))
    assert (-(-rows // 16)) * (-(-columns // 16)) == 4, "up to four pixels per thread"


def test_runs_of_the_baselines_differ_by_little():
    numbers = [str(problem) for problem in STEPS["naive"].benched]
    times = {}
    for record in ("conv_direct", "conv_im2col", "conv_implicit_gemm", "implicit_gemm_tf32", "conv_fft"):
        for row in results.load(record, "nvidia-h100-80gb-hbm3").select(dtype="float32", problem=numbers):
            if row["baseline"] in ("torch", "cuDNN's search"):
                times.setdefault((row["problem"], row["baseline"]), {})[record] = row["baseline_time_ms"]
    assert len(times) == 10 and all(len(of) == 5 for of in times.values())
    spread = max(max(of.values()) / min(of.values()) - 1 for of in times.values())
    assert 0.02 < spread < 0.03 and "which differ by less than 3%" in chapter()


@pytest.mark.parametrize(
    ("slug", "begin", "end"),
    [
        ("naive", 'show(steps["naive"])', "The check combines everything"),
        ("registers", "Deeper: what each thread computes", "</details>"),
    ],
)
def test_names_that_explain_a_listing_are_in_it(slug, begin, end):
    names = re.findall(r"`(\w+)`", chapter().partition(begin)[2].partition(end)[0])
    source = Path(inspect.getsourcefile(STEPS[slug].kernel.py_func)).read_text()
    assert len(names) > 2 and not [name for name in names if not re.search(rf"\b{name}\b", source)]


@pytest.mark.parametrize("channels", [2, 8])
def test_counts_per_product_do_not_depend_on_the_channels(channels):
    """The chapter counts with two channels, which is quick, and speaks of a large layer."""
    problem = conv.Forward(N=32, C=channels, H=36, W=36, K=128, R=5, S=5)
    found = {}
    for slug, step in STEPS.items():
        (trace,) = step.simulate(*problem.operands(), sample=2).traces
        counted, products = trace.counters, trace.counters.flops / 2
        found[slug] = [round(32 * counted.global_load_sectors / products, 1), time_bound(trace).limiter]
    assert found == {
        "naive": [18.6, "L1 look-ups"],
        "coalesced": [6.6, "L1 look-ups"],
        "halo": [0.4, "shared memory"],
        "registers": [0.0, "float32 arithmetic"],
    }


def test_the_hit_rate_of_naive_is_high():
    problem = conv.Forward(N=2, C=2, H=18, W=18, K=2, R=3, S=3)
    rates = {slug: STEPS[slug].simulate(*problem.operands()).traces[0].counters.l1_hit_rate for slug in STEPS}
    assert rates["naive"] > 0.8 and rates["naive"] > rates["halo"]


def test_a_depthwise_layer_moves_the_same_bytes_for_a_sixteenth_of_the_products():
    layer = dict(N=8, C=16, H=18, W=18, K=16, R=3, S=3)
    problems = [conv.Forward(**layer, groups=groups) for groups in (16, 1)]
    depthwise, dense = (STEPS["coalesced"].simulate(*problem.operands()).traces[0].counters for problem in problems)
    assert dense.flops == 16 * depthwise.flops
    assert dense.dram_bytes == pytest.approx(depthwise.dram_bytes, rel=0.05)

"""Roofs, ridge points and time bounds, against sums done by hand and against a GPU's recorded times."""

from dataclasses import replace

import numpy as np
import pytest

import labkit
from labkit import gemm, results
from labkit.forecast.roofline import attainable_tflops, intensity, peak_tflops, ridge_point, time_bound
from labkit.machine.gpus import gpu
from labkit.trace import ArrayInfo, Counters, Samples, Site, SiteCounters, Trace

H100 = gpu("H100 SXM")
EMPTY = Samples((), *(np.zeros(0, np.int64) for _ in range(4)), np.zeros((0, 32), np.int64))


def made(counters=None, sites=(), grid=(132, 1, 1), gpu="H100 SXM"):
    return Trace(
        kernel="k", source="", filename="k.py", first_line=1, grid=grid, block=(256, 1, 1), gpu=gpu,
        shared_bytes=0, outputs=(), arrays=(), sites=tuple(sites), counters=counters or Counters(),
        findings=(), samples=EMPTY,
    )  # fmt: skip


def site(space="global", **counts):
    return SiteCounters(Site(1, 0, "A", "load", space, "float32", "A[i]"), **counts)


def test_roof_is_memory_below_the_ridge_and_arithmetic_above():
    ridge = ridge_point("H100 SXM")
    assert ridge == pytest.approx(66.9e12 / 3350e9)
    assert attainable_tflops(H100, ridge / 2) == pytest.approx(66.9 / 2)
    assert attainable_tflops(H100, ridge * 50) == pytest.approx(66.9)
    assert attainable_tflops(H100, 1000, "float16 tensor") == pytest.approx(989.4)


def test_a_cpu_has_a_roof_too():
    assert peak_tflops("Ryzen 7 5800X") == pytest.approx(0.9728)
    assert attainable_tflops("Ryzen 7 5800X", 1.0) == pytest.approx(0.0512)


def test_intensity_is_flops_over_dram_bytes():
    assert intensity(made(Counters(flops=800, dram_read_bytes=150, dram_write_bytes=50))) == 4.0
    assert intensity(made(Counters(flops=800))) == float("inf")
    assert intensity(made()) == 0.0


@pytest.mark.parametrize(
    ("counters", "sites", "limiter", "time_ms"),
    [
        (Counters(dram_read_bytes=3_350_000_000), (), "DRAM bandwidth", 1.0),
        (Counters(l2_sectors=316_800_000), (), "L2 bandwidth", 1.0),
        (Counters(), [site(requests=10, sectors=4 * 261_360_000)], "L1 look-ups", 1.0),
        (Counters(), [site(requests=261_360_000, sectors=5)], "L1 look-ups", 1.0),
        (
            Counters(shared_load_wavefronts=261_000_000, shared_store_wavefronts=360_000),
            (),
            "shared memory",
            1.0,
        ),
        (
            Counters(flops=66_900_000_000, flops_by_dtype={"float32": 66_900_000_000}),
            (),
            "float32 arithmetic",
            1.0,
        ),
        (
            Counters(flops=33_500_000_000, flops_by_dtype={"float64": 33_500_000_000}),
            (),
            "float64 arithmetic",
            1.0,
        ),
    ],
)
def test_each_term_by_hand(counters, sites, limiter, time_ms):
    bound = time_bound(made(counters, sites))
    assert bound.limiter == limiter
    assert bound.time_ms == pytest.approx(time_ms, rel=1e-3)
    assert bound.terms[limiter] == bound.time_ms == max(bound.terms.values())


def test_l1_looks_up_each_line_that_a_warp_touches():
    index = np.stack([np.arange(32) * 64, np.arange(32)])  # a row apart, and side by side
    samples = Samples(((0, 0, 0),), *(np.zeros(2, np.int64) for _ in range(4)), index)
    array = ArrayInfo("A", "global", (64, 64), "float32", 4, (256, 4))
    trace = replace(
        made(sites=[site(requests=2 * 261_360_000, sectors=36 * 261_360_000)]),
        samples=samples,
        arrays=(array,),
    )
    assert time_bound(trace).terms["L1 look-ups"] == pytest.approx(32 + 1)


def test_shared_sites_do_not_load_l1():
    assert time_bound(made(sites=[site("shared", requests=1000, sectors=0)])).terms["L1 look-ups"] == 0


def test_a_grid_smaller_than_the_gpu_leaves_sms_idle():
    counted = Counters(flops=66_900_000_000, flops_by_dtype={"float32": 66_900_000_000}, dram_read_bytes=3350)
    whole, half = time_bound(made(counted)), time_bound(made(counted, grid=(66, 1, 1)))
    assert half.time_ms == pytest.approx(2 * whole.time_ms)
    assert half.terms["DRAM bandwidth"] == whole.terms["DRAM bandwidth"]


def test_another_gpu_can_be_asked_for():
    counted = made(Counters(dram_read_bytes=3_200_000_000))
    assert time_bound(counted, "T4").time_ms == pytest.approx(10.0)
    assert time_bound(counted, "T4").gpu == "T4"


def test_the_text_shows_the_sums():
    text = str(time_bound(made(Counters(dram_read_bytes=3_350_000_000))))
    assert "at least 1 ms on H100 SXM, limited by DRAM bandwidth" in text
    assert "3,350,000,000 bytes / 3350 GB/s" in text


def test_an_idle_launch_has_no_limiter():
    assert time_bound(made()).limiter == "nothing that was counted"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ridge_point("H100"), "no GPU or CPU called 'H100'"),
        (
            lambda: peak_tflops("T4", "float8 tensor"),
            "T4 has no published 'float8 tensor' peak; choose one of float64",
        ),
        (lambda: time_bound(replace(made(), gpu="Ryzen 7 5800X")), "no GPU called 'Ryzen"),
    ],
)
def test_wrong_names_get_one_sentence(call, words):
    with pytest.raises((KeyError, ValueError), match=words):
        call()


@pytest.mark.parametrize("slug", ["naive", "coalesced", "tiled"])
def test_the_bound_is_close_to_what_an_h100_took(slug):
    """These kernels keep one unit of the SM busy all the time, so the floor is where they run."""
    step = gemm.step("fp32", slug)
    A, B = np.random.default_rng(0).standard_normal((2, 256, 256), np.float32)
    trace = labkit.simulate(step.kernel, *step.geometry(256, 256), A, B, np.zeros_like(A))
    bound_tflops = trace.counters.flops / time_bound(trace).time_ms / 1e9
    row = results.load("gemm", "nvidia-h100-80gb-hbm3").select(step=slug, problem="4096x4096x4096")[0]
    assert row["tflops"] == pytest.approx(bound_tflops, rel=0.1)

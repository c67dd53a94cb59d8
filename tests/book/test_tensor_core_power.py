"""What chapters say of clocks, power, the bits of operands and waiting warps is what the records have."""

import pytest

from labkit import places, results
from labkit.book.contents import source
from labkit.machine.gpus import GPUS

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")
H100 = "nvidia-h100-80gb-hbm3"
FLOP_PER_CYCLE = 4096  # of an SM in 16 bits: H100 white paper, 2022


def prose(slug):
    return source(places.PACKAGE.parent / "notebooks", slug).read_text(encoding="utf-8")


def measured(**where):
    (row,) = results.load("tensor_cores", H100).select(**where)
    return row


def test_mma_without_memory_is_limited_by_its_rate():
    text, peak = prose("feeding-tensor-cores"), GPUS["H100 SXM"].peak_tflops["bfloat16 tensor"]
    mma, wgmma = (measured(step=step, dtype="bfloat16", operands="zeros") for step in ("mma", "wgmma"))
    assert round(mma["tflops"] / peak, 2) == 0.66, "two thirds of the peak at most"
    assert f"`wgmma` up to {wgmma['tflops'] / peak:.0%}" in text
    assert f"highest clock, {mma['clock_mhz']:,.0f} MHz, and draws {mma['power_w']:.0f} W" in text


def test_the_clock_costs_most_of_what_is_missing():
    text, gpu = prose("hopper-gemm"), GPUS["H100 SXM"]
    row = measured(step="persistent", dtype="bfloat16", operands="7 bits")
    possible = gpu.sms * FLOP_PER_CYCLE * row["clock_mhz"] / 1e6
    peak = round(gpu.peak_tflops["bfloat16 tensor"])
    done = round(row["tflops"])
    assert f"`persistent` does {done} TFLOP/s, and the H100 lowers its clock to {row['clock_mhz']:,.0f} MHz" in text
    assert f"at most {possible:.0f} TFLOP/s" in text
    assert f"costs {peak - round(possible)} of the {peak - done} TFLOP/s" in text
    assert f"For all other causes {round(possible) - done} remain." in text


def test_the_same_bits_are_equally_fast_in_both_formats():
    text = prose("hopper-gemm")
    bf16, few, many, zeros = (
        measured(step="persistent", dtype=dtype, operands=operands)
        for dtype, operands in (
            ("bfloat16", "7 bits"), ("float16", "7 bits"), ("float16", "10 bits"), ("float16", "zeros")
        )
    )  # fmt: skip
    assert f"float16 reaches {few['tflops']:.0f} TFLOP/s and bfloat16 {bf16['tflops']:.0f}" in text
    assert f"With its 10 bits, float16 is {1 - many['tflops'] / few['tflops']:.0%} slower" in text
    assert f"to {few['clock_mhz']:,.0f} MHz with 7 bits, to {many['clock_mhz']:,.0f} MHz with 10 bits" in text
    assert f"In float16 zeros draw {zeros['power_w']:.0f} W, and the clock is {zeros['clock_mhz']:,.0f} MHz" in text
    assert {round(row["power_w"], -2) for row in (bf16, few, many)} == {700}
    bf16_zeros = measured(step="persistent", dtype="bfloat16", operands="zeros")
    assert f"with zeros float16 is {1 - zeros['tflops'] / bf16_zeros['tflops']:.0%} slower than bfloat16" in text
    assert max(zeros["power_w"], bf16_zeros["power_w"]) < 500, "neither reaches 700 W"


def test_what_warps_wait_for_is_recorded():
    def percent(step, *states):
        rows = results.load("stalls", H100).select(step=step, state=list(states))
        return round(sum(row["percent"] for row in rows))

    text, memory = prose("feeding-tensor-cores"), percent("pipelined", "global memory", "shared memory")
    assert f"the tensor cores are busy in only {percent('pipelined', 'busy')}% of the cycles" in text
    assert f"its warps wait for global or shared memory only {memory}% of the time" in text
    assert percent("pipelined", "arithmetic units", "an earlier instruction") > 50
    assert percent("tuned", "issue an instruction", "ready, another warp issues") == 75, "three quarters"
    assert "in three quarters of the time, a warp issues or could issue" in prose("register-tiles")

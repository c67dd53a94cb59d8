"""Figures of the chapter on batch norm, and of its neighbour, that their prose takes from records."""

import pytest

from labkit import places, results
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")

H100 = "nvidia-h100-80gb-hbm3"
LARGE, WIDE = "64x256x56x56", "32x64x112x112"


def read(slug):
    return source(places.PACKAGE.parent / "notebooks", slug).read_text(encoding="utf-8")


def torch_kernels(problem, layout):
    """Return the rows of torch's two kernels: batch norm, then ReLU."""
    return results.load("torch_kernels", H100).select(problem=problem, layout=layout)


def test_torch_launches_a_batch_norm_of_one_block_per_channel_and_a_relu():
    text = read("batchnorm-fused")
    (large, large_relu), (wide, wide_relu) = (torch_kernels(problem, "NCHW") for problem in (LARGE, WIDE))
    for row in (large, wide):
        assert "cudnn::bn_fw_tr_1C11_kernel_NCHW" in row["kernel"]
    for row in (large_relu, wide_relu):
        assert "clamp_scalar" in row["kernel"]  # of ReLU
    assert f"it has {large['blocks']} blocks and takes {large['time_ms']:.3f} ms" in text
    assert f"only {wide['blocks']} blocks for 132 SMs: {wide['time_ms']:.3f} ms" in text
    assert f"the time of a copy, {large_relu['time_ms']:.3f} ms and {wide_relu['time_ms']:.3f} ms" in text


def test_torch_launches_another_batch_norm_in_channels_last():
    large, wide = (torch_kernels(problem, "NHWC")[0] for problem in (LARGE, WIDE))
    for row in (large, wide):
        assert "cudnn::batchnorm_fwtr_nhwc_semiPersist" in row["kernel"] and row["blocks"] == 264
    nchw_ms, nhwc_ms = torch_kernels(WIDE, "NCHW")[0]["time_ms"], wide["time_ms"]
    assert f"It takes {large['time_ms']:.3f} ms, and {nhwc_ms:.3f} ms on" in read("batchnorm-fused")
    assert f"even gains: {nhwc_ms:.3f} ms instead of {nchw_ms:.3f} ms" in read("layouts-nhwc")


def test_layer_norm_takes_little_more_than_rms_norm():
    rows = results.load("norm_rows", H100).select(dtype="bfloat16", step="on_chip", baseline="copy")
    times_ms = {row["problem"]: row["time_ms"] for row in rows}
    copies_ms = {row["problem"]: row["baseline_time_ms"] for row in rows}
    narrow, wide = "16384x4096", "4096x16384"
    more = [f"{times_ms[f'{shape} layer'] / times_ms[f'{shape} rms'] - 1:.0%}" for shape in (narrow, wide)]
    text = read("batchnorm-fused")
    assert "`on_chip` takes {} and {} longer for it".format(*more) in text
    slowest = min(copies_ms[f"{shape} layer"] / times_ms[f"{shape} layer"] for shape in (narrow, wide))
    assert "keep 90% of a copy's speed" in text and 0.9 <= slowest < 0.92

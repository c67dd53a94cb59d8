"""Figures of the chapter on rooflines that its prose takes from records and data sheets."""

import pytest

from labkit import gpu, peak_tflops, places, results
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")


@pytest.fixture(scope="module")
def chapter():
    return source(places.PACKAGE.parent / "notebooks", "roofline").read_text(encoding="utf-8")


def test_measured_bandwidths(chapter):
    record = results.load("bandwidth", "nvidia-h100-80gb-hbm3")
    (l2,) = [row["gb_s"] / 1000 for row in record.select(level="L2", bytes=32 * 2**20)]
    dram = [row["gb_s"] / 1000 for row in record.select(level="DRAM")]
    assert f"Measured: {l2:.1f} TB/s for 32 MiB" in chapter and f"reached {l2:.1f} TB/s" in chapter
    assert f"Measured with the same kernel: {min(dram):.1f} to {max(dram):.1f} TB/s" in chapter


def test_assumed_bandwidth_of_l2_and_the_ridge_of_float8(chapter):
    h100 = gpu("H100 SXM")
    assumed = f"{h100.l2_bytes_per_clock:,} bytes per cycle, {h100.l2_bytes_per_clock * h100.clock_ghz / 1000:.1f} TB/s"
    assert assumed in chapter
    ridge = 1000 * peak_tflops(h100, "float8 tensor") / h100.dram_gb_s
    assert f"ridge is therefore at {ridge:.0f} FLOP/byte" in chapter

"""The descriptor's bits follow from the address of the run, and the slots are those that the swizzle gives."""

import numpy as np
import pytest

import labkit
from labkit import cuda, gemm
from labkit.views import descriptor


@pytest.fixture(scope="module")
def trace():
    A, B = (np.zeros((rows, 320), np.uint16) for rows in (128, 256))
    return gemm.step("tensor", "wgmma").simulate(A, B, np.zeros((128, 256), np.uint16)).traces[0]


@pytest.fixture(scope="module")
def view(trace):
    return descriptor(trace)


def test_operands_are_those_of_the_warpgroups(view):
    assert view.data["names"] == ["A_tiles, warpgroup 1", "A_tiles, warpgroup 2", "B_tiles, all warpgroups"]
    upper, lower, right = (choice["addresses"] for choice in view.data["kept"])
    assert [below - above for above, below in zip(upper, lower)] == [64 * 128] * 20  # rows 64 and up
    assert right[0] - upper[0] == 4 * 128 * 128  # past the ring of A


def test_only_the_start_address_changes(view):
    addresses = view.data["addresses"]
    assert np.diff(addresses[:5]).tolist() == [32, 32, 32, 128 * 128 - 96]  # along k, then the next stage
    assert addresses[16:] == addresses[:4]  # the fifth tile of k is in the first stage again
    for address, bits in zip(addresses, view.data["bits"]):
        assert int(bits, 2) == 0x4000_0040_0001_0000 | address >> 4
    assert view.data["say"][1] == (
        "Product **2** reads `A_tiles` (warpgroup 1) from byte **1,056** of shared memory on: "
        "32 bytes after the product before."
    )
    start, *_, swizzle = view.data["fields"]
    assert start["words"][1] == "66 x 16 = byte 1,056" and swizzle["words"][1] == "1: 128 bytes"


def test_slots_are_swizzled(view):
    for step, rows in enumerate(view.data["slots"]):
        first = 2 * (step % 4)
        assert rows == [[first ^ row, (first + 1) ^ row] for row in range(8)]


def test_a_still_picture_and_what_is_refused(view, tmp_path):
    view.save_png(tmp_path / "view.png", step=5)
    assert (tmp_path / "view.png").stat().st_size > 10_000

    @cuda.jit
    def copied(x, out):
        out[cuda.threadIdx.x] = x[cuda.threadIdx.x]

    x = np.zeros(32, np.float32)
    with pytest.raises(ValueError, match="this run multiplies none"):
        descriptor(labkit.simulate(copied, 1, 32, x, x.copy()))

"""Kernels of the fft ladder for each side of tiles and each tile of the product assemble without spills."""

import re

import numpy as np
import pytest
from argument_types import argument_type
from assembler import assembled, ptx_for_the_oldest
from sampling import sampled

from labkit.arrays.workspace import Workspace
from labkit.conv.fft import product, s01_whole, s02_tiled, s06_few_taps
from labkit.conv.fft.problem import SpectralForward

pytestmark = [pytest.mark.needs("numba-cuda", "toolkit"), pytest.mark.long]
OPERANDS = SpectralForward(1, 1, 8, 8, 1, 3, 3).operands()
TILES = [(rows, cols, steps) for rows in (64, 128) for cols in (16, 32, 64) for steps in (8, 16)]


def without_spills(kernel, arguments, most_registers, folder):
    code, (*_, newest) = ptx_for_the_oldest(kernel, [argument_type(argument) for argument in arguments])
    report, _ = assembled(code, newest, folder)
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    assert int(re.search(r"Used (\d+) registers", report)[1]) <= most_registers


@pytest.mark.parametrize("side", s02_tiled.SIDES)
@pytest.mark.sample(1)
def test_transforms_of_tiles(side, tmp_path):
    forth, _, _, back = s02_tiled.launches(*OPERANDS, Workspace(), side)
    for launch in (forth, back):
        without_spills(launch.kernel, launch.arguments, 65536 // (3 * s02_tiled.THREADS), tmp_path)


@pytest.mark.parametrize("tile", sampled(TILES, 1), ids=str)
def test_products(tile, tmp_path):
    kernel, *_ = product._specialise(*tile)
    without_spills(kernel, (*[np.zeros((1, 1, 1), np.float32)] * 3, 1, 1, 1), 128, tmp_path)


@pytest.mark.parametrize("side", [64, 128])
@pytest.mark.sample(1)
def test_transforms_of_whole_images(side, tmp_path):
    forth, _, _, back = s01_whole.launches(*OPERANDS, Workspace())
    for kernel, launch in ((s01_whole.whole, forth), (s01_whole.inverse, back)):
        without_spills(s01_whole._specialise(kernel, side), launch.arguments, 255, tmp_path)


@pytest.mark.parametrize("taps", [1, 3, 9, 11])
@pytest.mark.sample(2)
def test_spectra_of_few_taps_stay_in_registers(taps, tmp_path):
    launch, *_ = s06_few_taps.launches(*OPERANDS, Workspace())
    code, (*_, newest) = ptx_for_the_oldest(
        s06_few_taps._specialise(64, taps, taps), [argument_type(argument) for argument in launch.arguments]
    )
    assert "0 bytes stack frame" in assembled(code, newest, tmp_path)[0]

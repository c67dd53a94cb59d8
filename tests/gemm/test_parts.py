"""Parts of a product along k are added in a fixed order, and rounded once."""

import numpy as np
import pytest

from labkit.forecast import sass
from labkit.formats import BF16, FP16, FP32
from labkit.gemm.parts import add_parts_launch
from labkit.simulator.in_place import simulate_in_place


@pytest.mark.parametrize("shape", [(1, 1, 4), (2, 37, 44), (1, 300, 1024)], ids=str)
@pytest.mark.parametrize("count", [2, 5, 37])
@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
@pytest.mark.sample(6)
def test_parts_are_added(format, count, shape):
    rng = np.random.default_rng(count)
    parts = rng.standard_normal((count, *shape)).astype(np.float32)
    C = format.encode(rng.standard_normal((*shape[:2], shape[2] - 1)))
    expected = 0.5 * parts.sum(axis=0, dtype=float)[..., :-1] - 2 * format.decode(C)
    one = add_parts_launch(parts, C, C, 0.5, -2.0, format)
    trace = simulate_in_place(one.kernel, one.grid, one.block, *one.arguments)
    assert trace.errors == ()
    assert np.abs(format.decode(C) - expected).max() <= (format.rounding + count * 2.0**-23) * np.abs(expected).max()


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize("count", [2, 64])
@pytest.mark.sample(1)
def test_the_kernel_assembles_without_spills(count):
    parts, C = np.zeros((count, 1, 64, 64), np.float32), np.zeros((64, 64), np.uint16)
    one = add_parts_launch(parts, C, C, 1.0, 0.0, BF16)
    assert sass.compiled(one.kernel, *one.arguments, compute_capability=(9, 0)).spill_bytes == 0

"""Powers of two: every kind of number, and those too small."""

import numpy as np
import pytest
from cells import kernel_in

import labkit
from labkit import ptx
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "q = int(ptx.exp2(q))": (7, 5),
}

POWERS = """
@cuda.jit
def powers(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = ptx.exp2(x[i])
"""


def powers(x):
    trace = labkit.simulate(kernel_in(POWERS, ptx=ptx), -(-x.size // 64), 64, x, np.zeros(x.size, np.float32))
    assert not trace.errors
    return trace.outputs[1]


def test_powers_are_right_to_22_bits():
    x = np.linspace(-125.9, 127.9, 1000, dtype=np.float32)
    exact = np.exp2(x.astype(np.float64))
    assert np.abs(powers(x) - exact).max() <= (2.0**-22 * exact).max()
    assert (np.abs(powers(x) / exact - 1) < 2.0**-22).all()


def test_what_is_too_small_is_zero_and_what_is_too_large_infinite():
    x = np.array([-126, -126.5, -140, -np.inf, 0, -0.0, 1e-40, 128, np.inf, np.nan], np.float32)
    assert np.array_equal(powers(x), np.array([2.0**-126, 0, 0, 0, 1, 1, 1, np.inf, np.inf, np.nan]), equal_nan=True)


def test_other_numbers_become_float32():
    assert np.array_equal(powers(np.array([3, 10], np.int32)), [8, 1024])
    with pytest.raises(KernelError, match="`ptx.exp2` needs one number"):
        labkit.simulate(kernel_in(POWERS.replace("x[i])", "x)"), ptx=ptx), 1, 32, np.zeros(4), np.zeros(4))

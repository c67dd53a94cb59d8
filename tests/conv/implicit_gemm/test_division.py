"""Division by multiply-high: right for every divisor from 1 to 2**31 and every dividend below 2**31."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit import cuda
from labkit.parts.division import DIVIDEND_LIMIT, fast_divide, make_divisor


@cuda.jit
def by_one(n, by, out):
    i = cuda.grid(1)
    if i < n.size:
        out[i] = fast_divide(n[i], by)


def hard_dividends(by):
    """Those next to multiples of the divisor, where a multiplier that is off shows first, and both ends."""
    multiples = [by * k for k in (1, 2, 3, (DIVIDEND_LIMIT - 1) // by, (DIVIDEND_LIMIT - 1) // by // 2)]
    near = {n + d for n in multiples for d in (-1, 0, 1)} | {0, 1, DIVIDEND_LIMIT - 1, DIVIDEND_LIMIT - 2}
    return np.array(sorted(n for n in near if 0 <= n < DIVIDEND_LIMIT), np.uint32)


def in_python(n, by):
    """Divide as the kernel does, in integers of any size: nothing may exceed the kernel's 32 bits."""
    assert int(by.multiplier) < 2**32 and 0 <= int(by.shift) < 32 and 2 * n < 2**32
    return (2 * n * int(by.multiplier) >> 32) >> int(by.shift)


@settings(max_examples=2000, deadline=None)
@given(st.integers(1, DIVIDEND_LIMIT), st.integers(0, DIVIDEND_LIMIT - 1))
def test_a_quotient_is_right(by, n):
    for dividend in (n, *map(int, hard_dividends(by))):
        assert in_python(dividend, make_divisor(by)) == dividend // by


def test_every_small_divisor_and_every_power_of_two_and_its_neighbours():
    powers = {2**e + d for e in range(32) for d in (-1, 0, 1)}
    for by in sorted({*range(1, 3000), *powers}):
        if 1 <= by <= DIVIDEND_LIMIT:
            assert all(in_python(int(n), make_divisor(by)) == n // by for n in hard_dividends(by)), by


@pytest.mark.parametrize(
    "by", [1, 2, 3, 7, 9, 121, 641, 12544, 65535, 65537, 2**30 + 1, DIVIDEND_LIMIT - 1, DIVIDEND_LIMIT]
)
def test_a_kernel_divides_so(by):
    n = hard_dividends(by)
    trace = labkit.simulate(by_one, 1, 32, n, make_divisor(by), np.zeros(n.size, np.uint32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[-1], n // np.uint32(by))


@pytest.mark.needs("numba-cuda", "toolkit")
def test_it_takes_one_multiplication_and_no_call(tmp_path):
    from labkit.forecast import sass

    code = sass.compiled(by_one, np.zeros(1, np.uint32), make_divisor(7), np.zeros(1, np.uint32))
    names = [instruction.name for instruction in code.instructions]
    assert sum(name.startswith(("IMAD.HI", "IMAD.WIDE.U32")) for name in names) <= 4  # with those of the addresses
    assert not any(name.startswith(("CALL", "MUFU", "I2F")) for name in names)


@pytest.mark.parametrize("by", [0, -3, DIVIDEND_LIMIT + 1])
def test_a_divisor_that_does_not_fit_is_refused(by):
    with pytest.raises(ValueError, match=f"{by} divides no numbers here: give one from 1 to 2147483648"):
        make_divisor(by)

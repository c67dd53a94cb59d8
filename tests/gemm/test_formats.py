"""Rounding to the formats of tensor cores, held against definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import ptx
from labkit.gemm import formats

ALL = {"bf16": ptx.BF16, "fp16": ptx.FP16, "tf32": ptx.TF32, "e4m3": ptx.E4M3}
FRACTION_BITS = {ptx.BF16: 7, ptx.FP16: 10, ptx.E4M3: 3}


@pytest.mark.parametrize("number", [ptx.BF16, ptx.FP16, ptx.E4M3])
@given(st.floats(2.0**-6, 448, width=32), st.booleans())
def test_rounding_is_to_the_nearest(number, size, negative):
    value = -size if negative else size
    rounded = formats.decode(formats.encode(np.array([value]), number), number)[0]
    ulp = 2.0 ** (np.floor(np.log2(size)) - FRACTION_BITS[number])
    assert abs(rounded - value) <= ulp / 2


@pytest.mark.parametrize("number", ALL.values(), ids=ALL)
def test_a_value_of_the_format_stays(number):
    values = formats.decode(formats.encode(np.random.default_rng(0).standard_normal(1000), number), number)
    assert (formats.decode(formats.encode(values, number), number) == values).all()


def test_ties_go_to_even():
    assert formats.encode(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8]), ptx.BF16).tolist() == [0x3F80, 0x3F82]
    assert formats.encode(np.array([1 + 2.0**-4, 1 + 3 * 2.0**-4]), ptx.E4M3).tolist() == [0x38, 0x3A]


def test_every_e4m3_number_comes_back_and_larger_ones_saturate():
    bits = np.array([b for b in range(256) if b & 127 != 127], np.uint8)
    assert (formats.encode(formats.decode(bits, ptx.E4M3), ptx.E4M3) == bits).all()
    assert formats.decode(formats.encode(np.array([1e6, -1e6]), ptx.E4M3), ptx.E4M3).tolist() == [448, -448]
    assert formats.decode(np.array([0x08, 0x01, 0x7E], np.uint8), ptx.E4M3).tolist() == [2.0**-6, 2.0**-9, 448]


def test_nan_stays_nan():
    for number in ALL.values():
        assert np.isnan(formats.decode(formats.encode(np.array([np.nan]), number), number)).all()

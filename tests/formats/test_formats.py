"""Rounding to the formats of tensor cores, held against definitions."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import ptx
from labkit.formats import BF16, E4M3, FORMATS, FP16, FP32, TF32, format_named


@pytest.mark.parametrize("format", [BF16, FP16, E4M3])
@given(st.floats(2.0**-6, 448, width=32), st.booleans())
def test_rounding_is_to_the_nearest(format, size, negative):
    value = -size if negative else size
    rounded = format.decode(format.encode(np.array([value])))[0]
    ulp = 2.0 ** (np.floor(np.log2(size)) - format.fraction_bits)
    assert abs(rounded - value) <= ulp / 2


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_a_value_of_the_format_stays(format):
    values = format.decode(format.encode(np.random.default_rng(0).standard_normal(1000)))
    assert (format.decode(format.encode(values)) == values).all()


def test_ties_go_to_even():
    assert BF16.encode(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8])).tolist() == [0x3F80, 0x3F82]
    assert E4M3.encode(np.array([1 + 2.0**-4, 1 + 3 * 2.0**-4])).tolist() == [0x38, 0x3A]


@pytest.mark.parametrize("format", [FP32, FP16, BF16, E4M3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_float64_is_rounded_once(format, sign):
    """Just beside a tie, by less than float32 can tell."""
    ulp, beside = 2.0**-format.fraction_bits, 2.0**-50 * np.array([-1, 1, -1, 1])
    given = sign * (1 + ulp * np.array([0.5, 0.5, 1.5, 1.5]) + beside)
    expected = sign * (1 + ulp * np.array([0, 1, 1, 2]))
    assert format.decode(format.encode(given)).tolist() == expected.tolist()
    assert format.decode(format.encode(given[1])) == expected[1]  # a single number


def test_what_lies_beyond_float32_becomes_what_a_format_has_for_it():
    assert BF16.decode(BF16.encode(np.array([1e300, -1e300, 1e-300, np.inf]))).tolist() == [np.inf, -np.inf, 0, np.inf]
    assert E4M3.decode(E4M3.encode(np.array([1e300, -1e-300]))).tolist() == [448, 0]
    assert BF16.encode(np.array([3, -5])).tolist() == BF16.encode(np.array([3.0, -5.0])).tolist()


def test_every_e4m3_number_comes_back_and_larger_ones_saturate():
    bits = np.array([b for b in range(256) if b & 127 != 127], np.uint8)
    assert (E4M3.encode(E4M3.decode(bits)) == bits).all()
    assert E4M3.decode(E4M3.encode(np.array([1e6, -1e6]))).tolist() == [448, -448]
    assert E4M3.decode(np.array([0x08, 0x01, 0x7E], np.uint8)).tolist() == [2.0**-6, 2.0**-9, 448]


def test_nan_stays_nan():
    for format in FORMATS.values():
        assert np.isnan(format.decode(format.encode(np.array([np.nan])))).all()


def test_kernels_and_formats_have_the_same_numbers():
    assert [BF16.number, FP16.number, TF32.number, E4M3.number] == [ptx.BF16, ptx.FP16, ptx.TF32, ptx.E4M3]
    assert FP32.number not in range(5)


def test_tf32_is_no_float32():
    assert TF32 != FP32 and TF32.dtype == FP32.dtype
    assert (TF32.result, E4M3.result, BF16.result) == (FP32, BF16, BF16)
    assert format_named("tf32") is TF32
    for wrong in ("fp4", ["fp4"], 4):
        with pytest.raises(ValueError, match=re.escape(f"there is no format {wrong!r}; there are float32, tf32")):
            format_named(wrong)

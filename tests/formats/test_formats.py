"""Rounding to number formats, held against definitions."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.formats import BF16, E4M3, E5M2, E8M0, FORMATS, FP16, FP32, INT8, INT32, TF32, format_named


@pytest.mark.parametrize("format", [BF16, FP16, E4M3, E5M2], ids=str)
@given(st.floats(2.0**-6, 448, width=32), st.booleans())
def test_rounding_is_to_the_nearest(format, size, negative):
    value = -size if negative else size
    rounded = format.decode(format.encode(np.array([value])))[0]
    ulp = 2.0 ** (np.floor(np.log2(size)) - format.fraction_bits)
    assert abs(rounded - value) <= ulp / 2


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_a_value_of_the_format_stays(format):
    values = format.decode(format.encode(np.random.default_rng(0).standard_normal(1000)))
    assert np.array_equal(format.decode(format.encode(values)), values, equal_nan=True)


def test_ties_go_to_even():
    assert BF16.encode(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8])).tolist() == [0x3F80, 0x3F82]
    assert E4M3.encode(np.array([1 + 2.0**-4, 1 + 3 * 2.0**-4])).tolist() == [0x38, 0x3A]
    assert INT8.encode(np.array([-0.5, 0.5, 1.5, 2.5, -2.5])).tolist() == [0, 0, 2, 2, -2]


@pytest.mark.parametrize("format", [FP32, FP16, BF16, E4M3, E5M2], ids=str)
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


@pytest.mark.parametrize("format", [FP32, TF32, FP16, BF16, E4M3, E5M2, E8M0], ids=str)
def test_nan_stays_nan(format):
    array = format.encode(np.array([np.nan, 1.0, -np.nan]))
    assert np.isnan(format.decode(array)).tolist() == format.is_nan(array).tolist() == [True, False, True]


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_nan_is_told_for_all_bits(format):
    bits = np.random.default_rng(0).integers(0, 256, (4, 4096 * format.itemsize)).astype(np.uint8).view(format.dtype)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(format.is_nan(bits), np.isnan(format.decode(bits)))


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_the_largest_number_stays_and_what_is_larger_is_no_number_below_it(format):
    values = np.array([format.largest, 2 * format.largest])
    largest, beyond = format.decode(format.encode(values))
    assert largest == format.largest and beyond in (format.largest, np.inf)


def test_whole_numbers_end_at_the_ends_of_their_range():
    assert INT8.encode(np.array([1e300, -1e300, np.inf, -np.inf, np.nan])).tolist() == [127, -128, 127, -128, 0]
    assert INT32.encode(np.array([2.0**31, -(2.0**31), 2.0**40])).tolist() == [2**31 - 1, -(2**31), 2**31 - 1]


def test_scales_are_powers_of_two():
    codes = E8M0.encode(np.array([1, 2.0**-127, 2.0**127, 2.9, 3, 3.1, 6, 0, np.inf, -1, 1e-300]))
    assert codes.tolist() == [127, 0, 254, 128, 128, 129, 130, 0, 254, 255, 0]
    assert np.array_equal(E8M0.decode(codes[:6]), [1, 2.0**-127, 2.0**127, 2, 2, 4])


def test_a_format_is_the_same_in_another_process():
    for format in FORMATS.values():
        found = pickle.loads(pickle.dumps(format))
        assert found == format and hash(found) == hash(format) and found.result == format.result
        assert str(found) == format.name


def test_tf32_is_no_float32():
    assert TF32 != FP32 and TF32.dtype == FP32.dtype
    assert (TF32.result, E4M3.result, BF16.result, INT8.result) == (FP32, BF16, BF16, INT32)
    assert format_named("tf32") is TF32
    for wrong in ("fp4", ["fp4"], 4):
        with pytest.raises(ValueError, match=re.escape(f"there is no format {wrong!r}; there are float32, tf32")):
            format_named(wrong)


def test_tensor_cores_cut_float32_off_behind_ten_bits():
    bits = np.array([0x3F801FFF, 0xC0003000, 0x00002000], np.uint32)
    multiplied = TF32.multiplied_values(bits.view(np.float32))
    assert multiplied.view(np.uint32).tolist() == [0x3F800000, 0xC0002000, 0x00002000]
    assert (TF32.decode(bits.view(np.float32)) == bits.view(np.float32)).all()  # memory keeps all of them

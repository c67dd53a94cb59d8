"""Formats of 4 bits, two to a byte, and scales of blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.formats import E2M1, E4M3, E8M0, FORMATS, FP16, INT4

PACKED = {str(format): format for format in (E2M1, INT4)}
E2M1_NUMBERS = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]  # by their codes
SCALED = {f"{format} {name}": (format, name) for format in FORMATS.values() for name in format.block_scales}


def test_e2m1_has_sixteen_numbers():
    pairs = np.arange(0, 16, 2, dtype=np.uint8) | np.arange(1, 16, 2, dtype=np.uint8) << 4
    assert E2M1.decode(pairs).tolist() == E2M1_NUMBERS
    assert np.signbit(E2M1.decode(pairs)).tolist() == [False] * 8 + [True] * 8
    assert np.array_equal(E2M1.encode(np.array(E2M1_NUMBERS)), pairs)


def test_e2m1_takes_the_nearest_and_of_two_the_even_one():
    between = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, 6.5, 1e30, np.inf, np.nan]
    expected = [0, 1, 1, 2, 2, 4, 4, 6, 6, 6, 6, 6]
    assert E2M1.decode(E2M1.encode(np.array(between))).tolist() == expected
    negative = E2M1.decode(E2M1.encode(-np.array(between)))
    assert negative.tolist() == [*(-x for x in expected[:-1]), 6]  # NaN has no sign


@given(st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=2))
def test_no_number_of_e2m1_is_nearer(pair):
    found = E2M1.decode(E2M1.encode(np.array(pair)))
    for value, one in zip(pair, found):
        assert abs(one - value) == min(abs(number - value) for number in E2M1_NUMBERS)


def test_int4_has_sixteen_numbers():
    whole = np.arange(-8, 8)
    packed = INT4.encode(whole)
    assert packed.dtype == np.uint8 and packed.tolist() == [0x98, 0xBA, 0xDC, 0xFE, 0x10, 0x32, 0x54, 0x76]
    assert INT4.decode(packed).tolist() == whole.tolist() and not INT4.is_nan(packed).any()
    assert INT4.decode(INT4.encode(np.array([7.5, -8.5, 2.5, np.nan]))).tolist() == [7, -8, 2, 0]


@pytest.mark.parametrize("format", PACKED.values(), ids=PACKED)
def test_a_byte_holds_two_numbers_of_a_row(format):
    rows = np.random.default_rng(0).integers(-2, 3, (3, 5, 8)).astype(float)
    packed = format.encode(rows)
    assert packed.shape == (3, 5, 4) and format.numbers_per_element == 2 and format.bits == 4
    assert np.array_equal(format.decode(packed), rows)
    for wrong in (rows[..., :7], np.array(1.0)):
        with pytest.raises(ValueError, match="numbers of 4 bits in a row, and a byte holds two: make rows even"):
            format.encode(wrong)


@pytest.mark.needs("torch")
def test_numbers_lie_in_a_byte_as_torch_has_them():
    import torch

    assert E2M1.type_name == str(torch.float4_e2m1fn_x2).removeprefix("torch.")
    assert torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2).shape == (4,)


@pytest.mark.parametrize(("format", "name"), SCALED.values(), ids=SCALED)
def test_blocks_have_scales(format, name):
    """A block that is 1000 times as large as its neighbour does not cost that one its bits."""
    scales = format.block_scales[name]
    x = np.random.default_rng(0).standard_normal((4, 2 * scales.block))
    x[:, scales.block :] *= 1000
    codes, factors = scales.encode(x, format)
    assert codes.shape == (4, scales.block) and factors.shape == (4, 2)
    found = scales.decode(codes, factors, format)
    amax = np.repeat(np.abs(x).reshape(4, 2, -1).max(axis=-1), scales.block, axis=-1)
    assert (np.abs(found - x) <= amax / 4).all()  # of e2m1, half the step from 4 to 6, and what MX cuts off above 6
    with pytest.raises(ValueError, match=f"{scales.block} neighbours in a row share a scale"):
        scales.encode(x[:, 1:], format)


def test_the_scales_of_mx_and_nv():
    mx, nv = E2M1.block_scales["mx"], E2M1.block_scales["nv"]
    assert (mx.block, mx.format, nv.block, nv.format) == (32, E8M0, 16, E4M3)
    block = np.linspace(-7, 7, 32)  # of the exponent 2, which 6 has as well
    assert E8M0.decode(mx.encode(block, E2M1)[1]).tolist() == [1]
    assert E8M0.decode(mx.encode(block * 2.0**-5, E2M1)[1]).tolist() == [2.0**-5]
    assert E4M3.decode(nv.encode(block[:16] * 6 / 7, E2M1)[1]).tolist() == [1]
    assert INT4.block_scales["group"].format == FP16


def test_a_block_of_zeros_stays_zeros():
    for format, name in SCALED.values():
        scales = format.block_scales[name]
        for x in (np.zeros(scales.block), np.full(scales.block, 1e-300)):
            assert (scales.decode(*scales.encode(x, format), format) == 0).all()

"""float8_e4m3 and float8_e5m2: all codes, and rounding from every float32 that can make a difference."""

import numpy as np
import pytest

from labkit.formats import E4M3, E5M2, FP16


def every_rounding():
    """All signs, exponents and upper 7 bits of the fraction, with nothing, little or all ones below them."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    return np.concatenate([upper | below for below in np.uint32([0, 1, 0xFFFF])]).view(np.float32)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(("format", "most"), [(E4M3, 464.0), (E5M2, np.inf)], ids=["e4m3", "e5m2"])
def test_rounding_is_that_of_torch(format, most):
    """Beyond 464 versions of torch differ: e4m3 becomes NaN or 448 there."""
    import torch

    x = every_rounding()
    x = x[~(np.abs(x) > most)]
    kind = getattr(torch, format.type_name)
    theirs, ours = torch.from_numpy(x).to(kind).view(torch.uint8).numpy(), format.encode(x)
    nan = np.isnan(x)
    assert np.array_equal(ours[~nan], theirs[~nan])
    assert np.array_equal(format.decode(ours), torch.from_numpy(theirs).view(kind).float().numpy(), equal_nan=True)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("format", [E4M3, E5M2], ids=str)
def test_codes_stand_for_what_torch_says(format):
    import torch

    codes = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes).view(getattr(torch, format.type_name)).float().numpy()
    assert np.array_equal(format.decode(codes), theirs, equal_nan=True)
    assert np.array_equal(np.signbit(format.decode(codes))[~np.isnan(theirs)], np.signbit(theirs)[~np.isnan(theirs)])


def test_e5m2_is_the_upper_byte_of_a_float16():
    codes = np.arange(256, dtype=np.uint8)
    as_halves = (codes.astype(np.uint16) << 8).view(np.float16)
    assert np.array_equal(E5M2.decode(codes), FP16.decode(as_halves), equal_nan=True)
    assert np.array_equal(E5M2.is_nan(codes), np.isnan(as_halves))


def test_e5m2_has_infinities_and_reaches_them_as_ieee_754_says():
    beyond = 57344 + 4096  # half way to what would follow the largest number: the even code is that of infinity
    x = np.array([57344, np.nextafter(beyond, 0), beyond, 1e300, np.inf, -np.inf, -57344, np.nan, 2.0**-17, 2.0**-18])
    assert E5M2.encode(x).tolist() == [0x7B, 0x7B, 0x7C, 0x7C, 0x7C, 0xFC, 0xFB, 0x7F, 0, 0]
    assert E5M2.largest == 57344 and E5M2.decode(np.uint8([0x7C, 0xFC])).tolist() == [np.inf, -np.inf]

"""Errors of variances, held against data whose variance is known and against kernels that are known to fail."""

import numpy as np
import pytest

from labkit import norm
from labkit.views import variance_errors
from labkit.views.base import unpack

MEANS, SPREADS = (1.0, 1e3, 1e6), (0.5, 2.0)


def drawn(count=64):
    normal = np.random.default_rng(0).standard_normal(count)
    means, spreads = np.array(MEANS)[:, None, None], np.array(SPREADS)[:, None]
    return (means + spreads * normal).astype(np.float32)


@pytest.fixture(scope="module")
def of_kernels():
    x, found = drawn(), {}
    _, *beside = norm.BatchForward(4, 6, 4, 4).operands()
    images = np.ascontiguousarray(x.reshape(6, 4, 4, 4).swapaxes(0, 1))
    for slug in ("sums", "shifted"):
        operands = norm.ladder("batch").step(slug).simulate(images, *beside).operands
        found[slug] = operands[5].reshape(3, 2)
    return variance_errors(MEANS, SPREADS, x, found)


def test_errors_are_those_of_the_data_in_float64(of_kernels):
    data, exact = of_kernels.data, drawn().astype(float).var(2)
    np.testing.assert_allclose(unpack(data["exact"]), exact, rtol=1e-6)
    errors = np.abs(unpack(data["found"]).astype(float) / exact - 1)
    np.testing.assert_allclose(unpack(data["errors"]), np.minimum(errors, 1e4), atol=1e-6, rtol=1e-3)


def test_sums_lose_all_digits_and_shifted_sums_none(of_kernels):
    sums, shifted = unpack(of_kernels.data["digits"])
    assert sums[0, 1] >= 5 and sums[2].max() == 0
    assert shifted.min() >= 5
    assert of_kernels.sentence.startswith("sums has no digit right at ")
    lost = (sums == 0).mean()
    assert f"at {lost:.0%} of these" in of_kernels.sentence and "`shifted` " in of_kernels.data["say"]


def test_a_variance_that_is_half_off_has_no_digit_right():
    x = drawn()
    view = variance_errors(MEANS, SPREADS, x.tolist(), {"half": 1.5 * x.astype(float).var(2)})
    assert view.sentence.startswith("half has no digit right at 100%")


def test_the_number_line_has_the_data_and_the_numbers_of_float32(of_kernels):
    data = of_kernels.data
    np.testing.assert_allclose(unpack(data["spacing"]), [2.0**-23, 2.0**-14, 2.0**-4])
    away = unpack(data["away"]).astype(float)
    np.testing.assert_allclose(away[2, 1], drawn()[2, 1].astype(float) - 1e6)
    steps = (away[2, 1] - unpack(data["offset"])[2]) / unpack(data["spacing"])[2]
    np.testing.assert_array_equal(steps, np.round(steps))


def test_where_all_values_are_one_number_only_zero_is_right():
    x = np.full((1, 1, 8), 7, np.float32)
    found = {"right": np.zeros((1, 1), np.float32), "wrong": np.ones((1, 1), np.float32)}
    view = variance_errors([7.0], [0.1], x, found)
    assert unpack(view.data["digits"]).ravel().tolist() == [7, 0]
    nan = variance_errors([7.0], [0.1], drawn()[:1, :1], {"nan": np.full((1, 1), np.nan, np.float32)})
    assert unpack(nan.data["digits"]).item() == 0


def test_a_still_picture_and_what_is_refused(of_kernels, tmp_path):
    of_kernels.save_png(tmp_path / "errors.svg")
    assert (tmp_path / "errors.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match="3 x 2 places"):
        variance_errors(MEANS, SPREADS, drawn()[:2], {})
    with pytest.raises(ValueError, match="one to 4 kernels"):
        variance_errors(MEANS, SPREADS, drawn(), {})

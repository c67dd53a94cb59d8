"""Conversions: every element where its layout has it, and sizes that make none refused in a sentence."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit import layouts
from labkit.formats import BF16, FP16, FP32
from labkit.layouts import Conversion
from labkit.layouts.problem import LARGE, LAYOUTS
from layouts.some_conversions import conversions


def index_of(layout, vector, n, c, h, w):
    """Index of an element, by the layout's definition."""
    return {
        "NCHW": (n, c, h, w),
        "NHWC": (n, h, w, c),
        "NCHW_VECT_C": (n, c // vector, h, w, c % vector),
    }[layout]


@given(problem=conversions(), seed=st.integers(0, 100))
def test_every_element_is_where_the_target_has_it(problem, seed):
    x, y, _ = problem.operands(FP32, seed)
    found = problem.oracle(x)
    assert x.shape == problem.shape(problem.source) and found.shape == y.shape == problem.shape(problem.target)
    assert np.isnan(y).all()
    sizes = [range(size) for size in (problem.N, problem.C, problem.H, problem.W)]
    for position in product(*sizes):
        assert (
            found[index_of(problem.target, problem.vector, *position)]
            == x[index_of(problem.source, problem.vector, *position)]
        )
    assert np.count_nonzero(found) == np.count_nonzero(x)  # the rest is zero


def test_bits_stay_as_they_are():
    """A NaN with its payload, the sign of a zero, numbers below the least normal one."""
    problem = Conversion(1, 4, 2, 2)
    bits = np.uint32([0x7FC00123, 0xFFA00001, 0x80000000, 1, *range(12)]).reshape(1, 4, 2, 2)
    found = problem.oracle(bits.view(np.float32))
    assert (found.view(np.uint32) == bits.transpose(0, 2, 3, 1)).all()


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
def test_random_operands_are_finite_and_differ(format):
    x, y, _ = Conversion(2, 3, 20, 20).operands(format)
    values = format.decode(x)
    assert np.isfinite(values).all() and abs(values).max() < 2
    assert len(np.unique(x)) > 0.9 * x.size
    assert format.is_nan(y).all()


def test_what_moves_is_each_byte_read_once_and_written_once():
    assert Conversion(2, 5, 3, 4).min_bytes(FP32) == 2 * 4 * 120
    assert Conversion(2, 5, 3, 4, "NHWC", "NCHW_VECT_C").min_bytes(BF16) == 2 * (120 + 2 * 8 * 12)


def test_of_many_images_the_first_and_the_last_tell_the_error():
    problem = Conversion(2 * LARGE // 2**12, 64, 8, 8, "NHWC", "NCHW")
    x = np.arange(problem.N, dtype=np.float32)[:, None, None, None] + np.zeros((1, 8, 8, 64), np.float32)
    some, _, part = problem.checked_part((x, np.empty(problem.shape("NCHW"), np.float32), problem))
    assert some.shape == part.shape("NHWC") and [*some[:, 0, 0, 0]] == [0, problem.N - 1]
    assert Conversion(2, 3, 4, 5).checked_part(("x", "y", Conversion(2, 3, 4, 5)))[0] == "x"


@pytest.mark.parametrize(
    ("source", "target"), [("NCHW", "NCHW_VECT_C"), ("NCHW_VECT_C", "NCHW"), ("NHWC", "NCHW_VECT_C")]
)
def test_what_is_expected_of_a_part_is_a_part_of_what_is_expected(source, target, monkeypatch):
    monkeypatch.setattr("labkit.layouts.problem.LARGE", 0)
    problem = Conversion(5, 6, 3, 4, source, target)
    before = problem.operands()
    whole, part = problem.expected(before)[1], problem.expected(problem.checked_part(before))[1]
    assert np.array_equal(part.value, problem.checked_part((before[0], whole.value, problem))[1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"N": 0}, ValueError, "N is 0, but it must be at least 1"),
        ({"W": 2.5}, TypeError, "W is 2.5, but it must be a whole number"),
        ({"H": True}, TypeError, "H is True, but it must be a whole number"),
        ({"C": 2**31}, ValueError, "C is 2147483648, but it must be at least 1 and below 2147483648"),
        ({"source": "CHWN"}, ValueError, "there is no layout 'CHWN': say NCHW, NHWC or NCHW_VECT_C"),
        ({"target": None}, ValueError, "there is no layout None"),
        ({"vector": 8}, ValueError, "vector is 8, but NCHW_VECT_C has vectors of 4 or 32 channels"),
    ],
)
def test_what_is_no_conversion_is_refused(change, error, words):
    with pytest.raises(error, match=words):
        Conversion(**{"N": 1, "C": 2, "H": 3, "W": 4, **change})


def test_a_problem_says_what_it_is():
    assert str(Conversion(1, 2, 3, 4)) == "1x2x3x4 NCHW to NHWC"
    assert str(Conversion(1, 2, 3, 4, "NCHW_VECT_C", "NCHW", 32)) == "1x2x3x4 NCHW_VECT_C32 to NCHW"
    assert layouts.Conversion is Conversion and len({*LAYOUTS}) == 3

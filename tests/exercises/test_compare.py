from dataclasses import replace

import numpy as np
import pytest

from labkit.checking.compare import find_wrong_output
from labkit.checking.exercise import Launch
from labkit.checking.mistake import Mistake
from labkit.checking.unwritten import unwritten_array
from labkit.exercises.problems import expect

VALUE = np.arange(1.0, 25.0).reshape(4, 6)


@pytest.fixture
def launch():
    x = np.arange(3, dtype=np.float32)
    return Launch("a launch", (x, unwritten_array((4, 6)), 7), {1: expect(VALUE)})


def compared(launch, C, x=None):
    return find_wrong_output(launch, ["x", "C", "n"], [launch.args[0] if x is None else x, C.astype(np.float32), 7])


def test_a_right_output_is_right(launch):
    assert compared(launch, VALUE) is None


def test_a_nan_that_is_expected_is_right_and_no_number_is():
    value = np.array([1, np.nan])
    launch = Launch("a launch", (unwritten_array((2,)),), {0: expect(value)})
    assert find_wrong_output(launch, ["C"], [value.astype(np.float32)]) is None
    wrong = find_wrong_output(launch, ["C"], [np.array([1, 2], np.float32)])
    assert wrong.message == "C[1] is 2 and should be NaN. Every other element is right."


def test_one_wrong_element_is_named_with_both_values(launch):
    C = VALUE.copy()
    C[2, 3] = -1
    assert compared(launch, C).message == "C[2, 3] is -1 and should be 16. Every other element is right."


def test_whole_numbers_are_named_with_all_their_digits():
    launch = Launch("a launch", (unwritten_array((3,), np.uint32),), {0: expect(np.array([7.0, 613566756, 9]))})
    wrong = find_wrong_output(launch, ["quotients"], [np.array([7, 76695844, 9], np.uint32)])
    assert wrong.message == "quotients[1] is 76695844 and should be 613566756. Every other element is right."


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (np.s_[3:, :], " 6 of 24 elements are wrong: row 3."),
        (np.s_[:, 4:], " 8 of 24 elements are wrong: columns 4 and 5."),
        (np.s_[::2, ::2], " 6 of 24 elements are wrong: those of rows 0 and 2 that are in columns 0, 2 and 4."),
        (np.s_[:, :], " All 24 elements of C are wrong."),
    ],
)
def test_the_elements_that_are_wrong_are_named(launch, where, said):
    C = VALUE.copy()
    C[where] = 0
    assert said in compared(launch, C).message


def test_elements_that_all_hold_one_number_are_told_so(launch):
    begun = np.minimum(VALUE, 10)
    assert (
        "All wrong elements hold this number: is it one with which your code begins?" in compared(launch, begun).message
    )
    assert "hold this number" not in compared(launch, np.minimum(VALUE, 20)).message  # these are few


def test_infinities_are_told_with_what_makes_them(launch):
    empty = np.where(VALUE > 10, -np.inf, VALUE)
    assert (
        "All wrong elements are -inf: it comes from the logarithm of 0, or a start" in compared(launch, empty).message
    )


def test_a_whole_factor_is_asked_for(launch):
    assert "Is each term added 32 times, or a division by 32 left out?" in compared(launch, 32 * VALUE).message
    assert "Is each term" not in compared(launch, 0.5 * VALUE).message


def test_a_usual_mistake_that_explains_the_result_is_named(launch):
    twice = Mistake("each element were doubled", lambda: {1: expect(2 * VALUE)})
    launch = replace(launch, mistakes=(Mistake("x were added", lambda: {1: expect(VALUE + 1)}), twice))
    wrong = compared(launch, 2 * VALUE)
    assert (wrong.cause, wrong.message) == (
        "each element were doubled",
        "C[0, 0] is 2 and should be 1. C came out as if each element were doubled.\n- All 24 elements of C are wrong.",
    )
    assert not compared(launch, 3 * VALUE).cause


def test_the_cure_of_a_mistake_follows_its_cause(launch):
    cure = "Leave out the factor of 2 where C is stored."
    twice = Mistake("each element were doubled", lambda: {1: expect(2 * VALUE)}, cure)
    assert compared(replace(launch, mistakes=(twice,)), 2 * VALUE).message.splitlines()[1] == f"- {cure}"


def test_a_mistake_by_which_elements_are_never_written_is_named(launch):
    value = np.where(np.arange(6) < 4, VALUE, np.nan)
    launch = replace(launch, mistakes=(Mistake("rows had 4 columns", lambda: {1: expect(value)}),))
    C = VALUE.astype(np.float32)
    C[:, 4:] = unwritten_array(())
    assert compared(launch, C).cause == "rows had 4 columns"
    C[0, 0] = unwritten_array(())
    assert not compared(launch, C).cause


def test_an_output_of_one_element_is_told_in_one_sentence():
    launch = Launch("a launch", (unwritten_array((1,)),), {0: expect(np.array([3.0]))})
    wrong = find_wrong_output(launch, ["total"], [np.array([2], np.float32)])
    assert wrong.message == "total[0] is 2 and should be 3."


def test_small_errors_are_said_to_be_of_rounding(launch):
    assert "rounded too early" in compared(launch, VALUE * 1.0001).message
    assert "rounded too early" not in compared(launch, VALUE * 1.0008).message  # no float16 loses as much
    assert "rounded too early" not in compared(launch, VALUE * 1.01).message


def test_a_small_element_that_is_wrong_is_no_rounding():
    value = np.array([4.0, 9e9])
    launch = Launch("a launch", (unwritten_array((2,)),), {0: expect(value)})
    wrong = find_wrong_output(launch, ["out"], [np.array([2, 9e9], np.float32)])
    assert "rounded too early" not in wrong.message


@pytest.mark.parametrize(("factor", "said"), [(-1, " opposite sign."), (1.5, " 1.5 times as large as it should be.")])
def test_one_factor_by_which_all_values_are_wrong_is_named(launch, factor, said):
    assert said in compared(launch, factor * VALUE).message
    assert said not in compared(launch, np.where(VALUE == 9, 9, factor * VALUE)).message


def test_wrong_elements_without_a_simple_pattern_are_drawn(launch):
    C = VALUE.copy()
    C[[0, 0, 1, 2, 3], [0, 1, 3, 5, 2]] = 0
    wrong = compared(launch, C)
    assert wrong.picture == ("##....", "...#..", ".....#", "..#...", "# wrong, . right; each sign is 1 element")
    assert " 5 of 24 elements are wrong." in wrong.message


def test_a_changed_input_is_named(launch):
    wrong = compared(launch, VALUE, x=np.zeros(3, np.float32))
    assert (wrong.name, wrong.reason) == ("x", "input changed")


def test_an_input_may_hold_nan():
    x = np.array([1, np.nan, np.inf], np.float32)
    launch = Launch("a launch", (x, unwritten_array((4, 6)), 7), {1: expect(VALUE)})
    assert compared(launch, VALUE) is None
    assert compared(launch, VALUE, x=np.array([np.nan, 1, np.inf], np.float32)).reason == "input changed"


def test_an_element_never_written_is_named(launch):
    C = VALUE.astype(np.float32)
    C[1, 2] = unwritten_array(())
    wrong = find_wrong_output(launch, ["x", "C", "n"], [launch.args[0], C, 7])
    assert (wrong.reason, wrong.message) == (
        "unwritten",
        "C[1, 2] was never written. Every other element is right.",
    )


def test_infinity_is_right_where_it_is_expected():
    launch = Launch("a launch", (unwritten_array((3,)),), {0: expect(np.array([-np.inf, np.inf, 1]))})
    assert find_wrong_output(launch, ["y"], [np.array([-np.inf, np.inf, 1], np.float32)]) is None
    wrong = find_wrong_output(launch, ["y"], [np.array([np.inf, np.inf, 1], np.float32)])
    assert wrong.message == "y[0] is inf and should be -inf. Every other element is right."

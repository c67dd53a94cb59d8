import numpy as np
import pytest

from labkit.checking.compare import find_wrong_output
from labkit.checking.exercise import Launch
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


def test_one_wrong_element_is_named_with_both_values(launch):
    C = VALUE.copy()
    C[2, 3] = -1
    assert compared(launch, C).message == "C[2, 3] is -1 and should be 16; every other element is fine."


def test_whole_numbers_are_named_with_all_their_digits():
    launch = Launch("a launch", (unwritten_array((3,), np.uint32),), {0: expect(np.array([7.0, 613566756, 9]))})
    wrong = find_wrong_output(launch, ["quotients"], [np.array([7, 76695844, 9], np.uint32)])
    assert wrong.message == "quotients[1] is 76695844 and should be 613566756; every other element is fine."


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (np.s_[3:, :], "6 of 24 elements are like that, all in row 3"),
        (np.s_[:, 4:], "8 of 24 elements are like that, all in columns 4 to 5"),
        (np.s_[::2, ::2], "6 of 24 elements are like that"),
        (np.s_[:, :], "so it is with all of C"),
    ],
)
def test_the_band_that_is_wrong_is_named(launch, where, said):
    C = VALUE.copy()
    C[where] = 0
    assert said in compared(launch, C).message


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
        "C[1, 2] was never written; every other element is fine.",
    )


def test_infinity_is_right_where_it_is_expected():
    launch = Launch("a launch", (unwritten_array((3,)),), {0: expect(np.array([-np.inf, np.inf, 1]))})
    assert find_wrong_output(launch, ["y"], [np.array([-np.inf, np.inf, 1], np.float32)]) is None
    wrong = find_wrong_output(launch, ["y"], [np.array([np.inf, np.inf, 1], np.float32)])
    assert wrong.message == "y[0] is inf and should be -inf; every other element is fine."

import numpy as np
import pytest

from labkit.checking.unwritten import is_unwritten, unwritten_array
from labkit.exercises.problems import expect_product, grid_for, random_matrix


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_a_copy_of_what_is_unwritten_is_unwritten(dtype):
    assert is_unwritten(unwritten_array((3, 5), dtype).copy()).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_computed_from_something_unwritten_is_written(dtype):
    with np.errstate(invalid="ignore"):
        assert not is_unwritten(unwritten_array((3, 5), dtype) + dtype(1)).any()
    assert not is_unwritten(np.full((3, 5), np.nan, dtype)).any()


def test_a_float32_product_is_within_the_bound_in_any_order_and_a_wrong_one_is_not():
    rng = np.random.default_rng(1)
    A, B = random_matrix(rng, 40, 300), random_matrix(rng, 300, 30)
    expected = expect_product(A, B)
    for order in (np.arange(300), rng.permutation(300)):
        C = np.zeros((40, 30), np.float32)
        for k in order:
            C += np.outer(A[:, k], B[k])
        assert (np.abs(C - expected.value) <= expected.bound).all()
    one_product_short = A[:, 1:] @ B[1:]
    assert (np.abs(one_product_short - expected.value) > expected.bound).mean() > 0.9


def test_a_grid_covers_its_extent():
    assert grid_for((33, 8), (16, 8)) == (3, 1)

"""F(m, r) computes a correlation exactly, by the published matrices."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.conv.winograd.transforms import as_float32, transforms

SIZES = [(2, 3), (4, 3), (6, 3), (2, 5), (3, 2), (4, 5), (1, 3), (5, 1), (1, 1), (9, 4)]
rationals = st.fractions(-9, 9, max_denominator=9)


def vectors(count):
    return st.lists(rationals, min_size=count, max_size=count).map(lambda entries: np.array(entries, object))


@pytest.mark.parametrize(("m", "r"), SIZES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_f_is_a_correlation(m, r, data):
    A, G, B = transforms(m, r)
    g, d = data.draw(vectors(r)), data.draw(vectors(m + r - 1))
    assert list(A.T @ ((G @ g) * (B.T @ d))) == [g @ d[i : i + r] for i in range(m)]


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_f_of_two_dimensions_is_one_twice(data):
    A, G, B = transforms(2, 3)
    g, d = data.draw(vectors(9)).reshape(3, 3), data.draw(vectors(16)).reshape(4, 4)
    y = A.T @ ((G @ g @ G.T) * (B.T @ d @ B)) @ A
    assert y.tolist() == [[(g * d[i : i + 3, j : j + 3]).sum() for j in range(2)] for i in range(2)]


# Lavin and Gray, 2015, section 4.1 and 4.3
F2_B = "1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1"
F2_G = "1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1"
F2_A = "1 1 1 0, 0 1 -1 -1"
F4_B = "4 0 -5 0 1 0, 0 -4 -4 1 1 0, 0 4 -4 -1 1 0, 0 -2 -1 2 1 0, 0 2 -1 -2 1 0, 0 4 0 -5 0 1"
F4_G = "1/4 0 0, -1/6 -1/6 -1/6, -1/6 1/6 -1/6, 1/24 1/12 1/6, 1/24 -1/12 1/6, 0 0 1"
F4_A = "1 1 1 1 1 0, 0 1 -1 2 -2 0, 0 1 1 4 4 0, 0 1 -1 8 -8 1"


@pytest.mark.parametrize(("m", "A_T", "G", "B_T"), [(2, F2_A, F2_G, F2_B), (4, F4_A, F4_G, F4_B)])
def test_published_matrices_are_these_up_to_factors_of_a_product(m, A_T, G, B_T):
    """If one matrix is multiplied by a factor, another is divided by it."""
    ours = transforms(m, 3)
    published = read(A_T).T, read(G), read(B_T).T
    for product in range(m + 2):
        rows, others = ((A[product], G[product], B[:, product]) for A, G, B in (ours, published))
        assert np.prod([factor(row, other) for row, other in zip(rows, others, strict=True)]) == 1


def factor(row, other):
    """The number that one row is of another; fails if it is none."""
    place = next(n for n, entry in enumerate(row) if entry)
    found = other[place] / row[place]
    assert found and list(other) == [found * entry for entry in row]
    return found


def read(text):
    return np.array([[Fraction(entry) for entry in row.split()] for row in text.split(", ")], object)


def test_float32_holds_whole_numbers_exactly_and_others_as_the_nearest():
    A, G, B = map(as_float32, transforms(4, 3))
    assert A.dtype == G.dtype == B.dtype == np.float32
    assert B[:, 0].tolist() == [4, 0, -5, 0, 1, 0] and G[1, 0] == np.float32(-1 / 6)


@pytest.mark.parametrize(("m", "r"), [(0, 3), (2, 0), (11, 3)])
def test_what_has_no_transforms_is_told(m, r):
    with pytest.raises(ValueError, match=f"F\\({m}, {r}\\) is not among these transforms"):
        transforms(m, r)

import re

import numpy as np
import pytest

from labkit.checking.pattern import describe, describe_extent, draw

ROW, COLUMN = np.indices((40, 48))


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (ROW == 3, "row 3"),
        ((ROW >= 3) & (ROW < 8), "rows 3 to 7"),
        (COLUMN >= 40, "columns 40 to 47"),
        (ROW % 4 == 1, "rows 1, 5, 9 and so on"),
        (COLUMN % 16 >= 8, "columns 8 to 15 of every 16"),
        ((ROW == 1) | (ROW == 5) | (ROW == 30), "rows 1, 5 and 30"),
        ((ROW >= 32) & (COLUMN >= 40), "those of rows 32 to 39 that are in columns 40 to 47"),
        ((ROW == 39) | (COLUMN == 47), "row 39, and column 47"),
        ((ROW == 0) | (ROW == 39) | (COLUMN == 0) | (COLUMN == 47), "rows 0 and 39, and columns 0 and 47"),
        ((ROW % 2 == 0) & (COLUMN % 2 == 1), "those of rows 0, 2, 4 and so on that are in columns 1, 3, 5 and so on"),
        (COLUMN > ROW, "those above the diagonal"),
        (COLUMN == ROW, "the diagonal"),
        ((ROW + COLUMN) % 2 == 1, "those whose row and column add up to an odd number"),
        ((ROW * 7 + COLUMN * 5) % 11 == 3, ""),
    ],
)
def test_a_pattern_is_named(mask, words):
    assert describe(mask) == words


def test_elements_of_vectors_and_axes_of_other_arrays_are_named():
    assert describe(np.arange(100) >= 64) == "elements 64 to 99"
    assert describe(np.indices((3, 4, 5))[2] < 2) == "slices 0 and 1 of axis 2"


def test_a_pattern_that_is_named_is_exact():
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(400):
        start, stop = np.sort(rng.integers(0, 41, 2))
        mask = np.isin(ROW, range(start, stop)) if rng.random() < 0.5 else rng.random((40, 48)) < 0.01
        words = describe(mask)
        if found := re.fullmatch(r"rows (\d+) (?:to|and) (\d+)", words):
            named += 1
            assert np.array_equal(mask, np.isin(ROW, range(int(found[1]), int(found[2]) + 1)))
    assert named > 100


@pytest.mark.parametrize(("taken", "said"), [(0, ": all are in rows 3 to 9."), (39, ".")])
def test_rows_in_which_all_marked_elements_are_are_named_only_if_they_are_few(taken, said):
    mask = np.zeros((40, 48), bool)
    mask[[3, 5, 9, 8], [2, 3, 40, 47]] = mask[taken or 3, 2] = True
    assert describe_extent(mask, "C", "are wrong") == f"{mask.sum()} of 1,920 elements are wrong{said}"


def test_pictures_are_small_and_pool_elements():
    assert draw(np.arange(70) >= 40) == (
        "." * 32,
        "." * 8 + "#" * 24,
        "#" * 6,
        "# wrong, . right; each sign is 1 element",
    )
    *rows, key = draw((np.indices((100, 300))[0] == 4) | (np.indices((100, 300))[1] == 299))
    assert len(rows) <= 12 and all(len(row) <= 48 for row in rows)
    assert key == "# wrong, . right, + both; each sign is 9 x 7 elements"
    assert draw(np.ones((2, 2, 2), bool)) == ()

"""Tilings: they fit a block and TMA, and let few SMs rest."""

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.gemm.library.tilings import (
    SHARED_BYTES,
    Tiling,
    Work,
    choose_copies,
    choose_whole_boxes,
    estimate_with_copies,
    tilings,
)

SMS = 132

works = st.builds(
    Work, st.integers(1, 20000), st.integers(1, 20000), st.integers(1, 4000).map(lambda n: 16 * n), st.integers(1, 5)
)


@given(works)
@settings(max_examples=50, deadline=None)
def test_every_tiling_fits_a_block_and_tma(work):
    found = tilings(work, SMS)
    assert found
    for tiling in found:
        assert tiling.stages >= 2 and tiling.splits >= 1
        assert (tiling.stages * (tiling.rows + tiling.cols) + 2 * tiling.rows) * 128 + 1024 <= SHARED_BYTES
        assert tiling.rows in (64, 128) and tiling.cols % 8 == 0 and 8 <= tiling.cols <= 256
        assert tiling.swapped or tiling.cols >= 64  # a box of C
    times = [estimate_with_copies(tiling, work, SMS) for tiling in found]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("tiling", "copied_bytes", "whole"),
    [
        (Tiling(128, 256, 4), 10**9, True),
        (Tiling(128, 200, 4), 10**9, True),
        (Tiling(128, 200, 4), 0, False),  # what need not be copied can be
        (Tiling(64, 8, 16, 1, True), 10**9, True),
    ],
)
def test_boxes_are_whole_where_a_copy_would_take_longer(tiling, copied_bytes, whole):
    taken = choose_whole_boxes(tiling, Work(8192, 8192, 2 * 8192), SMS, copied_bytes)
    assert taken.cols % 64 == 0 if whole else taken == tiling
    assert taken == tiling or tiling.cols % 64


@pytest.mark.parametrize("N", [11008, 14336])
def test_the_first_tiling_lets_few_sms_rest(N):
    first = tilings(Work(256, N, 2 * 4096), SMS)[0]
    tiles = ceil(256 / first.rows) * ceil(N / first.cols) * first.splits
    assert tiles / (ceil(tiles / SMS) * SMS) > 0.95


@pytest.mark.parametrize(
    ("sides", "straddling", "copied"),
    [
        ((3000, 3000, 3000), (True, True), (False, True)),  # the operand of the wider side of a tile
        ((3000, 3000, 3000), (True, False), (False, False)),  # what the main loop hides
        ((64, 14328, 4088), (False, True), (False, False)),  # read once
    ],
)
def test_an_operand_that_straddles_sectors_is_copied_where_that_pays(sides, straddling, copied):
    M, N, K = sides
    work = Work(M, N, 2 * K, straddling=straddling)
    assert choose_copies(tilings(work, SMS)[0], work, SMS) == copied

"""Sizes whose rows fall into one set of L1, as the chapter on the triple loop states them."""

import re

import jupytext
import numpy as np
import pytest
from cells import run_cell
from numba import njit

from labkit import gemm, places
from labkit.book.contents import source
from labkit.exercises.turn_it_over import make_launch
from labkit.loops import SMALL_CPU, trace

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")


@pytest.fixture(scope="module")
def text():
    return source(places.PACKAGE.parent / "notebooks", "triple-loop").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def my_tiled(text):
    (cell,) = (cell.source for cell in jupytext.reads(text, fmt="md:myst").cells if "def my_tiled" in cell.source)
    return run_cell(cell)["my_tiled"]


def misses(loop, M, N, K, T, **options):
    """Misses of L1 per 1,000 multiply-adds."""
    A, B, C = gemm.Problem(M, N, K).operands()
    return 1000 * trace(loop, A, B, np.zeros_like(C), T, **options).counters.l1_misses / (M * N * K)


def test_rows_a_power_of_two_long_break_the_rule_of_three_tiles(text, my_tiled):
    found = r"At \$T = 16\$ the small CPU misses ([\d.]+) times .* for N = 64, and ([\d.]+) times for N = 80"
    stated = re.search(found, text)
    assert stated
    for N, told in zip((64, 80), stated.groups()):
        assert f"{misses(my_tiled, N, N, N, 16, cpu=SMALL_CPU):.1f}" == told
    assert "With 1,024 columns the same happens in an L1 of 32 KB" in text
    assert misses(my_tiled, 16, 1024, 16, 16) > 60 > 10 > misses(my_tiled, 16, 1040, 16, 16)


def test_the_limit_of_turn_it_over_is_asked_only_where_tiles_of_16_keep_it(text):
    assert "no side is below 16, and M is not within 2 of a multiple of 1,024" in text
    cells = [cell.source for cell in jupytext.reads(text, fmt="md:myst").cells]
    (cell,) = (cell for cell in cells if "def turned" in cell)
    turned = run_cell(cell, njit=njit)["turned"]
    held, asked = {}, {}
    for M in (16, 512, 1000, 1021, 1023, 1024, 1025, 1026, 1027, 2048, 2051):
        launch = make_launch(np.random.default_rng(1), M, 16)
        held[M] = trace(turned, *launch.args).counters.l1_misses <= M * 16 // 4
        asked[M] = bool(launch.budgets)
    assert held == asked

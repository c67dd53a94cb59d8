"""The loops multiply matrices, refuse what is none, and cost what their docstrings say."""

import numpy as np
import pytest

from labkit import specialise
from labkit.gemm import error_bound, oracle
from labkit.loops import ladder, step, trace
from labkit.loops.orders import ORDERS

SHAPES = [(1, 1, 1), (5, 3, 7), (33, 20, 17)]
SLUGS = [found.slug for found in ladder()]


def operands(M, N, K):
    rng = np.random.default_rng([M, N, K])
    A, B = rng.standard_normal((M, K), np.float32), rng.standard_normal((K, N), np.float32)
    return A, B, np.full((M, N), np.nan, np.float32)


def test_the_ladder_is_its_files_in_order():
    assert SLUGS == ["python", "compiled", "rows", "blocked"]
    with pytest.raises(KeyError, match="no step 'tiled'.*blocked"):
        step("tiled")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("slug", SLUGS)
def test_a_step_multiplies(slug, shape):
    A, B, C = operands(*shape)
    step(slug).launch(A, B, C)
    assert (np.abs(C - oracle(A, B)) <= error_bound(A, B)).all()


@pytest.mark.parametrize("slug", SLUGS)
def test_a_traced_step_computes_the_same_and_counts_its_flops(slug):
    M, N, K = 9, 6, 11
    A, B, C = operands(M, N, K)
    traced = trace(step(slug).kernel, A, B, C)
    step(slug).launch(A, B, C)
    assert np.array_equal(traced.outputs[2], C)
    assert traced.counters.flops == 2 * M * N * K
    assert not traced.findings


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_multiplies(name):
    A, B, C = operands(12, 7, 5)
    C[:] = 0
    ORDERS[name](A, B, C)
    assert (np.abs(C - oracle(A, B)) <= error_bound(A, B)).all()


@pytest.mark.parametrize("tile", [1, 4, 100])
def test_any_tile_multiplies(tile):
    A, B, C = operands(13, 9, 10)
    C[:] = trace(specialise(step("blocked").kernel, TILE=tile), A, B, C).outputs[2]
    assert (np.abs(C - oracle(A, B)) <= error_bound(A, B)).all()


def test_the_stated_costs_of_the_dot_product():
    M, N, K = 8, 6, 10
    traced = trace(step("compiled").kernel, *operands(M, N, K))
    by_array = {name: sum(traced.served(name)) for name in "ABC"}
    assert by_array == {"A": M * N * K, "B": M * N * K, "C": M * N}


def test_blocks_bring_each_element_from_beyond_l1_once_a_tile():
    """Docstring of s04: M*N*K / TILE elements of A and of B; a line of 64 bytes holds 16 of them."""
    N, TILE = 128, 32
    traced = trace(specialise(step("blocked").kernel, TILE=TILE), *operands(N, N, N))
    for name in "AB":
        lines = sum(traced.served(name)[1:])
        assert lines <= 1.1 * N**3 / TILE / 16


def test_walking_columns_misses_and_walking_rows_does_not():
    arguments = operands(64, 256, 256)
    assert trace(step("compiled").kernel, *arguments).miss_rate("B") > 0.99
    assert trace(step("rows").kernel, *arguments).miss_rate("B") < 0.07


@pytest.mark.parametrize(
    "A, B, C, says",
    [
        ([[1.0]], np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), "A is a list"),
        (np.ones((2, 2)), np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), "A holds float64"),
        (
            np.ones((2, 3), np.float32),
            np.ones((2, 2), np.float32),
            np.ones((2, 2), np.float32),
            "columns of A",
        ),
        (
            np.ones((2, 3), np.float32),
            np.ones((3, 4), np.float32),
            np.ones((4, 2), np.float32),
            "make C of that shape",
        ),
    ],
)
@pytest.mark.parametrize("slug", SLUGS)
def test_what_does_not_fit_is_refused_in_a_sentence(slug, A, B, C, says):
    with pytest.raises((TypeError, ValueError), match=says):
        step(slug).launch(A, B, C)

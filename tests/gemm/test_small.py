"""Batches of small 16-bit products: right for any strides and sides, and as costly as the docstring says."""

import re
from itertools import product

import numpy as np
import pytest

from labkit.forecast import sass
from labkit.formats import BF16, FP16
from labkit.gemm import small
from labkit.simulator.in_place import simulate_in_place


def simulated(format, batches, shape, order="KK", beta=0.0):
    """The trace, and C beside what it should be."""
    (M, N, K), rng = shape, np.random.default_rng(shape)
    A, B, C = (format.encode(rng.standard_normal((batches, *side))) for side in ((M, K), (N, K), (M, N)))
    a, b, c = map(format.decode, (A, B, C))
    expected = 0.5 * a @ b.swapaxes(1, 2) + (beta * c if beta else 0)
    A, B = (
        X if axis == "K" else np.ascontiguousarray(X.swapaxes(1, 2)).swapaxes(1, 2) for X, axis in zip((A, B), order)
    )
    (one,) = small.launches(A, B, C, format, 0.5, beta, C)
    trace = simulate_in_place(one.kernel, one.grid, one.block, *one.arguments)
    return trace, format.decode(C), expected


@pytest.mark.parametrize("order", ["".join(pair) for pair in product("KN", repeat=2)])
@pytest.mark.parametrize(("shape", "beta"), [((32, 32, 32), 0.0), ((37, 45, 71), 0.0), ((36, 44, 52), -2.0)])
@pytest.mark.parametrize("format", [BF16, FP16], ids=str)
@pytest.mark.sample(6)
def test_a_batch_is_right(format, shape, beta, order):
    trace, C, expected = simulated(format, 3, shape, order, beta)
    assert trace.errors == ()
    assert np.linalg.norm(C - expected) <= 2 * format.rounding * np.linalg.norm(expected)


def test_the_kernel_costs_what_its_docstring_says():
    K, outputs = 64, 3 * 64 * 32
    trace, *_ = simulated(BF16, 3, (64, 32, K))
    stated = re.findall(r"^    (K / \d+) +(\S+) ", small.__doc__, re.MULTILINE)
    loads, products = (eval(expression, {"K": K}) for expression, _ in stated)
    per_operand = trace.counters.global_loads / 2 / outputs
    assert per_operand == loads
    assert products * outputs == outputs // 1024 * K // 16 * 8


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize("order", ["KK", "NN"])
@pytest.mark.sample(1)
def test_the_kernel_assembles_without_spills(order):
    X = np.zeros((2, 32, 32), np.uint16)
    A, B = (X.copy() if axis == "K" else X.copy().swapaxes(1, 2) for axis in order)
    (one,) = small.launches(A, B, X, BF16, 1.0, 0.0, X)
    assert sass.compiled(one.kernel, *one.arguments, compute_capability=(9, 0)).spill_bytes == 0

"""Tensors of more than 2^31 elements: every algorithm that claims to take them finds its way in them."""

from math import prod

import numpy as np
import pytest

from labkit import conv, cuda
from labkit.conv.interface.choices import planned
from labkit.formats import BF16, FP32
from labkit.ladder import relative_error

IMAGES, SIDE, MANY, FEW = 2049, 64, 256, 8  # 2049 x 256 x 64^2 is 2^31 and a few
MOST_BYTES = 40 * 2**30  # of workspace
PERIOD = 1_000_003  # of random elements: a prime, so that at a wrong offset others are met
MOST_ERROR = 0.01  # which roundings in bfloat16 stay below
WAYS = [(conv.Forward, FP32), (conv.Forward, BF16), (conv.BackwardData, FP32), (conv.BackwardFilter, FP32)]


def operands(problem, format):
    """As `problem.operands`, drawn in seconds."""
    some = np.random.default_rng(1).standard_normal(PERIOD, np.float32)
    for name, shape in problem.shapes.items():
        elements = format.result.encode(np.array([np.nan])) if name == problem.result else format.encode(some)
        yield np.resize(elements, prod(shape)).reshape(shape)
    yield problem


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(("C", "K"), [(MANY, FEW), (FEW, MANY)], ids=["images", "outputs"])
@pytest.mark.parametrize(("kind", "format"), WAYS)
def test_more_elements_than_32_bits_with_a_sign_count(kind, format, C, K):
    problem = kind(IMAGES, C, SIDE, SIDE, K, 3, 3, 1, 1, 1, 1, 1, 1, layout="NHWC" if format == BF16 else "NCHW")
    before = tuple(operands(problem, format))
    expected = problem.expected(problem.part(before), format)
    arrays = [cuda.to_device(X) for X in before[:3]]
    place = "xwy".index(problem.result)
    wrong = {}
    for algorithm in conv.heuristic(problem, format, MOST_BYTES).candidates:
        arrays[place].copy_to_device(before[place])
        planned(algorithm, problem, format, *arrays, MOST_BYTES)()
        after = *before[:place], arrays[place].copy_to_host(), *before[place + 1 :]
        error = relative_error(problem, expected, after, format)
        if not error < MOST_ERROR:
            wrong[str(algorithm)] = error
    assert not wrong

"""Tensors of more than 2^31 elements: every algorithm that claims to take them finds its way in them."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from labkit import conv, cuda
from labkit.calls.plan import make_plan
from labkit.conv.interface.convolution import ConvByProblem
from labkit.formats import BF16, FP32

IMAGES, SIDE, MANY, FEW = 2049, 64, 256, 8  # 2049 x 256 x 64^2 is 2^31 and a few
MOST_BYTES = 20 * 2**30  # of workspace
PERIOD = 1_000_003  # of random elements: a prime, so that at a wrong offset others are met
MOST_ERROR = 0.01  # which roundings in bfloat16 stay below
WAYS = [(conv.Forward, FP32), (conv.Forward, BF16), (conv.BackwardData, FP32), (conv.BackwardFilter, FP32)]


def drawn(shape, format):
    """Random normal numbers, drawn in seconds."""
    some = format.encode(np.random.default_rng(len(shape)).standard_normal(PERIOD, np.float32))
    return np.resize(some, prod(shape)).reshape(shape)


def forget(array):
    """Fills an array of the device with NaN."""
    from numba.cuda.cudadrv.driver import device_memset

    device_memset(array, 0xFF, array.nbytes)


def on_host(array):
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array


def first_middle_last(count):
    return [0, count // 2, count - 1]


def part(problem, arrays):
    """A few of the images; or if they are summed up, a few channels and filters. Of arrays by their names."""
    if problem.result != "w":
        n = first_middle_last(problem.N)
        few = {name: X if name == "w" else np.stack([on_host(X[i]) for i in n]) for name, X in arrays.items()}
        return few, replace(problem, N=len(n))
    c, k = first_middle_last(problem.C), first_middle_last(problem.K)
    taken = {"x": lambda x: x[:, c], "w": lambda w: on_host(w)[k][:, c], "y": lambda y: y[:, k]}
    return {name: taken[name](X) for name, X in arrays.items()}, replace(problem, C=len(c), K=len(k))


def relative_error(found, value):
    return np.linalg.norm(found - value) / np.linalg.norm(value)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(("C", "K"), [(MANY, FEW), (FEW, MANY)], ids=["images", "outputs"])
@pytest.mark.parametrize(("kind", "format"), WAYS)
def test_more_elements_than_32_bits_with_a_sign_count(kind, format, C, K):
    problem = kind(IMAGES, C, SIDE, SIDE, K, 3, 3, 1, 1, 1, 1, 1, 1, layout="NHWC" if format == BF16 else "NCHW")
    given = {name: drawn(shape, format) for name, shape in problem.shapes.items() if name != problem.result}
    few, small = part(problem, given)
    expected = small.oracle(*(format.decode(X) for X in few.values()))
    result = cuda.device_array(problem.shapes[problem.result], format.dtype)
    arrays = {name: cuda.to_device(X) for name, X in given.items()} | {problem.result: result}
    errors = {}
    for algorithm in conv.heuristic(problem, format, MOST_BYTES).candidates:
        forget(result)
        make_plan(ConvByProblem(problem, format, algorithm, MOST_BYTES), arrays)()
        (found,) = part(problem, {problem.result: result})[0].values()
        errors[str(algorithm)] = relative_error(format.decode(found), expected)
    assert {name: error for name, error in errors.items() if not error < MOST_ERROR} == {}

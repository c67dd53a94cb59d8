"""The benches of softmax and GEGLU: a record for each ladder, torch as their baseline, and copies as yardsticks."""

import numpy as np
import pytest

from labkit import elementwise, softmax
from labkit.bench import _harness, _torch
from labkit.bench import elementwise as elementwise_bench
from labkit.bench import softmax as bench
from labkit.formats import BF16, FP32

BASELINES = [
    (softmax.Forward, bench.forward_baselines),
    (softmax.Backward, bench.backward_baselines),
    (elementwise.GEGLU, elementwise_bench.baselines),
]


def test_each_ladder_has_a_record_of_its_own():
    assert [table.name for table in bench.TABLES] == ["softmax_rows", "softmax_rows_backward"]


@pytest.mark.parametrize(("of", "baselines"), BASELINES)
def test_torch_stands_beside_ours(of, baselines, monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    assert list(baselines(of(2, 3), FP32)) == ["torch", "torch.compile"]
    monkeypatch.setattr(_torch, "is_installed", lambda: False)
    assert baselines(of(2, 3), FP32) == {}


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize(("of", "baselines"), BASELINES)
def test_torch_computes_what_the_problem_expects(of, baselines):
    problem = of(40, 24)
    for format, most in ((FP32, 1e-5), (BF16, 1e-2)):
        before = problem.operands(format)
        for way in baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


def test_the_yardsticks_move_as_many_bytes_as_the_problems_must():
    forward, backward = softmax.Forward(6, 4), softmax.Backward(6, 4)
    (operands,) = _harness.copies_on_gpu(forward.operands(), 1)
    bench.copy(forward, FP32, *operands)(0)
    x, y = (X.copy_to_host() for X in operands[:2])
    assert np.array_equal(x, y)
    (operands,) = _harness.copies_on_gpu(backward.operands(), 1)
    bench.copies(backward, FP32, *operands)(0)
    dy, y, dx = (X.copy_to_host() for X in operands[:3])
    assert np.array_equal(dx[3:], dy[3:]) and np.array_equal(dx[:3], y[:3])

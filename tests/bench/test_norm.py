"""The bench of normalisations: a record for each ladder, and torch in both layouts beside it."""

import numpy as np
import pytest

from labkit import norm
from labkit.bench import _harness, _torch, norm_backward, norm_inference, norm_rows
from labkit.bench import norm as bench
from labkit.formats import BF16, FP32
from labkit.ladder import ladders


def test_each_ladder_has_a_record_of_its_own():
    tables = *bench.TABLES, *norm_backward.TABLES, *norm_rows.TABLES, norm_inference.TABLE
    names = [table.name for table in tables]
    assert len(set(names)) == len(names) == len(ladders("norm"))
    assert all(name.startswith("norm_") for name in names)


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (bench, norm.BatchForward(2, 3, 4, 4)),
        (norm_backward, norm.BatchBackward(2, 3, 4, 4)),
        (norm_inference, norm.BatchInference(2, 3, 4, 4)),
    ],
    ids=["forward", "backward", "inference"],
)
def test_torch_stands_beside_ours_eager_and_compiled_in_both_layouts(module, problem, monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    assert list(module.baselines(problem, FP32)) == [
        "torch",
        "torch channels-last",
        "torch.compile",
        "torch.compile channels-last",
    ]
    monkeypatch.setattr(_torch, "is_installed", lambda: False)
    assert module.baselines(problem, FP32) == {}


OF_ROWS = [(norm.RowForward, norm_rows.forward_baselines), (norm.RowBackward, norm_rows.backward_baselines)]


@pytest.mark.parametrize(("of", "baselines"), OF_ROWS)
def test_torch_stands_beside_ours_in_rows(of, baselines, monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    assert list(baselines(of(2, 3), FP32)) == ["torch", "torch.compile"]
    monkeypatch.setattr(_torch, "is_installed", lambda: False)
    assert baselines(of(2, 3), FP32) == {}


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize(("of", "baselines"), OF_ROWS)
def test_torch_computes_what_rows_expect(of, baselines, kind):
    problem = of(40, 24, kind)
    for format, most in ((FP32, 1e-5), (BF16, 1e-2)):
        before = problem.operands(format)
        for way in baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


@pytest.mark.needs("gpu", "torch")
def test_torch_computes_what_the_problem_expects():
    nhwc = norm.BatchForward(4, 3, 8, 8, layout="NHWC", momentum=None)
    for problem, format, most in ((norm.BatchForward(4, 3, 8, 8), FP32, 1e-5), (nhwc, FP32, 1e-5), (nhwc, BF16, 1e-2)):
        before = problem.operands(format)
        for way in bench.baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_torch_computes_what_inference_expects(layout):
    problem = norm.BatchInference(4, 3, 8, 8, layout=layout)
    for format, most in ((FP32, 1e-5), (BF16, 1e-2)):
        before = problem.operands(format)
        for way in norm_inference.baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


@pytest.mark.needs("gpu", "torch")
def test_torch_computes_the_gradients_that_the_problem_expects():
    nhwc = norm.BatchBackward(4, 3, 8, 8, layout="NHWC")
    for problem, format, most in ((norm.BatchBackward(4, 3, 8, 8), FP32, 1e-5), (nhwc, FP32, 1e-5), (nhwc, BF16, 1e-2)):
        before = problem.operands(format)
        for way in norm_backward.baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


def test_the_yardstick_of_gradients_moves_three_times_the_images():
    problem = norm.BatchBackward(4, 3, 8, 8)
    (operands,) = _harness.copies_on_gpu(problem.operands(), 1)
    norm_backward.copy(problem, FP32, *operands)(0)
    dy, x, dx = (problem.arrays_by_name(operands)[name].copy_to_host() for name in ("dy", "x", "dx"))
    assert np.array_equal(dx[:2], dy[:2]) and np.array_equal(dx[2:], x[2:])

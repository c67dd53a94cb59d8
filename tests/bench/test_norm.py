"""The bench of normalisations: a record for each ladder, and torch in both layouts beside it."""

import pytest

from labkit import norm
from labkit.bench import _harness, _torch, norm_rows
from labkit.bench import norm as bench
from labkit.formats import BF16, FP32
from labkit.ladder import ladders


def test_each_ladder_has_a_record_of_its_own():
    names = [table.name for table in (*bench.TABLES, *norm_rows.TABLES)]
    assert len(set(names)) == len(names) == len(ladders("norm"))
    assert all(name.startswith("norm_") for name in names)


def test_torch_stands_beside_ours_eager_and_compiled_in_both_layouts(monkeypatch):
    problem = norm.BatchForward(2, 3, 4, 4)
    monkeypatch.setattr(_torch, "is_here", lambda: True)
    assert list(bench.rivals(problem, FP32)) == [
        "torch",
        "torch channels-last",
        "torch.compile",
        "torch.compile channels-last",
    ]
    monkeypatch.setattr(_torch, "is_here", lambda: False)
    assert bench.rivals(problem, FP32) == {}


OF_ROWS = [(norm.RowForward, norm_rows.forward_rivals), (norm.RowBackward, norm_rows.backward_rivals)]


@pytest.mark.parametrize(("of", "rivals"), OF_ROWS)
def test_torch_stands_beside_ours_in_rows(of, rivals, monkeypatch):
    monkeypatch.setattr(_torch, "is_here", lambda: True)
    assert list(rivals(of(2, 3), FP32)) == ["torch", "torch.compile"]
    monkeypatch.setattr(_torch, "is_here", lambda: False)
    assert rivals(of(2, 3), FP32) == {}


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize(("of", "rivals"), OF_ROWS)
def test_torch_computes_what_rows_expect(of, rivals, kind):
    problem = of(40, 24, kind)
    for format, most in ((FP32, 1e-5), (BF16, 1e-2)):
        before = problem.operands(format)
        for way in rivals(problem, format).values():
            (operands,) = _harness.on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


@pytest.mark.needs("gpu", "torch")
def test_torch_computes_what_the_problem_expects():
    nhwc = norm.BatchForward(4, 3, 8, 8, layout="NHWC", momentum=None)
    for problem, format, most in ((norm.BatchForward(4, 3, 8, 8), FP32, 1e-5), (nhwc, FP32, 1e-5), (nhwc, BF16, 1e-2)):
        before = problem.operands(format)
        for way in bench.rivals(problem, format).values():
            (operands,) = _harness.on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most

"""The bench of implicit GEMM: layers of equal products, and a kernel that differs in its divisions alone."""

import pytest

from labkit import conv
from labkit.bench import implicit_gemm
from labkit.formats import FP32


def test_layers_have_equal_products_and_different_sizes():
    problems = implicit_gemm.problems_of_products()
    products = {(problem.C * problem.R * problem.S, problem.N * problem.P * problem.Q) for problem in problems}
    assert products == {(implicit_gemm.CRS, implicit_gemm.NPQ)}
    assert len({problem.R for problem in problems}) == 8 and len({problem.N for problem in problems}) == 6
    assert len({problem.flops for problem in problems}) == 1


def test_magic_with_plain_divisions_is_right():
    problem = conv.Forward(2, 3, 7, 6, 4, 3, 2, stride_h=2, top=1, left=1)
    operands = problem.operands()
    implicit_gemm.magic_with_division(problem, FP32, *operands)(0)
    assert problem.is_right(operands, operands)


def test_the_bench_says_that_it_needs_a_gpu(monkeypatch, capsys):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")
    with pytest.raises(SystemExit):
        implicit_gemm.main()
    assert "times kernels on a GPU" in capsys.readouterr().out

"""The bench of attention: torch's backends beside ours, for problems that they compute."""

import pytest

from labkit import attention
from labkit.bench import _harness, _torch
from labkit.bench import attention as bench
from labkit.formats import BF16, FP16, FP32

Problem = attention.AttentionForward


def test_backends_of_torch_stand_beside_ours_where_they_compute_the_problem(monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    same = Problem(2, 4, 64, 64, causal=True)
    assert list(bench.baselines(same, BF16)) == ["flash", "cuDNN", "efficient"]
    assert list(bench.baselines(same, FP32)) == ["efficient"]
    assert bench.baselines(Problem(2, 4, 64, 64, keys=32, causal=True), BF16) == {}
    assert bench.baselines(Problem(2, 4, 64, 64, window=5), BF16) == {}
    monkeypatch.setattr(_torch, "is_installed", lambda: False)
    assert bench.baselines(same, BF16) == {}


def test_standard_attention_stands_beside_the_backends_where_its_scores_fit(monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    backends = ["flash", "cuDNN", "efficient"]
    assert list(bench.baselines(Problem(2, 4, 64, 64), BF16)) == [*backends, "standard (torch)", "standard (labkit)"]
    assert list(bench.baselines(Problem(2, 4, 64, 64), FP16)) == [*backends, "standard (torch)"]
    assert list(bench.baselines(Problem(1, 17, 16384, 64), BF16)) == backends
    assert list(bench.baselines(Problem(2, 4, 64, 64, kv_heads=2), BF16)) == backends


def test_three_calls_of_ours_are_attention():
    problem = Problem(1, 2, 40, 64)
    before = problem.operands(BF16)
    (operands,) = _harness.copies_on_gpu(before, 1)
    launch = bench.standard_ours(problem, BF16, *operands)
    assert _harness._error(problem, problem.expected(before, BF16), launch, before, operands, BF16) < 2e-2


def test_each_problem_has_16k_tokens_of_width_2048():
    ladder = attention.ladder("forward")
    problems = ladder.step("ping_pong").benched
    assert {one.head_dim for one in problems} == {64, 128, 256}
    assert ladder.step("persistent").benched == [one for one in problems if one.head_dim <= 128]
    assert all((one.batch * one.queries, one.heads * one.head_dim) == (16384, 2048) for one in problems)


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_torch_computes_what_the_problem_expects(layout):
    for format, most in ((FP32, 1e-5), (FP16, 2e-3), (BF16, 1e-2)):
        problem = Problem(2, 4, 300, 64, causal=True, layout=layout)
        before = problem.operands(format)
        for way in bench.baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most


@pytest.mark.needs("gpu", "torch")
def test_standard_attention_computes_what_the_problem_expects():
    for format, most in ((FP16, 5e-3), (BF16, 2e-2)):
        problem = Problem(2, 4, 300, 64)
        before = problem.operands(format)
        for way in bench.standard_attention(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most

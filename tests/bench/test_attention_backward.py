"""The bench of attention backward: torch's backends beside ours, for problems that they compute."""

import pytest

from labkit import attention
from labkit.bench import _harness, _torch
from labkit.bench import attention_backward as bench
from labkit.formats import BF16, FP16, FP32

Problem = attention.AttentionBackward


def test_backends_of_torch_stand_beside_ours_where_they_compute_the_problem(monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    same = Problem(2, 4, 64, 64, causal=True)
    assert list(bench.baselines(same, BF16)) == ["flash", "cuDNN", "efficient", "flash, deterministic"]
    assert list(bench.baselines(same, FP32)) == ["efficient"]
    assert bench.baselines(Problem(2, 4, 64, 64, keys=32, causal=True), BF16) == {}


def test_each_problem_has_16k_tokens_of_width_2048():
    problems = attention.ladder("backward").step("wgmma").benched
    assert {(one.head_dim, one.causal) for one in problems} == {(d, c) for d in (64, 128) for c in (False, True)}
    assert {one.queries for one in problems} == {2048, 4096, 8192, 16384}
    assert all((one.batch * one.queries, one.heads * one.head_dim) == (16384, 2048) for one in problems)


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_torch_computes_what_the_problem_expects(layout):
    for format, most in ((FP32, 1e-5), (FP16, 3e-3), (BF16, 2e-2)):
        problem = Problem(2, 4, 300, 64, causal=True, layout=layout)
        before = problem.operands(format)
        for way in bench.baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most

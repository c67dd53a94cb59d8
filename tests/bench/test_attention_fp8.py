"""The bench of attention in e4m3: baselines in bfloat16 with the same numbers, and the error of quantisation."""

import numpy as np
import pytest

from labkit import attention
from labkit.attention.fp8.problem import dequantise_blocks
from labkit.bench import _harness, _torch
from labkit.bench import attention_fp8 as bench
from labkit.formats import E4M3

Problem = attention.AttentionFP8
STEPS = attention.ladder("fp8")


def test_baselines_stand_beside_ours_where_they_compute_the_problem(monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    assert list(bench.baselines(Problem(1, 2, 64, 128, causal=True), E4M3)) == ["flash bf16", "cuDNN bf16"]
    assert bench.baselines(Problem(1, 2, 64, 128, 80, causal=True), E4M3) == {}
    monkeypatch.setattr(_torch, "is_installed", lambda: False)
    assert bench.baselines(Problem(1, 2, 64, 128), E4M3) == {}


def test_heads_of_128_numbers_are_timed_for_short_and_long_sequences():
    problems = STEPS[0].benched
    assert all(step.benched == problems for step in STEPS)  # and alternate
    assert {(one.head_dim, one.batch * one.queries) for one in problems} == {(128, 16384)}
    assert [one.queries for one in problems if one.causal] == [2048, 4096, 8192, 16384]
    assert STEPS[0].compared.queries == 16384 and not STEPS[0].compared.causal


@pytest.mark.needs("torch")
def test_baselines_get_the_numbers_that_codes_and_scales_stand_for(monkeypatch):
    import torch

    def on_host(format, *arrays):
        found = [torch.from_numpy(X) for X in arrays]
        return tuple(X.view(torch.float8_e4m3fn) if X.dtype == torch.uint8 else X for X in found)

    monkeypatch.setattr(_torch, "tensors", on_host)
    problem = Problem(1, 4, 70, 32, 300, 2)
    given = problem.operands()[:6]
    wanted = dequantise_blocks(*given, rows=problem.rows, keys=problem.keys)
    for one, other in zip(bench.decode_to_bfloat16(problem, E4M3, *given), wanted, strict=True):
        assert np.allclose(one.float().numpy(), other, rtol=2.0**-8)


def test_a_scale_a_block_keeps_small_numbers_beside_large_ones():
    rows = {row.pop("numbers"): row for row in bench.quantisation_errors(512, 64)}
    block, tensor = "a scale a block", "a scale a tensor"
    assert 0.02 < rows["normal"][block] < 0.08 and rows["normal"][tensor] < 1.2 * rows["normal"][block]
    assert rows["large values at the end"][block] < 0.08 and rows["large values at the end"][tensor] > 0.3
    assert rows["outliers"][block] < rows["outliers"][tensor]


@pytest.mark.needs("gpu", "torch")
def test_torch_computes_what_the_problem_expects():
    problem = Problem(2, 4, 300, 128, causal=True)
    before = problem.operands()
    for way in bench.baselines(problem, E4M3).values():
        (operands,) = _harness.copies_on_gpu(before, 1)
        launch = way(problem, E4M3, *operands)
        assert _harness._error(problem, problem.expected(before), launch, before, operands, E4M3) < 1e-2

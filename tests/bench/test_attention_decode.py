"""The bench of decoding: torch's backends and flex_attention beside ours, for problems that they compute."""

from types import SimpleNamespace

import pytest

from labkit import attention, cuda
from labkit.bench import _harness, _torch
from labkit.bench import attention_decode as bench
from labkit.formats import BF16, FP16

Problem = attention.AttentionDecode
STEPS = attention.ladder("decode")


def test_baselines_stand_beside_ours_where_they_compute_the_problem(monkeypatch):
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    folded = "flash folded", "cuDNN folded", "efficient folded"
    small, large = Problem(2, 8, 1, 64, 100, 2), Problem(64, 32, 1, 128, 32768, 8)
    assert list(bench.baselines(small, BF16)) == ["flash", "cuDNN", *folded, "math folded", "flex_attention"]
    assert list(bench.baselines(large, BF16)) == ["flash", "cuDNN", *folded]
    for other in (Problem(2, 8, 2, 64, 100, 2), Problem(2, 8, 1, 64, 100, 2, page=16)):
        assert bench.baselines(other, BF16) == {}
    assert bench.baselines(Problem(2, 8, 1, 64, 100, 2, ragged=True), BF16) == {}
    monkeypatch.setattr(_torch, "is_installed", lambda: False)
    assert bench.baselines(small, BF16) == {}


def test_one_query_of_32_heads_meets_a_cache_of_8():
    problems = STEPS[-1].benched
    assert all((one.queries, one.heads, one.kv_heads, one.head_dim) == (1, 32, 8, 128) for one in problems)
    assert [(one.batch, one.keys) for one in problems if not one.ragged and one.page is None] == [
        (1, 32768),
        (8, 32768),
        (64, 32768),
        (64, 2048),
    ]
    assert 134e6 < STEPS[-1].compared.min_bytes(BF16) < 135e6


def test_caches_alternate_that_would_leave_some_of_themselves_in_l2(monkeypatch):
    gpu = SimpleNamespace(L2_CACHE_SIZE=50 * 2**20)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    bytes_of_one = [problem.min_bytes(BF16) for problem in STEPS[-1].benched[:2]]
    assert [_harness.count_operand_sets(count, bench.TABLE.l2_multiple) for count in bytes_of_one] == [2, 1]


@pytest.mark.needs("gpu", "torch")
@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_torch_computes_what_the_problem_expects(layout):
    for format, most in ((FP16, 2e-3), (BF16, 1e-2)):
        problem = Problem(2, 8, 1, 64, 300, 2, layout=layout)
        before = problem.operands(format)
        for way in bench.baselines(problem, format).values():
            (operands,) = _harness.copies_on_gpu(before, 1)
            launch = way(problem, format, *operands)
            assert _harness._error(problem, problem.expected(before, format), launch, before, operands, format) < most

"""The bench of decoding by heads of the cache and by queries: what it times, and beside what."""

from labkit.bench import _torch
from labkit.bench import decode_shapes as bench
from labkit.formats import BF16


def test_heads_divide_the_bytes_and_queries_leave_them(monkeypatch):
    by_heads, by_queries = (
        [problem for problem in bench.problems() if (problem.queries == 1) == single] for single in (True, False)
    )
    sizes = [problem.min_bytes(BF16) for problem in by_heads]
    assert [round(sizes[0] / size) for size in sizes] == [1, 4, 8, 32]
    assert len({problem.flops for problem in by_heads}) == 1
    assert all(1 <= problem.min_bytes(BF16) / sizes[1] < 1.01 for problem in by_queries)
    monkeypatch.setattr(_torch, "is_installed", lambda: True)
    assert [list(bench.baselines(problem, BF16)) for problem in (by_heads[0], by_queries[0])] == [
        ["flash", "cuDNN"],
        [],
    ]

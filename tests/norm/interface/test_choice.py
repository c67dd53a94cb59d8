"""Which step takes a norm of rows: one that takes its width, whatever that is."""

import pytest
from described import described

from labkit import norm
from labkit.arrays.workspace import CountingWorkspace
from labkit.calls import tuning
from labkit.formats import BF16, FP16, FP32
from labkit.norm.interface.choice import choose_step

PROBLEMS = norm.RowForward, norm.RowBackward


@pytest.fixture(autouse=True)
def nothing_is_tuned(monkeypatch, tmp_path):
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    tuning._stored_choices.cache_clear()
    yield
    tuning._stored_choices.cache_clear()


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
@pytest.mark.parametrize("of", PROBLEMS)
@pytest.mark.parametrize("columns", [1, 512, 513, 1025, 8191, 8192, 8193, 32_769, 65_536, 114_688, 131_072])
def test_there_is_a_step_for_rows_of_any_width(of, columns, format):
    problem = of(1, columns, "rms")
    step, launches = choose_step(described(problem, format), problem, format, CountingWorkspace())
    assert step.problem is of and launches


@pytest.mark.parametrize(("columns", "format"), [(100, FP32), (3000, BF16), (333, FP16), (20_000, FP32)], ids=str)
@pytest.mark.parametrize("of", PROBLEMS)
def test_the_step_is_right(of, columns, format):
    problem = of(3, columns)
    before = problem.operands(format)
    step = choose_step(before[:-1], problem, format, CountingWorkspace()).step
    assert problem.is_right(before, step.simulate(*before, format=format).operands, format)


def test_the_widest_rows_are_read_again_or_refused():
    for problem, format, slug in (
        (norm.RowForward(1, 131_073), FP32, "three_reads"),
        (norm.RowBackward(1, 131_073), BF16, "sums_first"),
    ):
        assert choose_step(described(problem, format), problem, format, CountingWorkspace()).step.slug == slug
    problem = norm.RowForward(1, 131_073)
    with pytest.raises(
        ValueError, match="clusters: a row has 131073 values, and a cluster keeps 131072.*: convert them"
    ):
        choose_step(described(problem, BF16), problem, BF16, CountingWorkspace())

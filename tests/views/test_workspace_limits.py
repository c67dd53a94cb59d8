"""Who is first within a limit of workspace, held against the rankings with that limit."""

import pytest

from labkit import conv
from labkit.views import workspace_limits
from labkit.views.workspace_limits import MB

LAYER = conv.Forward(64, 32, 28, 28, 64, 3, 3)
LIMITS = (0, 4, 1000, None)


@pytest.fixture(scope="module")
def view():
    return workspace_limits(LAYER, LIMITS)


def test_dots_are_the_rankings_with_each_limit(view):
    for limit_mb, dots in zip(LIMITS, view.data["steps"]):
        ranking = conv.heuristic(LAYER, workspace_limit_bytes=None if limit_mb is None else limit_mb * MB)
        within = [row for row in ranking if not row.reason]
        assert [dot["name"] for dot in dots if dot["fits"]] == [str(row.algorithm) for row in within]
        assert [dot["time_ms"] for dot in dots if dot["fits"]] == [row.time_ms for row in within]
        assert all(limit_mb is None or dot["workspace_mb"] <= limit_mb for dot in dots if dot["fits"])
        assert all(dot["workspace_mb"] > limit_mb for dot in dots if not dot["fits"])


def test_no_algorithm_leaves_the_picture(view):
    names = [{dot["name"] for dot in dots} for dots in view.data["steps"]]
    assert all(step == names[-1] for step in names)


def test_the_sentence_names_the_first_and_what_the_limit_costs(view):
    first, last = view.data["say"][0], view.data["say"][-1]
    assert first.startswith("No workspace:") and "implicit_gemm" in first and "x** the time of the best" in first
    assert last.startswith("Any workspace: 12 of 12") and last.endswith("the best there is.")
    slowdown = [dots[0]["time_ms"] / view.data["steps"][-1][0]["time_ms"] for dots in view.data["steps"]]
    assert slowdown == sorted(slowdown, reverse=True) and slowdown[0] > 1.3


def test_a_still_picture(view, tmp_path):
    view.save_png(tmp_path / "limits.svg", step=1)
    assert "implicit_gemm" in (tmp_path / "limits.svg").read_text()

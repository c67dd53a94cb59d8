"""Streams and graphs of torch: nothing is computed too early, and nobody's workspace is another's."""

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.needs("gpu", "torch")

from . import streams_of_torch as cases  # noqa: E402 - which needs torch


@pytest.mark.parametrize("name", cases.WITH_WORKSPACE)
def test_graphs_that_replay_at_once_share_no_workspace(name):
    assert cases.wrong_replays(cases.WITH_WORKSPACE[name]) == 0


@pytest.mark.parametrize("name", cases.ON_CURRENT_STREAM)
def test_calls_follow_the_work_of_torchs_current_stream(name):
    assert cases.wrong_calls(cases.ON_CURRENT_STREAM[name]) == 0

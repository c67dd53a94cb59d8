"""Questions to plain functions: they ask about possible convolutions, and right answers agree with the library."""

import numpy as np

from labkit.attention import AttentionForward, traffic
from labkit.conv.interface.algorithms import find_algorithm
from labkit.exercises import exercise
from labkit.exercises.choose_a_sort import times_ns
from labkit.exercises.choose_the_attention_tile import SIDES, count_tiles
from labkit.exercises.does_it_apply import find_misfit
from labkit.formats import format_named


def asked(id, seeds=range(4)):
    return [call for seed in seeds for questions in exercise(id).make_launches(seed) for call in questions.calls]


def test_what_applies_is_what_the_library_takes_whatever_is_drawn():
    step = find_algorithm("winograd/f4x4", "y")
    calls = asked("does-it-apply")
    reasons = [find_misfit(problem, format) for problem, format in calls]
    assert [bool(why) for why in reasons] == [bool(step.misfit(problem, format_named(it))) for problem, it in calls]
    assert 0.2 < sum(map(bool, reasons)) / len(reasons) < 0.8


def test_every_call_is_a_convolution_whose_groups_are_whole():
    for (call,) in asked("the-key-of-a-cache"):
        channel = 1 if call.layout == "NCHW" else 3
        groups, rest = divmod(call.x[channel], call.w[channel])
        assert groups > 0 == rest == call.w[0] % groups, call


def test_each_sort_is_often_the_right_one():
    times = [times_ns(*call) for call in asked("choose-a-sort")]
    fastest = [min(of, key=of.get) for of in times]
    assert all(fastest.count(name) > 0.15 * len(fastest) for name in ("insertion", "merge", "counting"))


def test_keys_that_blocks_bring_are_those_of_the_formulas_that_are_counted():
    rng = np.random.default_rng(16)
    for queries, keys, head_dim, causal, *limits in asked("choose-the-attention-tile"):
        _, brought, rounds = count_tiles(queries, keys, head_dim, causal, *limits)
        at = row, column = tuple(rng.integers(len(SIDES), size=2))
        problem = AttentionForward(1, 1, queries, head_dim, keys=keys, causal=causal)
        side = int(SIDES[row]), int(SIDES[column])
        assert brought[at] * head_dim * 4 == traffic.q_outer(problem, *side)["K"]
        assert rounds[at] == traffic.tiles(problem, *side)

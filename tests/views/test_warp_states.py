"""What warps do in each step: a bar has the recorded shares, and the sentence names the longest wait."""

import pytest

from labkit.bench import stalls
from labkit.results import Results
from labkit.views import warp_states

H100 = {"gpu": "NVIDIA H100 80GB HBM3", "date": "2026-11-27"}


def rows(step, **percents):
    shares = dict.fromkeys([*stalls.STATES, "busy"], 0.0) | {name.replace("_", " "): v for name, v in percents.items()}
    return [
        {"step": step, "ladder": "tensor", "dtype": "bfloat16", "state": state, "percent": percent}
        for state, percent in shares.items()
    ]


def test_the_sentence_names_the_last_steps_longest_wait(tmp_path):
    record = Results("stalls", H100, [*rows("slow", global_memory=100), *rows("fast", shared_memory=60.4, busy=39.6)])
    view = warp_states("tensor", "A title", ["slow", "fast"], record)
    assert view.sentence == (
        "In fast the tensor cores are busy in 40% of the cycles. "
        "Its warps wait most for shared memory: 60% of their time."
    )
    assert view.data["table"]["rows"][1] == ["fast", "0.0%", "0.0%", "0.0%", "60.4%", "0.0%", "0.0%", "0.0%", "39.6%"]
    view.save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_a_recorded_bar_is_whole():
    """The states that are drawn leave less than 2% of a warp's cycles out."""
    for ladder in stalls.LADDERS:
        slugs = [step.slug for name, step, *_ in stalls.steps() if name == ladder]
        for _, *shares, _ in warp_states(ladder, "A title", slugs).data["table"]["rows"]:
            assert sum(float(share.rstrip("%")) for share in shares) == pytest.approx(100, abs=2)


def test_a_step_that_was_not_profiled_is_refused():
    with pytest.raises(ValueError, match="no split of the ladder tensor"):
        warp_states("tensor", "A title", ["split"])


@pytest.mark.parametrize(
    "ladder, words, unit",
    [("fp32", "at a barrier", "multiply-add units"), ("tensor", "at a barrier, or for wgmma", "tensor cores")],
)
def test_words_are_those_of_the_ladders_kernels_and_plain(ladder, words, unit):
    slugs = [step.slug for name, step, *_ in stalls.steps() if name == ladder]
    data = warp_states(ladder, "A title", slugs).data
    assert words in [text for _, _, text in data["legend"]] and words in data["table"]["columns"]
    assert not [text for _, _, text in data["legend"] if "`" in text]
    assert data["table"]["columns"][-1] == f"{unit} busy"

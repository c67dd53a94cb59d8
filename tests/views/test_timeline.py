"""Ideas at their years, and GPUs from generation to generation."""

import re
from dataclasses import replace

import pytest

from labkit.views import Idea, generations, timeline

IDEAS = [
    Idea(2018, "Milakov and Gimelshein", "Online normalizer", "online softmax", "arithmetic", "17"),
    Idea(1965, "Cooley and Tukey", "An Algorithm", "the FFT", "arithmetic", "12"),
    Idea(2022, "NVIDIA", "Hopper", "TMA", "hardware", "08"),
]


def test_ideas_come_in_the_order_of_their_years():
    view = timeline("A title", IDEAS)
    assert [row[0] for row in view.data["table"]["rows"]] == ["1965", "2018", "2022"]
    assert view.sentence == "3 ideas from 1965 to 2022: 1 before 2011, 2 since then."
    assert view.data["charts"]["wide"].count("Cooley and Tukey") == 1
    assert "Cooley" not in view.data["charts"]["narrow"], "names stand in the table where there is no room"
    assert [text for *_, text in view.data["legend"]][2] == "hardware (1)"


def test_the_ideas_of_the_book_fit_one_screen():
    ideas = [replace(IDEAS[0], year=1962 + 2 * at) for at in range(32)]
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', timeline("A title", ideas).data["charts"]["wide"])
    assert found
    width, height = map(float, found.groups())
    assert height / width * 902 <= 599 - 30, "pixels at the usual width, beside the legend's line"


def test_an_idea_has_a_known_kind():
    with pytest.raises(ValueError, match="kinds arithmetic, memory, hardware"):
        timeline("A title", [Idea(1, "", "", "", "luck", "")])
    with pytest.raises(ValueError, match="kinds"):
        timeline("A title", [])


def test_generations_follow_the_published_figures(tmp_path):
    view = generations("A title", steps={"V100": 67})
    assert view.sentence == (
        "From V100 to B200 the peak (float16 tensor) grows 18x, bandwidth 8.56x. The ridge moves from 139 to "
        "292 FLOP/byte."
    )
    rows = view.data["table"]["rows"]
    assert [row[0] for row in rows] == ["V100", "A100 SXM", "H100 SXM", "B200"]
    assert [row[-1] for row in rows] == ["67", "", "", ""]
    assert "67 steps" in view.data["charts"]["wide"]
    view.save_png(tmp_path / "view.png", dpi=40)
    timeline("A title", IDEAS).save_png(tmp_path / "view.png", dpi=40)
    with pytest.raises(ValueError, match="at least two"):
        generations("A title", ["V100"])

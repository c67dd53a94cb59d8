"""Grades in a terminal: each line fits, whatever its width, and nothing is lost."""

from io import StringIO

import pytest
from rich.console import Console

from labkit.exercises import exercise_ids
from labkit.grading.grades import Grade
from labkit.grading.reports.terminal import print_grades

WORDS = "A_tile[0, 3] of shared memory is read by block (0, 0), thread (1, 2) before any thread has written it."
IDS = exercise_ids("tiled-gemm")
ROWS = [
    *[Grade("ada", "", id, 0, 2, "Nothing was handed in.", 7, "missing") for id in IDS[:3]],
    Grade("ada", "ada/03.ipynb", IDS[3], None, 4, WORDS, 7, "not graded"),
    Grade("ben", "ben/03.ipynb", IDS[0], 2, 2, "Solved.", 7, "solved"),
    Grade("eve", f"eve/{'long' * 30}.ipynb", "", 0, 0, "\u6f22\u5b57" * 40, 7, "unreadable"),
]


def printed(width):
    file = StringIO()
    print_grades(ROWS, Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_line_fits_and_all_is_said(width):
    text = printed(width)
    assert all(Console().measure(line).maximum <= width for line in text.splitlines())
    plain = " ".join(text.split())
    assert plain.count("Nothing was handed in.") == 1 and "03.1, 03.2, 03.3: 0 of 6 points" in plain
    assert WORDS in plain and f"eve/{'long' * 30}.ipynb" in plain.replace(" ", "")
    assert text.replace("\n", "").replace(" ", "").count("\u6f22\u5b57") == 40
    assert "ben: 2 of 2 points" in text and "Solved." not in text
    assert "The sizes were drawn with --seed 7." in plain


def test_a_wide_terminal_has_a_line_for_each_reason():
    assert printed(200).splitlines()[:3] == [
        "ada: 0 of 10 points",
        "    03.1, 03.2, 03.3: 0 of 6 points",
        "        Nothing was handed in.",
    ]

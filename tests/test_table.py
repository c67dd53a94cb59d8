"""Tables in a notebook: readable as text, safe as HTML, folded where they are long."""

import re

from labkit.book import Table


def test_text_is_aligned_and_numbers_stand_to_the_right():
    table = Table(("name", "count"), [("a", 5), ("longer", 12_000)])
    assert repr(table).splitlines() == ["name     count", "a            5", "longer  12,000"]


def test_numbers_are_short():
    numbers = 0.123456, 52156.5, 2.0, 999.4, 999.9, -999.9
    short = ["0.123", "52,156", "2", "999", "1,000", "-1,000"]
    assert repr(Table(("x",), [(number,) for number in numbers])).split()[1:] == short


def test_numbers_as_text_stand_to_the_right_in_whatever_row():
    table = Table(("step", "share", "TFLOP/s"), [("tiled", "1.5", ""), ("rows", "10.25", 7), ("rest", "-", 12)])
    assert repr(table).splitlines() == [
        "step   share  TFLOP/s",
        "tiled    1.5",
        "rows   10.25        7",
        "rest   -           12",
    ]


def test_html_escapes_what_it_shows_and_marks_code():
    (html,) = {Table(("<b>",), [("`a<b` & c",)])._repr_html_()}
    assert "&lt;b&gt;</th>" in html
    assert "<code>a&lt;b</code> &amp; c</td>" in html


def test_a_long_table_is_folded_under_a_line():
    table = Table(("x",), [("y",)], folded="All of it")
    assert table._repr_html_().startswith("<details><summary>All of it</summary><table>")
    assert "All of it" not in repr(table)


def test_a_table_without_rows_has_its_headings():
    assert repr(Table(("a", "b"), [])) == "a  b"


def test_in_html_numbers_stand_to_the_right_and_so_does_their_heading():
    html = Table(("name", "error", "share", "none"), [("f2x2", "1.8e-07", "-12%", ""), ("4", "", "3,000.5", "")])
    sides = re.findall(r"<t[hd][^>]*text-align: (\w+)[^>]*>([^<]+)<", html._repr_html_())
    assert {text: side for side, text in sides} == {
        "name": "left",
        "error": "right",
        "share": "right",
        "none": "left",
        "f2x2": "left",
        "1.8e-07": "right",
        "-12%": "right",
        "4": "right",
        "3,000.5": "right",
    }

import inspect
import re
from html import unescape
from itertools import pairwise

import pytest

from labkit import gemm
from labkit.book import diff

LADDER = gemm.ladder("fp32")
PAIRS = list(pairwise(LADDER))


def source(step):
    return inspect.getsource(step.module).splitlines()


@pytest.mark.parametrize("before, after", PAIRS, ids=lambda step: step.slug)
def test_lines_are_those_of_the_two_files_in_their_order(before, after):
    found = diff(before, after)
    for step, marks in ((before, " -"), (after, " +")):
        lines = iter(source(step))
        assert all(text in lines for mark, text in filter(None, found.lines) if mark in marks)


def test_what_changed_is_marked():
    found = diff(gemm.step("fp32", "naive"), gemm.step("fp32", "coalesced"))
    changed = [line for line in found.lines if line and line[0] != " "]
    assert ("-", "    row, col = cuda.grid(2)") in changed and ("+", "    col, row = cuda.grid(2)") in changed
    assert len(changed) == 4  # that line, and the kernel's name


def test_imports_docstrings_and_launch_are_left_out():
    text = repr(diff(*PAIRS[2]))
    assert "import" not in text and '"""' not in text and "def launch" not in text and "def geometry" not in text


def test_equal_lines_far_from_a_change_are_left_out():
    found = diff(*PAIRS[0])
    assert None in found.lines and len(found.lines) < 15


def test_as_html_it_says_the_same():
    found = diff(*PAIRS[0])
    html = unescape(re.sub("<style>.*?</style>|<p>.*?</p>|<[^>]*>", "", found._repr_html_(), flags=re.S))
    expected = [f"{line[0]}{line[1]}".rstrip() if line else "   ⋮" for line in found.lines]
    assert [line.rstrip() for line in html.splitlines()] == expected


def test_a_long_list_is_folded():
    steps = gemm.step("tensor", "wgmma"), gemm.step("tensor", "persistent")
    html = diff(*steps, folded="wgmma -> persistent")._repr_html_()
    assert "<details><summary>wgmma -&gt; persistent</summary><p>" in html and html.endswith("</details>")
    assert "<details>" not in diff(*steps)._repr_html_()

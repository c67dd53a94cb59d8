"""Who applies, held against the rankings that it is made of."""

import pytest

from labkit import conv
from labkit.views import suitability

PLAIN = {"N": 2, "C": 8, "H": 20, "W": 20, "K": 8, "R": 3, "S": 3}
PROBLEMS = {
    "plain": conv.Forward(**PLAIN),
    "stride 2": conv.Forward(**PLAIN, stride_h=2, stride_w=2),
    "channels last": conv.Forward(**PLAIN, layout="NHWC"),
    "16 bits": (conv.Forward(**PLAIN, layout="NHWC"), "bfloat16"),
}


@pytest.fixture(scope="module")
def view():
    return suitability(PROBLEMS)


def test_a_family_applies_if_one_of_its_algorithms_does(view):
    for problem, row in zip(PROBLEMS.values(), view.data["cells"]):
        ranking = conv.heuristic(*problem) if isinstance(problem, tuple) else conv.heuristic(problem)
        applying = {str(algorithm).partition("/")[0] for algorithm in ranking.candidates}
        assert {family for family, cell in zip(view.data["families"], row) if cell["applies"]} == applying
        told = {name: words for cell in row for name, words in cell["lines"]}
        assert set(told) == {str(one.algorithm) for one in ranking}
        for one in ranking:
            assert told[str(one.algorithm)] == one.reason or told[str(one.algorithm)].startswith("applies, predicted")


def test_the_sentence_names_those_that_apply(view):
    assert view.data["say"][1].startswith("**stride 2**:") and "`winograd`" in view.data["say"][1].split(";")[1]
    assert view.data["say"][2] == "**channels last**: no algorithm here applies."
    assert view.data["say"][3].startswith("**16 bits**: `tensor` applies;")


def test_the_table_and_a_still_picture(view, tmp_path):
    columns, rows = (view.data["table"][name] for name in ("columns", "rows"))
    at = columns.index("winograd")
    assert [row[at] for row in rows] == ["yes", "no", "no", "no"]
    view.save_png(tmp_path / "who.svg", step=1)
    assert (tmp_path / "who.svg").read_text().count("yes") == sum(row.count("yes") for row in rows)

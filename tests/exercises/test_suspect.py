"""No line of a wrong result is blamed that is right.

Of 817 answers with a wrong result 12 got the right line when this was written, and none a wrong one. To blame the line
that stores, as verdicts did before, was right for 159 and wrong for 658.
"""

from difflib import SequenceMatcher

import pytest
from answers import answers
from exercise_cells import cell, function
from sampling import sampled

from labkit.checking.check import judge
from labkit.checking.source import run_cell
from labkit.checking.suspect import Suspicion, find_suspect
from labkit.exercises import exercise, exercise_ids
from labkit.trace import Finding

CASES = [
    pytest.param(id, case, id=f"{id} {case.what}")
    for id in exercise_ids()
    if exercise(id).machine != "python"
    for kind in ("VARIANTS", "WRONG")
    for case in answers(id, kind)
    if case.reason in ("result", "wrong") and not case.cell
]
KERNEL = """def scale(x, y, n):
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(n):
        {}
    if i < y.size:
        y[i] = total
"""


def changed_lines(solution, text):
    """The lines of a text that are not the solution's, and each line where some of the solution's are left out."""
    matcher = SequenceMatcher(None, solution.splitlines(), text.splitlines(), autojunk=False)
    changes = [range(first, max(last, first + 1)) for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal"]
    return {line + 1 for lines in changes for line in lines}


@pytest.mark.parametrize(("id", "case"), sampled(CASES, 30))
@pytest.mark.sample(6)
def test_a_blamed_line_is_one_that_was_changed(id, case):
    text = case.source(cell(id))
    verdict = judge(exercise(id), function(id, text, f"<{id} {case.what}>"), 1)
    if verdict.reason == "result" and verdict.line is not None:
        assert verdict.line in changed_lines(cell(id), text), verdict
        assert verdict.cause or f"Look at line {verdict.line}: " in verdict.message


@pytest.mark.parametrize("what", ["y subtracted", "a forgotten", "a added"])
def test_the_line_is_blamed_where_all_others_are_as_usual(what):
    (case,) = [case for case in answers("write-saxpy", "VARIANTS") if case.what == what]
    text = case.source(cell("write-saxpy"))
    verdict = judge(exercise("write-saxpy"), function("write-saxpy", text), 1)
    assert {verdict.line} == changed_lines(cell("write-saxpy"), text)


def suspect(line, *findings):
    scale = run_cell(KERNEL.format(line), f"<{line}>", {})["scale"]
    return find_suspect(scale, "y", findings)


@pytest.mark.parametrize(
    ("line", "blamed"),
    [
        ("total += x[k] * x[k]", 5),
        ("total = x[k]", 5),
        ("y[i] += x[k]", None),  # the line that sets y first may be gone
        ("total += helper(x[k])", None),  # the helper may be wrong
        ("total += x[i + k] if k else np.float32(1)", 5),
        ("j = k + 1; total += x[j]", 5),
    ],
)
def test_what_may_be_wrong_elsewhere_is_blamed_on_no_line(line, blamed):
    assert suspect(line).line == blamed


def test_advice_on_the_way_is_told_and_of_other_lines_is_not():
    told = Finding("negative-index", "advice", "Line 5: thread 0 reads x[-1].", 5)
    assert suspect("total += x[k - 1]", told) == Suspicion(5, told.message)
    assert suspect("total += x[k - 1]", Finding("negative-index", "advice", "Line 9: other.", 9)).told == ""
    assert suspect("total += x[k - 1]", Finding("uncoalesced", "advice", "Line 5: slow.", 5)).told == ""

"""Answers are judged from their text: nothing of it runs, and right answers of every kind are right."""

import json
import subprocess
import sys

import pytest
from handed_in import SAXPY, setup_texts, solutions
from sampling import sampled

from labkit.checking.as_text import MAX_CHARACTERS
from labkit.grading import picture, plugin
from labkit.grading.judge import Judge


@pytest.fixture
def judged(capsys, tmp_path):
    """Judges answers to a chapter; by exercise the line that is printed, then the details."""
    details = tmp_path / "details.jsonl"

    def judge(text, **others):
        of_notebook = Judge(setup_texts("first-gpu-matmul"), seed=1, details=str(details))
        verdicts = {}
        for id, answer in {"write-saxpy": text, **others}.items():
            details.write_text("")
            of_notebook(id, answer)
            verdicts[id] = [*capsys.readouterr().out.splitlines(), *details.read_text().splitlines()]
        return verdicts

    return judge


@pytest.mark.parametrize(
    "text",
    [
        "%matplotlib inline\n" + SAXPY + "saxpy[1, 1](1, 2, 3, 4)\nprint('done')",
        SAXPY.replace("cuda.jit", "cuda.jit(fastmath=True)"),
        "import math as m\nfrom numba import float32 as f\nHALF: int = 2 ** 4 // 32\n"
        "@cuda.jit(device=True)\ndef twice(v):\n    return v * f(1) + HALF\n"
        + SAXPY.replace("x[i] +", "twice(x[i]) +"),
        "WORD = '\\d'" + SAXPY + "    print('solved')",
    ],
)
def test_right_answers_are_right_whatever_stands_around_them(judged, text):
    assert judged(text)["write-saxpy"] == ["solved"]


@pytest.mark.parametrize(
    "forgery",
    sampled(
        [
            "def check(id, kernel):\n    return 'solved'\ndef saxpy(*a): pass",
            "import labkit.checking.check as c\nc.judge = print\n@cuda.jit\ndef saxpy(a, x, y, out):\n    out[0] = 1",
            "def evil(f):\n    return f\n@evil\ndef saxpy(a, x, y, out):\n    pass",
            "@cuda.jit\ndef saxpy(a, x, y, out=print('forged')):\n    pass",
            "saxpy = print",
            "saxpy = cuda.jit(lambda a, x, y, out: None)",
            "@cuda.jit\ndef saxpy(a, x, y, out):\n    print('solved')",
        ],
        3,
    ),
)
def test_a_forged_check_earns_nothing(judged, forgery):
    assert judged(forgery)["write-saxpy"][0] == "not solved"


def test_nothing_of_an_answer_runs(judged, tmp_path):
    mark = tmp_path / "mark"
    touch = f"open({str(mark)!r}, 'w')"
    text = (
        f"{touch}\nA = {touch}\n@cuda.jit({touch})\ndef saxpy(a, x: {touch}, y, out={touch}) -> {touch}:\n    {touch}"
    )
    assert judged(text + SAXPY.replace("@cuda.jit", "@cuda.jit\n@" + touch))["write-saxpy"][0] == "not solved"
    assert not mark.exists()


def test_an_answer_may_use_what_an_earlier_one_defines_and_lines_are_its_own(judged):
    add = "\n\n@cuda.jit\ndef add(A, B, C):\n    col, row = cuda.grid(2)\n    if row < N:\n        C[row, col] = 1"
    verdicts = judged("N = 10\n" + SAXPY, **{"rows-and-columns": add})
    assert verdicts["write-saxpy"] == ["solved"]
    said = json.loads(verdicts["rows-and-columns"][1])
    assert said["line"] == 7 and said["message"].endswith(": rows 10 to 15.")


def test_a_cause_is_told_of_all_sizes_and_wrong_elements_of_published_ones_alone(judged):
    in_part = SAXPY.replace("+ y[i]", "+ (y[i] if i % 100 > 60 or i % 7 > 3 else 0)")
    for text, hidden in ((in_part, False), (in_part.replace(" or", " or i < 1100 or"), True)):
        said = json.loads(judged(text)["write-saxpy"][1])
        assert ("drawn with seed" in said["launch"], said["pattern"] == "") == (hidden, hidden), said
    subtracted = SAXPY.replace("+ y[i]", "+ (y[i] if out.size < 1100 else -y[i])")
    said = json.loads(judged(subtracted)["write-saxpy"][1])
    assert "drawn with seed" in said["launch"] and said["cause"] == "y were subtracted"


def test_an_error_of_syntax_is_told_with_its_line(judged):
    said = json.loads(judged("x = 1\ndef saxpy(")["write-saxpy"][1])
    assert (said["line"], said["message"]) == (2, "The cell fails in line 2: SyntaxError: '(' was never closed")


def test_the_answers_of_another_notebook_are_not_seen(judged):
    judged("N = 10\n" + SAXPY)
    assert judged(SAXPY.replace("out.size", "N"))["write-saxpy"][0] == "not solved"


def test_a_constant_that_would_take_for_ever_is_left_out(judged):
    assert judged("N = 9 ** 9 ** 9" + SAXPY)["write-saxpy"] == ["solved"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Your cell defines no function `saxpy`."),
        (SAXPY.replace("saxpy", "saxpi"), "Your cell defines no function `saxpy`; it defines `saxpi`."),
        (SAXPY + "saxpy = None", "Your cell defines `saxpy` and then gives the name another value: leave that out."),
        (SAXPY.replace("cuda.jit", "mine"), "`saxpy` is decorated with `mine`: keep the decorator that"),
    ],
)
def test_a_cell_without_its_function_is_told_what_it_defines(judged, text, said):
    assert json.loads(judged(text)["write-saxpy"][1])["message"].startswith(said)


@pytest.mark.parametrize(
    ("before", "line", "said"),
    [
        ("N = choose()", 1, "Line 1, `N = choose()`: the value of `N` is not known"),
        ("N = 4\nfor N in range(3):\n    pass", 2, "Line 2, `for N in range(3):`: the value of `N` is not known"),
        ("def choose():\n    N = 4\n\nM, N = choose()", 4, "Line 4, `M, N = choose()`: the value of `N`"),
        ("@mine\ndef N():\n    pass", 2, "Line 2: `N` is decorated with `mine`, which is not known here"),
    ],
)
def test_a_constant_that_only_running_the_cell_would_tell_is_named_with_its_line(judged, before, line, said):
    said_of = json.loads(judged(before + SAXPY.replace("out.size", "N"))["write-saxpy"][1])
    assert said_of["line"] == line
    assert said_of["message"].startswith(said)


def test_a_constant_of_an_earlier_answer_is_named_too(judged):
    add = "@cuda.jit\ndef add(A, B, C):\n    C[0, 0] = N"
    said = json.loads(judged("N = choose()" + SAXPY, **{"rows-and-columns": add})["rows-and-columns"][1])
    assert said["message"].startswith("The value of `N`, of an earlier cell, is not known")


def test_a_constant_of_a_helper_is_named_too(judged):
    helper = "A = choose()\n\n@cuda.jit(device=True)\ndef twice(v):\n    return v * A\n"
    said = json.loads(judged(helper + SAXPY.replace("x[i] +", "twice(x[i]) +"))["write-saxpy"][1])
    assert "the value of `A` is not known" in said["message"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x[i] +", "twice(x[i]) +", "Line 6: `twice` is not defined; if another cell defines it, move that into this"),
        ("x[i] +", "X[i] +", "Line 6: `X` is not defined (did you mean `x`?); if"),
        ("[i]", "[j]", "Line 6: `j` is not defined; if"),
        ("cuda.grid", "grid", "Line 4: `grid` is not defined (did you mean `cuda.grid`?); if"),
        ("x[i] +", "erf(x[i]) +", "Line 6: `erf` is not defined (write `from math import erf` above the function)."),
        ("x[i] +", "math.erf(x[i]) +", "Line 6: `math` is not defined (write `import math` above the function)."),
        ("x[i] +", "operator.abs(x[i]) +", "Line 6: `operator` is not defined (write `import operator` above the"),
        ("out.size", "SIZES", "Line 5: `SIZES` is not defined (did you mean `SIZE`?); if"),
    ],
)
def test_a_name_that_nothing_defines_is_told_with_what_to_do(judged, old, new, said):
    text = SAXPY.replace(old, new).replace("y[", "y[0 *\\\n        ") + "SIZE = 4\n"
    assert json.loads(judged(text)["write-saxpy"][1])["message"].startswith(said)


def test_a_name_that_nothing_defines_is_told_of_a_helper_too(judged):
    helper = "@cuda.jit(device=True)\ndef twice(v):\n    return v * factor\n"
    said = json.loads(judged(helper + SAXPY.replace("x[i] +", "twice(x[i]) +"))["write-saxpy"][1])
    assert (said["line"], "`factor` is not defined; if another" in said["message"]) == (3, True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def saxpy(", "syntax"),
        ("\0", "syntax"),
        ("(" * 5000, "syntax"),
        ("# " + "x" * MAX_CHARACTERS, "too long"),
        ("", "not a kernel"),
    ],
)
def test_what_cannot_be_read_is_no_stumbling_block(judged, text, reason):
    verdicts = judged(text, **{"rows-and-columns": "x = 1"})
    assert json.loads(verdicts["write-saxpy"][1])["reason"] == reason
    assert json.loads(verdicts["rows-and-columns"][1])["reason"] == "not a kernel"


def test_the_longest_judgement_is_read_whole(judged, monkeypatch):
    """Or a student could choose not to be graded."""
    name = "\U00020000" * 20_000
    drawn = '"' * picture.MAX_CHARACTERS, "\U00020000" * 20_000
    monkeypatch.setattr("labkit.grading.judge.draw_picture", lambda *_: drawn)
    said = judged(f"{name} = 0" + SAXPY + f"        x[i + {name}] = 1")["write-saxpy"][1]
    assert json.loads(said)["reason"] == "input changed"
    assert len(said) < plugin.MAX_DETAILS - 100


def test_what_is_too_much_for_ipython_is_told_so(judged, monkeypatch):
    monkeypatch.setattr("IPython.core.inputtransformer2.TRANSFORM_LOOP_LIMIT", 3)
    said = json.loads(judged("!x\n" * 4)["write-saxpy"][1])
    assert said["reason"] == "syntax" and "RuntimeError" in said["message"]


def test_many_magics_are_told_at_once(judged):
    for magic in ("%time x", "!ls", "saxpy?"):
        said = json.loads(judged(f"{magic}\n" * 51 + SAXPY)["write-saxpy"][1])
        assert "the cell has 51 lines of magics, and 50 are read: leave them out" in said["message"]
        assert judged(f"{magic}\n" * 3 + SAXPY)["write-saxpy"] == ["solved"]


def test_an_answer_has_a_limit_of_cpu_time(judged, monkeypatch):
    """Whatever handles errors on the way; and the next answer is judged as if nothing had been."""

    def compute_for_ever(*_):
        while True:
            try:
                sum(range(1000))
            except Exception:
                pytest.fail("it was handled")

    with monkeypatch.context() as patched:
        patched.setattr("labkit.grading.judge.CPU_S", 0.2)
        patched.setattr("labkit.grading.judge.judge", compute_for_ever)
        said = json.loads(judged(SAXPY)["write-saxpy"][1])
    assert said["reason"] == "too slow" and "longer than 0.2 s of computing" in said["message"]
    assert judged(SAXPY)["write-saxpy"] == ["solved"]


COMPILED = """
import gc
from numba.core.registry import CPUDispatcher
from labkit.exercises import exercise
from labkit.grading.judge import Judge, compile_checks

def compiled():
    return {one: len(one.signatures) for one in gc.get_objects() if isinstance(one, CPUDispatcher)}

compile_checks()
before = compiled()
judge = Judge(SETUPS, seed=1)
for id, text in ANSWERS.items():
    judge(id, text)
after = compiled()
print([str(one) for one in after if one.py_func.__module__.startswith("labkit") and after[one] != before.get(one)])
"""


def test_what_is_compiled_beforehand_is_all_that_answers_need():
    code = COMPILED.replace("SETUPS", ascii(setup_texts("tiled-gemm"))).replace(
        "ANSWERS", ascii(solutions("tiled-gemm"))
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["solved"] * 5 + ["[]"]

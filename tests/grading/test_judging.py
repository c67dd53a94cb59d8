"""Answers are judged from their text: nothing of it runs, and right answers of every kind are right."""

import pytest
from sampling import sampled

from labkit.grading.judging import judge_answers
from labkit.grading.rebuild import setups, solved_chapters

SAXPY = """
@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]
"""


def judged(text, **others):
    return judged_of("02", {"02.1": text, **others})


def judged_of(chapter, answers, timeout_s=60):
    return judge_answers(setups(solved_chapters()[chapter]), answers, seed=1, timeout_s=timeout_s)


@pytest.mark.parametrize(
    "text",
    [
        "%matplotlib inline\n" + SAXPY + "saxpy[1, 1](1, 2, 3, 4)\nprint('done')",
        SAXPY.replace("cuda.jit", "cuda.jit(fastmath=True)"),
        "import math as m\nfrom numba import float32 as f\nHALF: int = 2 ** 4 // 32\n"
        "@cuda.jit(device=True)\ndef twice(v):\n    return v * f(1) + HALF\n"
        + SAXPY.replace("x[i] +", "twice(x[i]) +"),
    ],
)
def test_right_answers_are_right_whatever_stands_around_them(text):
    assert judged(text)["02.1"].passed, judged(text)


@pytest.mark.parametrize(
    "forgery",
    sampled(
        [
            "def check(id, kernel):\n    return 'solved'\ndef saxpy(*a): pass",
            "import labkit.exercises.check as c\nc.judge = print\n@cuda.jit\ndef saxpy(a, x, y, out):\n    out[0] = 1",
            "def evil(f):\n    return f\n@evil\ndef saxpy(a, x, y, out):\n    pass",
            "@cuda.jit\ndef saxpy(a, x, y, out=print('forged')):\n    pass",
            "saxpy = print",
            "saxpy = cuda.jit(lambda a, x, y, out: None)",
        ],
        3,
    ),
)
def test_a_forged_check_earns_nothing(forgery):
    assert not judged(forgery)["02.1"].passed


def test_nothing_of_an_answer_runs(tmp_path):
    mark = tmp_path / "mark"
    touch = f"open({str(mark)!r}, 'w')"
    text = (
        f"{touch}\nA = {touch}\n@cuda.jit({touch})\ndef saxpy(a, x: {touch}, y, out={touch}) -> {touch}:\n    {touch}"
    )
    assert not judged(text + SAXPY.replace("@cuda.jit", "@cuda.jit\n@" + touch))["02.1"].passed
    assert not mark.exists()


def test_an_answer_may_use_what_an_earlier_one_defines_and_lines_are_its_own():
    add = "\n\n@cuda.jit\ndef add(A, B, C):\n    col, row = cuda.grid(2)\n    if row < N:\n        C[row, col] = 1"
    verdicts = judged("N = 10\n" + SAXPY, **{"02.2": add})
    assert verdicts["02.1"].passed
    assert "Line 7" in verdicts["02.2"].said


def test_a_constant_that_would_take_for_ever_is_left_out():
    assert judged("N = 9 ** 9 ** 9" + SAXPY)["02.1"].passed


def test_an_answer_that_takes_for_ever_costs_itself_alone():
    long = "@njit\ndef product(A, B, C):\n" + "    C[0, 0] = C[0, 0] * A[0, 0] + B[0, 0]\n" * 5000
    verdicts = judged_of("01", {"01.1": long, "01.2": "def add("}, timeout_s=15)
    assert "01.1" not in verdicts
    assert "SyntaxError" in verdicts["01.2"].said

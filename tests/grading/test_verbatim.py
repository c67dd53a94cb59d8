"""Answers copied from the book: only those that two people hardly write alike are reported."""

import time

import pytest
from handed_in import solutions

from labkit.book.chapter import exercise_cell_id
from labkit.exercises import chapter_of, exercise_ids
from labkit.grading.rebuild import read_chapters
from labkit.grading.verbatim import is_book_solution


def test_a_copy_is_one_whatever_its_comments_and_layout():
    text = solutions("tiled-gemm")["write-the-tiled-matmul"]
    assert is_book_solution("write-the-tiled-matmul", text)
    assert is_book_solution(
        "write-the-tiled-matmul", "# mine\nMINE = 3\n" + text.replace(" = ", "  =  ").replace("\n\n", "\n") + "\n"
    )
    assert not is_book_solution("write-the-tiled-matmul", text.replace("total", "sum_"))


def test_other_constants_make_another_answer():
    text = solutions("tiled-gemm")["write-the-tiled-matmul"]
    assert "TILE = 16\n" in text
    assert not is_book_solution("write-the-tiled-matmul", text.replace("TILE = 16\n", "TILE = 8\n"))


@pytest.mark.parametrize(
    "id",
    [
        "put-the-barrier-back",
        "pad-the-tile",
        "choose-the-tile",
        "the-last-block",
        "share-the-weights",
        "choose-the-register-tile",
    ],
)
def test_an_answer_of_a_line_or_a_number_is_nobody_s_own(id):
    assert not is_book_solution(id, solutions(chapter_of(id))[id])


def test_what_was_given_is_no_copy():
    given = {cell.id: cell.source for chapter in read_chapters().values() for cell in chapter.cells}
    assert not [id for id in exercise_ids() if is_book_solution(id, given[exercise_cell_id(id)])]


def test_most_of_the_book_s_answers_are_told():
    known = [id for id in exercise_ids() if is_book_solution(id, solutions(chapter_of(id))[id])]
    assert {
        "write-saxpy",
        "the-game-of-life",
        "write-the-tiled-matmul",
        "turn-it-over",
        "the-logarithm-of-the-sum",
        "cross-entropy-without-logits",
    } <= set(known)


def test_a_long_chain_of_names_is_followed_at_once():
    """The grader reads this in its own process, which has no limit of time."""
    chain = "\n".join(f"a{n} = a{n + 1}" for n in range(5000))
    started_s = time.monotonic()
    assert not is_book_solution(
        "write-the-tiled-matmul", f"TILE = a0\n{chain}\n" + solutions("tiled-gemm")["write-the-tiled-matmul"]
    )
    assert time.monotonic() - started_s < 5


@pytest.mark.parametrize("text", ["def tiled_matmul(", "", "\0", "(" * 5000, "!x\n%y\nz?\n" * 400])
def test_what_cannot_be_read_is_no_copy(text):
    assert not is_book_solution("write-the-tiled-matmul", text)

"""Which answers are told to be the book's own: those that hardly two people write alike."""

import time

import pytest
from handed_in import solutions

from labkit.book.chapter import exercise_cell_id
from labkit.exercises import exercise_ids
from labkit.grading.rebuild import chapters
from labkit.grading.verbatim import stands_in_the_book


def test_a_copy_is_one_whatever_its_comments_and_layout():
    text = solutions("03")["03.4"]
    assert stands_in_the_book("03.4", text)
    assert stands_in_the_book("03.4", "# mine\nMINE = 3\n" + text.replace(" = ", "  =  ").replace("\n\n", "\n") + "\n")
    assert not stands_in_the_book("03.4", text.replace("total", "sum_"))


def test_other_constants_make_another_answer():
    text = solutions("03")["03.4"]
    assert "TILE = 16\n" in text
    assert not stands_in_the_book("03.4", text.replace("TILE = 16\n", "TILE = 8\n"))


@pytest.mark.parametrize("id", ["03.1", "03.2", "03.3", "04.1", "04.3", "05.2"])
def test_an_answer_of_a_line_or_a_number_is_nobody_s_own(id):
    assert not stands_in_the_book(id, solutions(id[:2])[id])


def test_what_was_given_is_no_copy():
    given = {cell.id: cell.source for chapter in chapters().values() for cell in chapter.cells}
    assert not [id for id in exercise_ids() if stands_in_the_book(id, given[exercise_cell_id(id)])]


def test_most_of_the_book_s_answers_are_told():
    known = [id for id in exercise_ids() if stands_in_the_book(id, solutions(id[:2])[id])]
    assert {"02.1", "02.4", "03.4", "04.4", "15.1", "16.4"} <= set(known)


def test_a_long_chain_of_names_is_followed_at_once():
    """The grader reads this in its own process, which has no limit of time."""
    chain = "\n".join(f"a{n} = a{n + 1}" for n in range(5000))
    started_s = time.monotonic()
    assert not stands_in_the_book("03.4", f"TILE = a0\n{chain}\n" + solutions("03")["03.4"])
    assert time.monotonic() - started_s < 5


@pytest.mark.parametrize("text", ["def tiled_matmul(", "", "\0", "(" * 5000, "!x\n%y\nz?\n" * 400])
def test_what_cannot_be_read_is_no_copy(text):
    assert not stands_in_the_book("03.4", text)

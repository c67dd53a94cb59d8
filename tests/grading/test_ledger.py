"""The rows of a class: what is said of answers that are right, missing, or the book's own."""

from pathlib import Path

from handed_in import solutions

from labkit.grading.assessment import Assessment
from labkit.grading.judge import SOLVED, Judgement
from labkit.grading.ledger import HandedIn, Ledger
from labkit.grading.submission import Submission


def handed_in(chapter, **more):
    """Ann's notebook with the book's own answers."""
    return HandedIn("a.ipynb", "ann", Submission(Path("a.ipynb"), solutions(chapter), chapter=chapter, **more))


def test_of_right_answers_alone_it_is_told_that_they_are_the_book_s():
    ledger = Ledger([handed_in("tiled-gemm")], Assessment(), seed=1)
    ledger.add_judgement("a.ipynb", "put-the-barrier-back", Judgement(SOLVED, "Solved."))  # an answer of one line
    ledger.add_judgement("a.ipynb", "write-the-tiled-matmul", Judgement(SOLVED, "Solved."))
    assert [row.verbatim for row in ledger.grades()] == [False, False, False, True]
    ledger.add_judgement("a.ipynb", "write-the-tiled-matmul", Judgement("result", "Wrong."))
    assert not any(row.verbatim for row in ledger.grades())

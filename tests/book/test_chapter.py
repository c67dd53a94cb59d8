import pytest

from labkit.book.chapter import SourceError, read_chapter
from labkit.exercises.contents import Chapter, Contents

BOOK = Contents((Chapter("a-chapter", "99", ("pad-the-tile",)),))
SOURCE = """# A chapter

```{code-cell} ipython3
:tags: [setup]

import labkit
```

More text.

```{code-cell} ipython3
:tags: [exercise]
:exercise: pad-the-tile

def f(x):
    y = x
    ### BEGIN SOLUTION
    z = y + 1
    return z
    ### END SOLUTION


def g(x):
    ### BEGIN SOLUTION
    #| return x - 1
    #|
    return x + 1
    ### END SOLUTION
```

```{code-cell} ipython3
:tags: [check]
:exercise: pad-the-tile

check("pad-the-tile", f)
```
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "a-chapter.md"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def cell(notebook, id):
    return next(cell for cell in notebook.cells if cell.id == id)


def test_a_blank_has_dots_or_the_given_lines_in_place_of_the_solution(write):
    blank = read_chapter(write(SOURCE), BOOK).blank
    assert cell(blank, "exercise-pad-the-tile").source == (
        "def f(x):\n    y = x\n    ...\n\n\ndef g(x):\n    return x - 1\n"
    ).rstrip("\n")


def test_a_solved_notebook_has_the_solution_without_markers(write):
    solved = read_chapter(write(SOURCE), BOOK).solved
    assert cell(solved, "exercise-pad-the-tile").source == (
        "def f(x):\n    y = x\n    z = y + 1\n    return z\n\n\ndef g(x):\n    return x + 1"
    )


def test_cell_ids_come_from_the_chapter_and_the_exercise(write):
    ids = [cell.id for cell in read_chapter(write(SOURCE), BOOK).blank.cells]
    assert ids == [
        "a-chapter-text-001",
        "a-chapter-code-001",
        "a-chapter-text-002",
        "exercise-pad-the-tile",
        "check-pad-the-tile",
    ]


def test_only_the_solved_check_is_compared(write):
    chapter = read_chapter(write(SOURCE), BOOK)
    assert "nbval-check-output" in cell(chapter.solved, "check-pad-the-tile").metadata.tags
    assert "nbval-check-output" not in cell(chapter.blank, "check-pad-the-tile").metadata.tags


def test_jupyterlab_finds_a_kernel_without_asking(write):
    assert read_chapter(write(SOURCE), BOOK).blank.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":exercise: pad-the-tile\n\ncheck", ":exercise: 99.1\n\ncheck", "needs its exercise"),
        (":exercise: pad-the-tile\n\ncheck", ":exercise: pad-tile\n\ncheck", "no exercise 'pad-tile'"),
        ("[check]", "[other]", "check cell of pad-the-tile missing"),
        ("[setup]", "[exercise]\n:exercise: pad-the-tile", "exercise cell of pad-the-tile too many"),
        ("    return x + 1\n    ### END SOLUTION\n", "", "BEGIN SOLUTION"),
    ],
)
def test_a_faulty_source_is_refused_with_what_to_change(write, old, new, message):
    assert SOURCE.count(old) == 1
    with pytest.raises(SourceError, match=message):
        read_chapter(write(SOURCE.replace(old, new)), BOOK)

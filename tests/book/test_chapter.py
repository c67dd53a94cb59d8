import pytest

from labkit.book.chapter import SourceError, read_chapter

SOURCE = """# A chapter

```{code-cell} ipython3
:tags: [setup]

import labkit
```

More text.

```{code-cell} ipython3
:tags: [exercise]
:exercise: "99.1"

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
:exercise: "99.1"

check("99.1", f)
```
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setattr("labkit.book.chapter.exercise_ids", lambda number: ("99.1",))

    def write(text):
        path = tmp_path / "99-a-chapter.md"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def cell(notebook, id):
    return next(cell for cell in notebook.cells if cell.id == id)


def test_a_blank_has_dots_or_the_given_lines_in_place_of_the_solution(write):
    blank = read_chapter(write(SOURCE)).blank
    assert cell(blank, "exercise-99-1").source == (
        "def f(x):\n    y = x\n    ...\n\n\ndef g(x):\n    return x - 1\n"
    ).rstrip("\n")


def test_a_solved_notebook_has_the_solution_without_markers(write):
    solved = read_chapter(write(SOURCE)).solved
    assert cell(solved, "exercise-99-1").source == (
        "def f(x):\n    y = x\n    z = y + 1\n    return z\n\n\ndef g(x):\n    return x + 1"
    )


def test_cell_ids_come_from_the_chapter_and_the_exercise(write):
    ids = [cell.id for cell in read_chapter(write(SOURCE)).blank.cells]
    assert ids == ["99-text-001", "99-code-001", "99-text-002", "exercise-99-1", "check-99-1"]


def test_only_the_solved_check_is_compared(write):
    chapter = read_chapter(write(SOURCE))
    assert "nbval-check-output" in cell(chapter.solved, "check-99-1").metadata.tags
    assert "nbval-check-output" not in cell(chapter.blank, "check-99-1").metadata.tags


def test_jupyterlab_finds_a_kernel_without_asking(write):
    assert read_chapter(write(SOURCE)).blank.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (':exercise: "99.1"\n\ncheck', ":exercise: 99.1\n\ncheck", "in quotes"),
        ("[check]", "[other]", "check cell of 99.1 missing"),
        ("[setup]", '[exercise]\n:exercise: "99.1"', "exercise cell of 99.1 too many"),
        ("    return x + 1\n    ### END SOLUTION\n", "", "BEGIN SOLUTION"),
    ],
)
def test_a_faulty_source_is_refused_with_what_to_change(write, old, new, message):
    assert SOURCE.count(old) == 1
    with pytest.raises(SourceError, match=message):
        read_chapter(write(SOURCE.replace(old, new)))

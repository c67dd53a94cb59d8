import pytest

from labkit.book.chapter import SourceError, read_chapter
from labkit.book.site.chapters import page
from labkit.exercises import exercise
from labkit.exercises.contents import Chapter, Contents

BOOK = Contents((Chapter("roofline", "04", ("the-last-block",)), Chapter("a-chapter", "99", ("pad-the-tile",))))
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


def text(write, addition):
    chapter = read_chapter(write(SOURCE.replace("More text.", addition)), BOOK)
    return cell(chapter.blank, "a-chapter-text-002").source


def test_the_number_of_a_chapter_stands_in_its_title(write):
    assert cell(read_chapter(write(SOURCE), BOOK).blank, "a-chapter-text-001").source == "# 99 · A chapter"


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("See [](chapter:roofline).", "See [chapter 04](04-roofline.ipynb)."),
        ("[Chapters {}](chapter:roofline) and up", "[Chapters 04](04-roofline.ipynb) and up"),
        ("the [roof](chapter:roofline)", "the [roof](04-roofline.ipynb)"),
        ("in [](chapter:a-chapter), here", "in chapter 99, here"),
        ("[](exercise:pad-the-tile) and [{}](exercise:the-last-block)", "exercise 99.1 and [04.1](04-roofline.ipynb)"),
        ("### [](exercise:pad-the-tile)", "### Exercise 99.1 · Pad the tile (2 points)"),
        ("[](task:pad-the-tile) Go.", f"{exercise('pad-the-tile').task} Go."),
        ("[a page](https://a.org/chapter:x)", "[a page](https://a.org/chapter:x)"),
    ],
)
def test_what_is_named_by_slug_gets_number_title_and_link(write, written, built):
    assert text(write, written) == built


def test_code_names_numbers_and_has_no_links(write):
    chapter = read_chapter(write(SOURCE.replace("import labkit", "import labkit  # [](chapter:roofline)")), BOOK)
    assert cell(chapter.blank, "a-chapter-code-001").source == "import labkit  # chapter 04"


@pytest.mark.parametrize("reference", ["[](chapter:rooflines)", "[](exercise:pad-tile)", "[](task:pad-tile)"])
def test_a_reference_that_leads_nowhere_is_refused(write, reference):
    with pytest.raises(SourceError, match=r"a-chapter\.md: .*(leads nowhere|no exercise)"):
        text(write, reference)


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


def test_the_source_of_a_setup_cell_is_folded(write):
    setup, exercise = read_chapter(write(SOURCE), BOOK).blank.cells[1], read_chapter(write(SOURCE), BOOK).blank.cells[3]
    assert setup.metadata["jupyter"] == {"source_hidden": True}
    assert "jupyter" not in exercise.metadata


CHART = """# A chapter

```{code-cell} ipython3
shown = {"a step": "A step"}
records("layouts", "A title", series=shown)
```

```{code-cell} ipython3
used = {"another": "Another step"}
records("layouts", "A title", series=used)
```

```{code-cell} ipython3
trace = simulate(used)
for name in used:
    print(name)
records("layouts", "A title")
```
"""


def test_a_cell_that_only_draws_records_is_folded_unless_a_later_cell_needs_it(write, tmp_path):
    chapter = read_chapter(write(CHART), BOOK)
    for notebook in (chapter.blank, chapter.solved):
        folded = ["jupyter" in cell.metadata for cell in notebook.cells if cell.cell_type == "code"]
        assert folded == [True, False, False]
    chapter.solved.metadata["kernelspec"] = {}
    tags = [cell.metadata.get("tags", []) for cell in page(chapter.solved, chapter.blank, tmp_path).cells[1:]]
    assert tags == [["hide-input"], [], []]  # Sphinx folds the same cells

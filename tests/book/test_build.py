import nbformat
import pytest

from labkit.book.build import SourceError, build

SOURCE = """# Small

```{code-cell} ipython3
:tags: [setup]

import os
```

```{code-cell} ipython3
:tags: [nbval-check-output]

print(6 * 7, os.environ["LABKIT_DEVICE"])
```

```{code-cell} ipython3
print("kept to itself")
```
"""


@pytest.fixture
def notebooks(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "toc.yml").write_text("- part: Small\n  from: 98\n  chapters: [small]\n", encoding="utf-8")
    (tmp_path / "source" / "small.md").write_text(SOURCE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def no_run(monkeypatch):
    def refuse(notebook, name):
        raise AssertionError("the chapter was run")

    monkeypatch.setattr("labkit.book.build._execute", refuse)


def edit(notebooks, old, new):
    source = notebooks / "source" / "small.md"
    source.write_text(source.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_outputs_stand_in_tagged_cells_of_the_solved_notebook_and_come_from_the_simulator(notebooks):
    assert build(notebooks) == ["solutions/98-small.ipynb", "98-small.ipynb"]
    _, _, checked, other = nbformat.read(notebooks / "solutions" / "98-small.ipynb", as_version=4).cells
    assert checked.outputs[0].text == "42 simulator\n"
    assert checked.execution_count is not None
    assert (other.outputs, other.execution_count) == ([], None)


def test_a_learners_notebook_gives_no_output_away(notebooks):
    build(notebooks)
    _, *cells = nbformat.read(notebooks / "98-small.ipynb", as_version=4).cells
    assert [(cell.outputs, cell.execution_count) for cell in cells] == [([], None)] * 3


def test_two_builds_are_the_same_byte_for_byte(notebooks):
    build(notebooks)
    before = (notebooks / "98-small.ipynb").read_bytes()
    assert build(notebooks, force=True) == []
    assert (notebooks / "98-small.ipynb").read_bytes() == before


def test_a_change_of_prose_runs_nothing(notebooks, request):
    build(notebooks)
    request.getfixturevalue("no_run")
    edit(notebooks, "# Small", "# Tiny\n\n+++\n\nA cell more.")
    assert build(notebooks) == ["solutions/98-small.ipynb", "98-small.ipynb"]
    assert nbformat.read(notebooks / "solutions" / "98-small.ipynb", as_version=4).cells[3].outputs


def test_a_change_of_code_runs_the_chapter_again(notebooks):
    build(notebooks)
    edit(notebooks, "6 * 7", "6 * 8")
    assert build(notebooks) == ["solutions/98-small.ipynb", "98-small.ipynb"]
    output = nbformat.read(notebooks / "solutions" / "98-small.ipynb", as_version=4).cells[2].outputs[0]
    assert output.text == "48 simulator\n"


@pytest.mark.parametrize(("old", "new"), [("# Small", "# Tiny"), ("6 * 7", "6 * 8")])
def test_check_names_what_is_stale_and_changes_nothing(notebooks, request, old, new):
    build(notebooks)
    request.getfixturevalue("no_run")
    assert build(notebooks, check=True) == []
    before = (notebooks / "98-small.ipynb").read_bytes()
    edit(notebooks, old, new)
    assert "solutions/98-small.ipynb" in build(notebooks, check=True)
    assert (notebooks / "98-small.ipynb").read_bytes() == before


def test_a_chapter_whose_cell_fails_is_not_built(notebooks):
    edit(notebooks, "6 * 7", "1 / 0")
    with pytest.raises(SourceError, match=r"small\.md.*ZeroDivisionError"):
        build(notebooks)
    assert not (notebooks / "98-small.ipynb").exists()

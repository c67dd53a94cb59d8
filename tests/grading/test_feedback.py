"""Feedback notebooks: a student's own cells, and under each answer a verdict in which nothing runs or is Markdown."""

import json
from zipfile import ZipFile

import nbformat
import pytest
from handed_in import SAXPY, hand_in

from labkit.grading.feedback import FILE, write_feedback
from labkit.grading.grades import Grade
from labkit.grading.ledger import HandedIn
from labkit.grading.submission import find_submissions, read_submission

HOSTILE = "<script>alert(1)</script> [a](javascript:1) `b` ![c](http://d/e) $$f$$ **g**"


@pytest.fixture
def notebooks(tmp_path):
    """The feedback on submissions, as notebooks by their name in the archive."""

    def made(*handed_in):
        files = [HandedIn(str(path), student, read_submission(path)) for path, student, _ in handed_in]
        rows = [row for *_, rows in handed_in for row in rows]
        write_feedback(files, rows, tmp_path)
        with ZipFile(tmp_path / FILE) as archive:
            found = {name: nbformat.reads(archive.read(name).decode(), as_version=4) for name in archive.namelist()}
        for notebook in found.values():
            nbformat.validate(notebook)
        return found

    return made


def row(path, id, points, message="Solved.", **more):
    return Grade("ann", str(path), id, points, 2, message, 7, **more)


def test_verdicts_stand_under_their_answers_and_all_else_stays(tmp_path, notebooks):
    def note(notebook, cells):
        notebook["cells"].insert(0, {"cell_type": "markdown", "id": "mine", "source": "My own note"})
        cells["exercise-write-saxpy"]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "old"}]

    path = hand_in(tmp_path / "02.ipynb", "first-gpu-matmul", note, e1=SAXPY)
    rows = [row(path, "write-saxpy", 0, HOSTILE, reason="result", note=HOSTILE), row(path, "rows-and-columns", 2)]
    ((name, notebook),) = notebooks((path, "ann", rows)).items()
    texts = [cell.source for cell in notebook.cells]
    assert (name, texts[0]) == ("ann/02.ipynb", "My own note")
    assert len(texts) == len(json.loads(path.read_text())["cells"]) + 2
    verdict = texts[texts.index(SAXPY) + 1]
    assert "Write saxpy" in verdict and "0 of 2 points" in verdict.replace("&#58;", ":")
    assert not set("<>[]`$!") & set(verdict) and verdict.count("*") == 4
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_what_no_cell_answers_is_told_at_the_end_and_hidden_sizes_are_not(tmp_path, notebooks):
    path = hand_in(tmp_path / "02.ipynb", "first-gpu-matmul", e1="same", e2="same")
    hidden = {"reason": "result", "launch": "M=33, drawn with seed 7", "hidden": True}
    rows = [
        row(path, "write-saxpy", 0, "C[33]", **hidden),
        row(path, "rows-and-columns", 2),
        row(path, "neighbours-together", 0, "gone", launch="M=5"),
    ]
    rows.append(row(path, "", 0, "of the file"))
    ((_, notebook),) = notebooks((path, "ann", rows)).items()
    texts = [cell.source for cell in notebook.cells]
    first, second = [number for number, text in enumerate(texts) if text == "same"]
    assert "02&#46;1" in texts[first + 1] and "02&#46;2" in texts[second + 1]
    assert "drawn anew" in texts[first + 1] and "33" not in "".join(texts[first + 1 : second])
    assert "of the file" in texts[-1]
    assert "(run on M=5)" in "".join(texts).replace("&#61;", "=")


def test_wrong_elements_are_a_block_of_code_and_the_cause_is_told_of_hidden_sizes(tmp_path, notebooks):
    path = hand_in(tmp_path / "02.ipynb", "first-gpu-matmul")
    pattern = "#.#\n# wrong, . right; each sign is 1 element"
    rows = [
        row(path, "write-saxpy", 0, "Wrong.\n- Look.", reason="result", launch="M=5", pattern=pattern),
        row(path, "rows-and-columns", 0, "C[33]", reason="result", hidden=True, cause="B were subtracted"),
    ]
    ((_, notebook),) = notebooks((path, "ann", rows)).items()
    shown, hidden = [cell.source for cell in notebook.cells if cell.source.startswith("**02")]
    assert "\n\n- Look.\n\n" in shown and "\n\n```\n#.#\n```\n\n" in shown
    assert "It comes out as if B were subtracted." in hidden and "33" not in hidden


def test_files_of_one_name_are_all_there_and_no_later_run_grades_them(tmp_path, notebooks):
    paths = [hand_in(tmp_path / folder / "02.ipynb", "first-gpu-matmul") for folder in "ab"]
    found = notebooks(*((path, "../Ann", [row(path, "write-saxpy", 2)]) for path in paths))
    assert len(found) == 2 and all(".." not in name for name in found)
    assert [entry.path for entry in find_submissions([tmp_path])[0]] == paths
    before = (tmp_path / FILE).read_bytes()
    notebooks(*((path, "../Ann", [row(path, "write-saxpy", 2)]) for path in paths))
    assert (tmp_path / FILE).read_bytes() == before


def test_a_file_that_could_not_be_read_has_no_notebook(tmp_path, notebooks):
    (tmp_path / "a.ipynb").write_text("{")
    assert notebooks((tmp_path / "a.ipynb", "ann", [])) == {}

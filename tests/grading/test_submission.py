import json

import pytest

from labkit.checking.as_text import MAX_CHARACTERS
from labkit.grading.submission import find_submissions, read_submission


def cell(source, id=None, type="code", **metadata):
    return {"cell_type": type, "source": source, "metadata": metadata, **({"id": id} if id else {})}


def files(paths):
    return [found.path for found in find_submissions(paths)[0]]


@pytest.fixture
def notebook(tmp_path):
    def write(*cells):
        path = tmp_path / "a.ipynb"
        path.write_text(json.dumps({"cells": list(cells)}), encoding="utf-8")
        return path

    return write


def test_only_exercise_cells_are_read_as_text(notebook):
    path = notebook(
        cell("import os", "03-code-001"),
        cell(["a = 1\n", "b = 2"], "exercise-put-the-barrier-back"),
        cell("?", "check-put-the-barrier-back"),
    )
    assert read_submission(path).answers == {"put-the-barrier-back": "a = 1\nb = 2"}


def test_colab_keeps_the_id_in_the_metadata(notebook):
    colab = {**cell("a = 1"), "metadata": {"id": "exercise-put-the-barrier-back"}}
    assert read_submission(notebook(colab)).answers == {"put-the-barrier-back": "a = 1"}


def test_nbgraders_id_and_the_book_s_own_tag_tell_the_exercise_too(notebook):
    released = cell("a = 1", "4f2a", nbgrader={"grade_id": "exercise-put-the-barrier-back"})
    tagged = cell("a = 2", tags=["exercise"], exercise="pad-the-tile")
    assert read_submission(notebook(released, tagged)).answers == {
        "put-the-barrier-back": "a = 1",
        "pad-the-tile": "a = 2",
    }


def test_answers_whose_cells_lost_their_ids_are_found_by_function(notebook):
    path = notebook(
        cell("def saxpy(a, x, y, out):\n    pass"),
        cell("def add(A, B, C):\n    pass", "8c3d"),
        cell("def column_total(A, out):\n    pass", "02-code-007"),
        cell("print('saxpy')", "exercise-write-the-matmul"),
    )
    submission = read_submission(path)
    assert set(submission.answers) == {"write-saxpy", "rows-and-columns", "write-the-matmul"}
    assert submission.recovered == {"write-saxpy", "rows-and-columns"}


def test_two_cells_of_one_function_are_not_chosen_from(notebook):
    submission = read_submission(notebook(cell("def saxpy(a):\n    pass"), cell("def saxpy(b):\n    pass")))
    assert (dict(submission.answers), submission.recovered) == ({}, {"write-saxpy"})
    assert "2 cells" in submission.refused["write-saxpy"]


def test_a_cell_that_was_copied_with_its_text_counts_once(notebook):
    assert read_submission(
        notebook(cell("a = 1", "exercise-put-the-barrier-back"), cell("a = 1", "exercise-put-the-barrier-back"))
    ).answers == {"put-the-barrier-back": "a = 1"}


def test_a_byte_order_mark_and_other_line_ends_change_nothing(tmp_path):
    path = tmp_path / "a.ipynb"
    text = json.dumps({"cells": [cell("a = 1\r\nb = 2\rc = 3", "exercise-put-the-barrier-back")]}, indent=1)
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_submission(path).answers == {"put-the-barrier-back": "a = 1\nb = 2\nc = 3"}


def test_an_answer_given_twice_is_refused_with_the_count(notebook):
    submission = read_submission(
        notebook(cell("a = 1", "exercise-put-the-barrier-back"), cell("a = 2", "exercise-put-the-barrier-back"))
    )
    assert submission.answers == {}
    assert "2 cells" in submission.refused["put-the-barrier-back"]


def test_a_markdown_cell_is_no_answer(notebook):
    assert read_submission(notebook(cell("a = 1", "exercise-put-the-barrier-back", type="markdown"))).answers == {}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a notebook"),
        (b"print('hello')", "not a notebook"),
        (b'{"cells": [{"cell_type": "code", "id": "exer', "not a notebook"),
        (b'{"metadata": {}}', "no list of cells"),
        (b'{"cells": 3}', "no list of cells"),
        (b"[1, 2]", "no list of cells"),
        (
            b"\x89PNG\r\n\x1a\n\xff\xfe",
            "cannot be read: it is saved as Latin-1 or in another encoding (byte 1 is not UTF-8)",
        ),
        (
            b'{\n"cells": [\n<<<<<<< HEAD\n{}\n=======\n[]\n>>>>>>> main\n]}',
            "conflict markers of git, first in line 3:",
        ),
        (b'{"cells": [1,\n}', "Expecting value, line 2, column 1"),
        (b"[" * 100_000, "not a notebook"),
    ],
)
def test_a_broken_file_gets_a_reason(tmp_path, content, complaint):
    path = tmp_path / "broken.ipynb"
    path.write_bytes(content)
    assert complaint in read_submission(path).complaint


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
def test_a_notebook_in_another_unicode_encoding_is_read(tmp_path, encoding):
    path = tmp_path / "a.ipynb"
    path.write_bytes(json.dumps({"cells": [cell("a = 'é'", "exercise-pad-the-tile")]}).encode(encoding))
    assert read_submission(path).answers == {"pad-the-tile": "a = 'é'"}


@pytest.mark.parametrize(
    ("name", "content", "chapter"),
    [
        ("03-tiled-gemm.ipynb", "", "tiled-gemm"),
        ("tiled-gemm (1).ipynb", "", "tiled-gemm"),
        ("a.ipynb", '{"metadata": {"labkit": {"chapter": "tiled-gemm"}}, "cells": [{', "tiled-gemm"),
        ("a.ipynb", '{"cells": [{"id": "exercise-pad-the-tile", "sou', "tiled-gemm"),
        ("a.ipynb", '{"metadata": {"chapter": "cooking"}, "id": "exercise-cooking"', ""),
    ],
)
def test_the_chapter_of_a_broken_file_is_known_where_it_can_be_seen(tmp_path, name, content, chapter):
    (tmp_path / name).write_text(content)
    submission = read_submission(tmp_path / name)
    assert submission.complaint and submission.chapter == chapter


def test_one_broken_cell_costs_no_other(notebook, tmp_path):
    path = notebook(
        None,
        3,
        cell(None, "exercise-put-the-barrier-back"),
        cell([1], "exercise-pad-the-tile"),
        cell("a = 1", "exercise-choose-the-tile"),
    )
    assert read_submission(path).answers == {"choose-the-tile": "a = 1"}
    cells = [{**cell("a = 1", "exercise-choose-the-tile"), "metadata": None}]
    for labkit in (None, [], "x"):
        path.write_text(json.dumps({"cells": cells, "metadata": {"labkit": labkit}}), encoding="utf-8")
        assert read_submission(path).answers == {"choose-the-tile": "a = 1"}


def test_half_a_surrogate_pair_is_no_stumbling_block(tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_text(
        '{"cells": [{"cell_type": "code", "id": "exercise-put-the-barrier-back", "source": "a = \'\\ud800\'"}]}'
    )
    assert read_submission(path).answers == {"put-the-barrier-back": "a = '?'"}


def test_a_file_that_is_not_there_gets_a_reason(tmp_path):
    assert "no such file" in read_submission(tmp_path / "absent.ipynb").complaint


def test_the_books_own_solutions_are_left_out_of_a_fork_unless_named(tmp_path):
    for name in ("notebooks/a.ipynb", "notebooks/solutions/a.ipynb", "solutions/b.ipynb", ".hidden/c.ipynb"):
        (tmp_path / "fork" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fork" / name).touch()
    fork = tmp_path / "fork"
    solutions = fork / "notebooks" / "solutions"
    assert files([fork]) == [fork / "notebooks" / "a.ipynb", fork / "solutions" / "b.ipynb"]
    assert find_submissions([fork])[1] == [solutions / "a.ipynb"]
    assert files([fork / "notebooks"]) == [fork / "notebooks" / "a.ipynb"]
    for named in (solutions, solutions / "a.ipynb"):
        assert files([named]) == [solutions / "a.ipynb"]


def test_folders_are_searched_without_jupyters_checkpoints(tmp_path):
    for name in ("ann/a.ipynb", "ben/b.ipynb", "ben/.ipynb_checkpoints/b-checkpoint.ipynb", "ben/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert files([tmp_path, tmp_path / "ann" / "a.ipynb"]) == [
        tmp_path / "ann" / "a.ipynb",
        tmp_path / "ben" / "b.ipynb",
    ]


def test_a_long_cell_is_cut_and_the_answers_beside_it_are_kept(notebook):
    submission = read_submission(
        notebook(
            cell("x" * (3 << 20), type="markdown"),
            cell("#" * (3 << 20), "exercise-put-the-barrier-back"),
            cell("a", "exercise-pad-the-tile"),
        )
    )
    assert submission.answers["pad-the-tile"] == "a"
    assert len(submission.answers["put-the-barrier-back"]) == MAX_CHARACTERS + 1
    assert sum(len(text) for _, text in submission.cells) < 1 << 20


def test_many_long_cells_are_no_chapter(notebook):
    submission = read_submission(notebook(*[cell("x" * (1 << 20), type="markdown")] * 12, {"cell_type": "code"}))
    assert "characters" in submission.complaint and not submission.cells

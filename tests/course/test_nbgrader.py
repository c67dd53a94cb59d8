"""nbgrader takes what is released: it validates it, and grades it as the checks do."""

import csv
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import nbformat
import pytest
from sampling import WHOLE

from labkit import check, places
from labkit.course.release import release
from labkit.exercises import NBGRADER, NotSolved, exercise, exercise_ids
from labkit.exercises.contents import book_contents

CHAPTER = f"{book_contents().chapter('tiled-gemm').name}.ipynb"
SOLVED = ("put-the-barrier-back", "write-the-tiled-matmul")


def test_a_check_raises_under_nbgrader_alone(monkeypatch):
    assert not check("put-the-barrier-back", None).passed
    monkeypatch.setenv(NBGRADER, "autograde")
    with pytest.raises(NotSolved, match=r"Put the barrier back: not yet"):
        check("put-the-barrier-back", None)


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """Runs nbgrader, which has an environment of its own beside ours: its requirements are no part of labkit's."""
    if not WHOLE:
        pytest.skip("installs nbgrader: in `make test-long`")
    folder = tmp_path_factory.mktemp("nbgrader") / "venv"
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [
        scripts / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "nbgrader>=0.9.5,<0.10",
    ]
    subprocess.run(pip, check=True)
    ours = os.pathsep.join([str(places.CHECKOUT), sysconfig.get_path("purelib")])
    path = os.pathsep.join([str(scripts), os.environ["PATH"]])

    def run(folder, *arguments):
        environment = {**os.environ, "PYTHONPATH": ours, "PATH": path, "LABKIT_DEVICE": "simulator"}
        command = [scripts / "nbgrader", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def solve(path):
    """The notebook with some of its exercises solved."""
    solutions = nbformat.read(places.folder("notebooks") / "solutions" / CHAPTER, as_version=4)
    answers = {cell.id: cell.source for cell in solutions.cells}
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.id in {f"exercise-{id}" for id in SOLVED}:
            cell.source = answers[cell.id]
    nbformat.write(notebook, path)


def copy(folder, path):
    folder.mkdir(parents=True)
    (folder / CHAPTER).write_bytes(path.read_bytes())
    return folder / CHAPTER


@pytest.mark.skipif(places.CHECKOUT is None, reason="a release is made in a checkout")
def test_nbgrader_validates_and_autogrades_a_released_notebook(nbgrader, tmp_path):
    release(tmp_path / "hw2", "tiled-gemm", "hw2")
    copy(tmp_path / "source" / "hw2", tmp_path / "hw2" / "notebooks" / CHAPTER)
    code, said = nbgrader(tmp_path, "generate_assignment", "hw2", "--ClearSolutions.enabled=False")
    assert code == 0, said
    handed_out = tmp_path / "release" / "hw2" / CHAPTER
    blank = copy(tmp_path / "submitted" / "bob" / "hw2", handed_out)
    solve(copy(tmp_path / "submitted" / "ada" / "hw2", handed_out))
    _, said = nbgrader(blank.parent, "validate", CHAPTER)
    assert f"VALIDATION FAILED ON {len(exercise_ids('tiled-gemm'))} CELL(S)" in said
    for command in (["autograde", "hw2"], ["export"]):
        code, said = nbgrader(tmp_path, *command)
        assert code == 0, said
    with Path(tmp_path / "grades.csv").open(newline="") as file:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert points == {"ada": sum(exercise(id).points for id in SOLVED), "bob": 0}

"""A course from its beginning to its end, with the commands of the README: release, solve, submit, collect, grade."""

import csv
import json
import shutil
import subprocess
import sys
from datetime import datetime

import nbformat
import pytest
from typer.testing import CliRunner

from labkit import cli, places
from labkit.exercises import exercise
from labkit.exercises.contents import book_contents

pytestmark = [
    pytest.mark.skipif(places.CHECKOUT is None, reason="a release is made in a checkout"),
    pytest.mark.long,
]
CHAPTER = f"{book_contents().chapter('start-here').name}.ipynb"


def git(folder, *arguments):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def labkit(folder, *arguments):
    """A command of the labkit that stands in this folder, in a process of its own."""
    command = [sys.executable, "-m", "labkit", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def instructor(*arguments, status=0):
    result = CliRunner().invoke(cli.app, [*map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


def warm(release):
    """Give a release what Python and numba have compiled of the book's own labkit, which is the same: half a minute."""
    copies = {path.relative_to(release / "labkit"): path for path in (release / "labkit").rglob("*.py")}
    for name, copy in copies.items():
        shutil.copystat(places.PACKAGE / name, copy)
    for cache in places.PACKAGE.rglob("__pycache__"):
        shutil.copytree(cache, release / "labkit" / cache.relative_to(places.PACKAGE))


def save(path, exercise, text):
    """The notebook as JupyterLab saves it after a cell was written and run."""
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if cell.id == f"exercise-{exercise}")
    cell.source, cell.execution_count = text, 7
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="tried\n")]
    notebook.metadata["language_info"] |= {"version": "3.12.1", "mimetype": "text/x-python"}
    nbformat.write(notebook, path)


def solution(exercise):
    solved = nbformat.read(places.folder("notebooks") / "solutions" / CHAPTER, as_version=4)
    return next(cell.source for cell in solved.cells if cell.id == f"exercise-{exercise}")


IN_PLACE = """
from typer.testing import CliRunner
from labkit import cli
from labkit.book import workspace
workspace.serve = lambda *given: print("served", *given)
print(CliRunner().invoke(cli.app, ["lab", "--no-browser"]).output)
print(CliRunner().invoke(cli.app, ["release", "again"]).output)
"""


def works_in_place(release):
    """The lab opens the chapters of the release itself, and what was released is no book to release from."""
    done = subprocess.run([sys.executable, "-c", IN_PLACE], cwd=release, capture_output=True, text=True, check=True)
    assert f"served {release / 'notebooks'} ('--no-browser',)" in done.stdout
    assert "in a checkout of the book" in done.stdout
    assert not (release / "workspace").exists()


def test_a_course_from_release_to_grades(tmp_path, monkeypatch):
    for name, value in (("AUTHOR", "Ada"), ("COMMITTER", "Ada")):
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ada@example.org")
    template = tmp_path / "hw0"
    instructor("release", template, "--chapters", "start-here", "--assignment", "hw0")
    git(template, "init", "--quiet", "--initial-branch=main")
    git(template, "add", ".")
    git(template, "commit", "--quiet", "--message", "hw0")
    for student in ("ada", "bob"):
        git(tmp_path, "clone", "--quiet", "--bare", str(template), f"{student}.git")
        git(tmp_path, "clone", "--quiet", f"{student}.git", student)

    warm(tmp_path / "ada")
    save(tmp_path / "ada" / "notebooks" / CHAPTER, "pass-it-on", solution("pass-it-on"))
    said = labkit(tmp_path / "ada", "submit")
    assert f"{exercise('pass-it-on').headline}: 1 of 1 points\nhw0: 1 of 1 points so far." in said
    assert "Pushed to origin." in said

    works_in_place(tmp_path / "ada")

    roster = "student,repository\nada,ada.git\nbob,bob.git\ncleo,cleo.git\n"
    (tmp_path / "roster.csv").write_text(roster)
    told = instructor("collect", tmp_path / "roster.csv", "--out", tmp_path / "submissions", status=3).splitlines()
    assert told[0].startswith("ada: 1 notebook of commit")
    assert told[2].startswith("cleo: Not fetched")
    rows = json.loads((tmp_path / "submissions" / "collected.json").read_text())
    assert datetime.fromisoformat(rows[0]["committed"]).tzinfo

    roster, collected = tmp_path / "roster.csv", tmp_path / "submissions" / "collected.json"
    of = ("--roster", roster, "--assignment", template / "course.json", "--collected", collected)
    instructor("grade", tmp_path / "submissions", *of, "--out", tmp_path / "grades", status=3)
    with (tmp_path / "grades" / "gradebook.csv").open(encoding="utf-8", newline="") as file:
        points = {row["student"]: (row["points"], row["not_graded"]) for row in csv.DictReader(file)}
    assert points == {"ada": ("1", "0"), "bob": ("0", "0"), "cleo": ("", "1")}
    logins = [line.split(",")[0] for line in (tmp_path / "grades" / "moodle.csv").read_text().splitlines()]
    assert logins == ["username", "ada", "bob"]

"""A course from its beginning to its end, with the commands of the README: release, solve, submit, collect, grade."""

import csv
import json
import subprocess
import sys
from datetime import datetime

import nbformat
import pytest
from classroom import git, labkit, save, warm
from typer.testing import CliRunner

from labkit import cli, places
from labkit.exercises import exercise
from labkit.exercises.contents import book_contents

pytestmark = [
    pytest.mark.skipif(places.CHECKOUT is None, reason="a release is made in a checkout"),
    pytest.mark.long,
]
CHAPTER = f"{book_contents().chapter('start-here').name}.ipynb"


def instructor(*arguments, status=0):
    result = CliRunner().invoke(cli.app, [*map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


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

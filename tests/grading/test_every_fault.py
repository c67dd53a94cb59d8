"""A class of twenty with every fault of a course, from repositories to reports: no row is lost, no zero unearned."""

import csv
import json
import os
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest
from handed_in import SAXPY, chapter, hand_in
from typer.testing import CliRunner

from labkit import cli
from labkit.exercises import exercise, exercise_ids
from labkit.grading.course import Course
from labkit.grading.journal import FILE as JOURNAL

pytestmark = pytest.mark.long
SLUG = "first-gpu-matmul"
NAME = f"02-{SLUG}.ipynb"
FULL = {id: exercise(id).points for id in exercise_ids(SLUG)}
NONE, UNKNOWN = dict.fromkeys(FULL, 0), dict.fromkeys(FULL)
FIRST = "write-saxpy"
WRONG = SAXPY.replace("+ y", "- y")
LIFE = """
@cuda.jit
def generation(board, after):
    column, line = cuda.grid(2)
    lines, columns = board.shape
    if line >= lines or column >= columns:
        return
    number, here = 0, 0
    for down in range(-1, 2):
        for right in range(-1, 2):
            if 0 <= line + down < lines and 0 <= column + right < columns:
                state = board[line + down, column + right]
                if down == 0 and right == 0:
                    here = state
                else:
                    number += state
    stays = number == 2 and here == 1
    after[line, column] = 1 if number == 3 or stays else 0
"""
COPIED = LIFE.replace("number", "n").replace("stays", "alive") + "# all by myself\n"
IN_TIME, DUE, LATE = "2026-11-20T10:00:00+00:00", "2026-11-20T12:00:00+00:00", "2026-11-21T20:00:00+00:00"


def commit(folder, time=IN_TIME):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
    times = os.environ | {"GIT_COMMITTER_DATE": time, "GIT_AUTHOR_DATE": time}
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--allow-empty", "--message", "work"]):
        subprocess.run(["git", *identity, *words], cwd=folder, env=times, check=True, capture_output=True)


def written(content):
    """Makes a repository with this in place of the notebook: bytes, or what gives them from its text."""

    def make(folder):
        (folder / NAME).write_bytes(content(chapter(SLUG)) if callable(content) else content)
        commit(folder)

    return make


def answered(**answers):
    def make(folder):
        hand_in(folder / NAME, SLUG, **answers)
        commit(folder)

    return make


def nothing(folder):
    folder.rmdir()


def empty(folder):
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)


def late(folder):
    hand_in(folder / NAME, SLUG)
    commit(folder, LATE)


def better_late(folder):
    answered(e1=WRONG)(folder)
    late(folder)


def broken_late(folder):
    answered()(folder)
    (folder / NAME).write_text("{")
    commit(folder, LATE)


def twice(folder):
    hand_in(folder / f"02-{SLUG}-Copy1.ipynb", SLUG, e1=WRONG)
    answered()(folder)


def many(folder):
    for number in range(100):
        (folder / f"{number:03}.ipynb").write_text('{"cells": []}')
    answered(e4=COPIED)(folder)


def logged(folder):
    lines = [{"exercise": FIRST, "points": n, "reason": why} for n, why in ((0, "race"), (2, "solved"))]
    (folder / "notebooks").mkdir()
    log = [json.dumps(line | {"time": IN_TIME}) for line in lines]
    (folder / "notebooks" / "work-log.jsonl").write_text("\n".join(["{", *log, ""]))
    answered(e4=LIFE)(folder)


def link(folder):
    (folder / NAME).symlink_to("/etc/passwd")
    commit(folder)


def lost_ids(folder):
    hand_in(folder / NAME, SLUG, lambda notebook, cells: [cell.pop("id") for cell in notebook["cells"]])
    commit(folder)


def other_chapter(folder):
    hand_in(folder / "03-tiled-gemm.ipynb", "tiled-gemm")
    commit(folder)


def large(text):
    return json.dumps(json.loads(text) | {"padding": "x" * (17 << 20)}).encode()


def conflict(text):
    return f"<<<<<<< HEAD\n{text}\n=======\n{text}\n>>>>>>> main\n".encode()


def late_share(share):
    return {id: round(share * points, 2) for id, points in FULL.items()}


CLASS = {  # makes the repository, the points, and words of a reason where points are lost
    "right": (logged, FULL, ""),
    "wrong": (answered(e1=WRONG), FULL | {FIRST: 0}, "(run on "),
    "unreachable": (nothing, UNKNOWN, "could not be fetched. This does not count as zero."),
    "none": (empty, UNKNOWN, "could not be fetched. This does not count as zero."),  # the roster has no address
    "stale": (answered(e1=WRONG), FULL | {FIRST: None}, "could not be fetched again"),
    "empty": (empty, NONE, "your repository has no commit that counts"),
    "late": (late, late_share(0.8), "Late by 2 days"),
    "better-late": (better_late, FULL | {FIRST: late_share(0.8)[FIRST]}, "Late by 2 days"),
    "broken-late": (broken_late, FULL, ""),
    "conflict": (written(conflict), NONE, f"{NAME}: The file has conflict markers of git, first in line 1"),
    "utf-16": (written(lambda text: text.encode("utf-16")), FULL, ""),
    "latin-1": (
        written("{'caf\u00e9'}".encode("latin-1")),
        NONE,
        f"{NAME}: The file cannot be read: it is saved as Latin-1",
    ),
    "cut-off": (
        written(lambda text: text[:5000].encode()),
        NONE,
        f"{NAME}: The file is not a notebook, or was cut off",
    ),
    "no-bytes": (written(b""), NONE, f"{NAME}: The file is empty"),
    "twice": (twice, FULL, ""),
    "large": (written(large), NONE, f"Left out: {NAME} has 17.0 MB, and 16 MB are the limit."),
    "many": (many, FULL, ""),
    "link": (link, NONE, f"Left out: {NAME} is a link, not a file."),
    "lost-ids": (lost_ids, FULL, ""),
    "other-chapter": (other_chapter, NONE, "Nothing was handed in."),
}


def labkit(*words, status):
    result = CliRunner(env={"COLUMNS": "60"}).invoke(cli.app, [*map(str, words)])
    assert result.exit_code == status, result.output
    return result.output


def read_lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_reports(folder):
    """All that a student is sent, by name."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (folder / "students").iterdir()}
    with ZipFile(folder / "feedback.zip") as archive:
        return texts | {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.timeout(900)
def test_a_class_with_every_fault_loses_no_row_and_earns_every_zero(tmp_path):
    lines = ["student,repository"]
    for student, (make, _, _) in CLASS.items():
        (tmp_path / "work" / student).mkdir(parents=True)
        make(tmp_path / "work" / student)
        lines.append(f"{student},{'' if student == 'none' else Path('work', student)}")
    assert len(CLASS) == 20
    (tmp_path / "roster.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "course.json").write_text(Course("hw1", (NAME.removesuffix(".ipynb"),), FULL).to_json())
    collecting = ("collect", tmp_path / "roster.csv", "--out", tmp_path / "in", "--deadline", DUE)
    labkit(*collecting, status=3)
    (tmp_path / "work" / "stale").rename(tmp_path / "work" / "moved")
    assert "3 of 20 were not fetched: unreachable, none, stale" in labkit(*collecting, status=3)

    of = ("--roster", tmp_path / "roster.csv", "--assignment", tmp_path / "course.json")
    rules = ("--deadline", DUE, "--late", "10", "--seed", "7")
    (tmp_path / "wide.csv").write_text("student,repository\nlee,work/lee,Lee, A.\n")
    for name in ("collect", "grade"):
        roster = [tmp_path / "wide.csv"] if name == "collect" else [tmp_path / "in", "--roster", tmp_path / "wide.csv"]
        assert "has 4 fields" in labkit(name, *roster, "--out", tmp_path / "no", status=1)
    (tmp_path / "points.csv").write_text(f"student,exercise,points\nlee,{FIRST},2\n")
    by_hand = ("--manual", tmp_path / "points.csv", "--out", tmp_path / "no")
    assert f"lee has no exercise {FIRST}" in labkit("grade", tmp_path / "in", *of, *rules, *by_hand, status=1)
    assert "judgement" not in (tmp_path / "no" / JOURNAL).read_text(encoding="utf-8")
    said = labkit("grade", tmp_path / "in", *of, *rules, "--out", tmp_path / "out", status=3)
    assert max(len(line) for line in said.splitlines() if line.startswith(" ")) <= 60
    ungraded = "Not graded, and left out of files for learning platforms: none, stale, unreachable"
    assert ungraded in " ".join(said.split())

    rows = json.loads((tmp_path / "out" / "grades.json").read_text(encoding="utf-8"))["grades"]
    for student, (_, points, reason) in CLASS.items():
        own = {row["exercise"]: row for row in rows if row["student"] == student and row["exercise"] in FULL}
        assert {id: row["points"] for id, row in own.items()} == points, student
        page = (tmp_path / "out" / "students" / f"{student}.html").read_text(encoding="utf-8")
        assert reason in page, student
    logins = {row["SIS Login ID"] for row in read_lines(tmp_path / "out" / "canvas.csv")}
    assert logins - {""} == CLASS.keys() - {"unreachable", "none", "stale"}
    similar = [line["students"] for line in read_lines(tmp_path / "out" / "similar.csv") if not line["common"]]
    assert similar == ["many; right"]
    (work,) = read_lines(tmp_path / "out" / "work.csv")
    assert (work["student"], work["exercise"], work["attempts"]) == ("right", FIRST, "2")
    sent = read_reports(tmp_path / "out")
    for name, text in sent.items():
        assert str(tmp_path) not in text and "Traceback" not in text and "similar" not in text, name
    assert "<img" in sent["wrong.html"] and "The frame marks out[0]" in sent["wrong.html"]
    assert "y were subtracted" in sent["wrong.html"]
    assert "(run on 512 elements" in sent[f"wrong/{Path(NAME).stem}.ipynb"]

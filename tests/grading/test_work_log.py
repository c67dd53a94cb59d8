"""Work logs: a table for the teacher, from files that a student may have written by hand."""

import json

import pytest

from labkit.grading.grade import grade
from labkit.grading.work_log import Attempts, read_work_logs


def line(exercise, reason, minute, **more):
    return json.dumps({"exercise": exercise, "reason": reason, "time": f"2026-11-20T10:{minute}:00+00:00", **more})


LINES = [
    line("write-saxpy", "result", "00"),
    line("write-saxpy", "solved", "05"),
    line("write-saxpy", "solved", "09"),
    line("pad-the-tile", "race", "07"),
]
HOSTILE = [
    "", "{", "[]", "3", "null", "[" * 100_000, line("=cmd()", "solved", "00"), line("write-saxpy", "x", "99"),
    json.dumps({"exercise": "write-saxpy", "reason": "solved", "time": 3}),
]  # fmt: skip


@pytest.fixture
def class_folder(tmp_path):
    (tmp_path / "in" / "ann" / "notebooks").mkdir(parents=True)
    (tmp_path / "in" / "ann" / "notebooks" / "work-log.jsonl").write_text("\n".join([*HOSTILE, *LINES]))
    return tmp_path / "in"


def test_attempts_are_counted_whatever_else_the_file_holds(class_folder):
    time = "2026-11-20T10:{}:00+00:00".format
    assert read_work_logs([class_folder], []) == [
        Attempts("ann", "write-saxpy", 3, time("00"), time("09"), time("05")),
        Attempts("ann", "pad-the-tile", 1, time("07"), time("07")),
    ]
    assert read_work_logs([class_folder / "ann"], ["ann"])[0].student == "ann"


def test_the_log_of_a_late_commit_continues_the_one_in_time(class_folder):
    late = class_folder / "(late)" / "ann" / "notebooks"
    late.mkdir(parents=True)
    (late / "work-log.jsonl").write_text("\n".join([*LINES, LINES[0]]))
    assert read_work_logs([class_folder], ["ann"])[0].attempts == 4


def test_a_grading_writes_them_for_the_teacher(class_folder, tmp_path):
    (class_folder / "ann" / "notebooks" / "02.ipynb").write_text("{}")
    grade([class_folder], tmp_path / "out", seed=1)
    assert (tmp_path / "out" / "work.csv").read_text().splitlines()[1].startswith("ann,write-saxpy,3,")

"""A class with hostile students in it: nothing forged, nobody harmed, nothing told, and an end to it all."""

import json
import os
import time
from zipfile import ZipFile

import pytest
from attacks.answers import ANSWERS
from attacks.files import HARMLESS, HOSTILE
from handed_in import chapter, hand_in
from sampling import WHOLE, sampled

from labkit.book.chapter import exercise_cell_id
from labkit.exercises import exercise, exercise_ids
from labkit.grading.assessment import Assessment
from labkit.grading.grade import grade

pytestmark = pytest.mark.long
CANARY = "canary-7f3a9"
EVERY = 20  # so many hostile students for each honest one
MOST = {id: exercise(id).points for id in exercise_ids("first-gpu-matmul")}


@pytest.fixture
def classroom(tmp_path, monkeypatch):
    """A folder for students, and what none of them may read or make."""
    (tmp_path / "class").mkdir()
    (tmp_path / "secret").write_text(CANARY)
    monkeypatch.setenv("LABKIT_CANARY", CANARY)
    return tmp_path


def fill_in(text, classroom):
    return text.replace("$MARK", str(classroom / "mark")).replace("$SECRET", str(classroom / "secret"))


def honest(classroom, name):
    def comment(notebook, cells):
        cells["exercise-write-saxpy"]["source"] += f"\n# {CANARY}"

    hand_in(classroom / "class" / name / "02.ipynb", "first-gpu-matmul", comment)


def graded(classroom, **options):
    """Points by student and exercise; looks into all reports for what none may hold."""
    grades = grade([classroom / "class"], classroom / "grades", seed=1, **options)
    assert not (classroom / "mark").exists()
    with ZipFile(classroom / "grades" / "feedback.zip") as archive:
        told = {name: archive.read(name).decode() for name in archive.namelist() if "honest" not in name}
    told |= {p: p.read_text(encoding="utf-8") for p in (classroom / "grades").rglob("*.*") if p.suffix != ".zip"}
    for path, text in told.items():
        assert CANARY not in text, path
        assert not {c for c in text if not c.isprintable()} - {"\n", "\r"}, path
    return {(row.student, row.exercise): row for row in grades}


def assert_honest(found, name):
    assert {id: found[name, id].points for id in MOST} == MOST, name


@pytest.mark.timeout(3000)
def test_answers_that_attack_earn_nothing_and_harm_nobody(classroom):
    """Each also has honest answers to the other exercises, which keep their points."""
    names = sampled(ANSWERS, 16)
    for number, name in enumerate(names):
        if number % EVERY == 0:
            honest(classroom, f"honest-{number}")
        hand_in(classroom / "class" / name / "02.ipynb", "first-gpu-matmul", e1=fill_in(ANSWERS[name], classroom))
    started_s = time.monotonic()
    found = graded(classroom, cell_timeout_s=30)
    assert time.monotonic() - started_s < 120 + 10 * len(names)
    for number, name in enumerate(names):
        if number % EVERY == 0:
            assert_honest(found, f"honest-{number}")
        assert not found[name, "write-saxpy"].points, name
        rest = {id: found[name, id].points for id in MOST if id != "write-saxpy"}
        assert rest == {id: MOST[id] for id in rest}, name


@pytest.mark.timeout(1000)
def test_files_that_attack_cost_their_own_rows(classroom):
    hostile, harmless = sampled(HOSTILE, 12), sampled(HARMLESS, 3)
    honest(classroom, "a-honest")
    honest(classroom, "z-honest")
    for name in [*hostile, *harmless]:
        folder = classroom / "class" / name.replace(" ", "-")
        folder.mkdir()
        text = fill_in(chapter("first-gpu-matmul"), classroom)
        (HOSTILE | HARMLESS)[name](folder, text)
        for path in folder.rglob("*"):  # the marks are in what was written
            if os.path.islink(path) and "$SECRET" in str(path.readlink()):
                path.unlink()
                path.symlink_to(classroom / "secret")
            elif os.access(path, os.R_OK) and path.is_file() and path.stat().st_size < 1 << 24:
                content = path.read_bytes()
                path.write_bytes(content.replace(b"$MARK", str(classroom / "mark").encode()))
    found = graded(classroom, assessment=Assessment(students={"a-honest": {}, "mallory": {}}))
    assert_honest(found, "a-honest")
    assert_honest(found, "z-honest")
    for name in hostile:
        rows = [row for (student, _), row in found.items() if student == name.replace(" ", "-")]
        assert rows and not any(row.points for row in rows), name
    for name in harmless:
        assert_honest(found, name.replace(" ", "-"))


def test_there_are_eighty_of_them():
    assert len(ANSWERS) + len(HOSTILE) + len(HARMLESS) >= 80 or not WHOLE
    assert all(exercise_cell_id(id) in json.dumps(chapter("first-gpu-matmul")) for id in MOST)

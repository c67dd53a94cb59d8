"""A class of many: all accounted for, whatever they hand in, with a worker killed and the run cut off in the midst."""

import threading
import time

import psutil
import pytest
from handed_in import SAXPY, hand_in
from sampling import WHOLE

from labkit.exercises import exercise, exercise_ids
from labkit.grading import judging
from labkit.grading.assessment import Assessment
from labkit.grading.grade import grade

pytestmark = pytest.mark.long
STUDENTS = 300 if WHOLE else 12
MOST = {id: exercise(id).points for id in exercise_ids("first-gpu-matmul")}
HALF = MOST | {"write-saxpy": 0}
NONE = dict.fromkeys(MOST, 0)


def _right(path):
    hand_in(path, "first-gpu-matmul", e1=f"# {path}\n{SAXPY}")
    return MOST


def _wrong(path):
    hand_in(path, "first-gpu-matmul", e1=SAXPY.replace("+ y", "- y"))
    return HALF


def _unreadable_answer(path):
    hand_in(path, "first-gpu-matmul", e1="def saxpy(")
    return HALF


def _lost_ids(path):
    hand_in(path, "first-gpu-matmul", lambda notebook, cells: [cell.pop("id") for cell in notebook["cells"]])
    return MOST


def _cut_off(path):
    hand_in(path, "first-gpu-matmul")
    path.write_bytes(path.read_bytes()[:500])
    return {}


def _nothing(path):
    return NONE


def _folder(path):
    path.mkdir(parents=True)
    return {}


def _answer_gone(path):
    hand_in(path, "first-gpu-matmul", lambda notebook, cells: notebook["cells"].remove(cells["exercise-write-saxpy"]))
    return HALF


KINDS = (_right, _wrong, _unreadable_answer, _lost_ids, _cut_off, _nothing, _folder, _answer_gone)


@pytest.fixture
def students(tmp_path):
    """The points that each student of a class must get, by exercise."""
    (tmp_path / "class").mkdir()
    return {
        f"student-{number:03}": KINDS[number % len(KINDS)](tmp_path / "class" / f"student-{number:03}" / "02.ipynb")
        for number in range(STUDENTS)
    }


def kill_a_worker(stop):
    """Kill the first kernel that is found at work, once it has worked a while."""
    while not stop.is_set():
        time.sleep(0.5)
        for process in psutil.Process().children(recursive=True):
            try:
                if "ipykernel_launcher" in " ".join(process.cmdline()) and process.cpu_times().user > 4:
                    process.kill()
                    return
            except psutil.Error:
                continue


@pytest.mark.timeout(3000)
def test_a_class_is_graded_whole_with_a_worker_killed_and_the_run_cut_off(students, tmp_path, monkeypatch):
    assessment = Assessment(students={name: {} for name in students})
    arguments = ([tmp_path / "class"], tmp_path / "grades", assessment)
    monkeypatch.setattr(judging, "MAX_TASKS", max(3, STUDENTS // 12))
    stop = threading.Event()
    killer = threading.Thread(target=kill_a_worker, args=[stop])
    killer.start()

    def cut_off(done, of):
        if done > of // 2:
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            grade(*arguments, progress=cut_off)
    finally:
        stop.set()
        killer.join()
    grades = grade(*arguments)
    found = {}
    for row in grades:
        assert row.points is not None, row
        found.setdefault(row.student, {})[row.exercise] = row.points
    assert set(found) == set(students)
    for student, points in students.items():
        assert {id: found[student].get(id, 0) for id in MOST} == (points or NONE), student
    monkeypatch.setattr(judging, "run_batch", lambda *_: pytest.fail("what is known is not judged again"))
    assert grade(*arguments) == grades
    name = "student-001"
    hand_in(tmp_path / "class" / name / "02.ipynb", "first-gpu-matmul", e1=SAXPY.replace("+ y", "* y"))
    monkeypatch.undo()
    seen = []
    run_batch = judging.run_batch
    monkeypatch.setattr(judging, "run_batch", lambda batch, *rest: seen.append(batch) or run_batch(batch, *rest))
    grade(*arguments)
    assert [task.file.split("/")[-2] for batch in seen for task in batch.tasks] == [name]

"""Parts of a class that several machines judge: put together they are the whole, byte for byte."""

import json
from collections import Counter

import pytest
from handed_in import hand_in
from test_judging import Worker

from labkit.exercises import exercise_ids
from labkit.grading import judging
from labkit.grading.grade import grade, judge_shard
from labkit.grading.journal import Journal
from labkit.grading.judge import Judgement
from labkit.grading.roster import RosterError
from labkit.grading.shard import Shard
from labkit.grading.trusted import Task

RIGHT = Judgement("solved", "Solved.")


@pytest.fixture
def worker(monkeypatch):
    worker = Worker()
    monkeypatch.setattr(judging, "run_batch", worker)
    return worker


@pytest.fixture
def students(tmp_path):
    """Hand in two chapters of three students, whose answers say how they fare; return the class's folder."""
    for name, fate in {"ada": "solved", "ben": "race", "cleo": "result"}.items():
        for chapter in ("first-gpu-matmul", "triple-loop"):
            answers = {f"e{number}": fate for number in range(1, len(exercise_ids(chapter)) + 1)}
            hand_in(tmp_path / "class" / name / f"{chapter}.ipynb", chapter, **answers)
    return tmp_path / "class"


def read_reports(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("judgements")]
    return {path.relative_to(folder): path.read_bytes() for path in files}


def tasks_of(worker):
    return sorted(file for batch in worker.batches for file in batch)


@pytest.mark.sample(2)
@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_shards_together_are_the_whole(worker, students, tmp_path, count):
    whole = grade([students], tmp_path / "whole", seed=5)
    judged = tasks_of(worker)
    worker.batches.clear()
    for number in range(count, 0, -1):
        judge_shard([students], tmp_path / "parts", Shard(number, count), seed=5)
    assert tasks_of(worker) == judged
    worker.batches.clear()
    assert grade([students], tmp_path / "parts") == whole  # with their seed
    assert not worker.batches
    assert read_reports(tmp_path / "parts") == read_reports(tmp_path / "whole")


def test_what_is_missing_of_the_shards_is_judged_where_they_are_put_together(worker, students, tmp_path):
    judge_shard([students], tmp_path / "parts", Shard(1, 2), seed=5)
    first = tasks_of(worker)
    worker.batches.clear()
    grades = grade([students], tmp_path / "parts")
    assert all(row.points is not None for row in grades)
    assert len(tasks_of(worker)) == 6 - len(first) == 3
    worker.batches.clear()
    assert grade([students], tmp_path / "parts") == grades
    assert judge_shard([students], tmp_path / "parts", Shard(2, 2)) == (0, 0)
    assert not worker.batches


def test_a_shard_says_how_many_answers_it_judged(worker, students, tmp_path):
    hand_in(students / "dan" / "02.ipynb", "first-gpu-matmul", e1="dies")
    asked = []
    judged, left = judge_shard(
        [students], tmp_path / "parts", Shard(1, 1), seed=5, progress=lambda done, of: asked.append((done, of))
    )
    assert left == 1 and asked[0] == (0, judged + 1) and asked[-1] == (judged + 1, judged + 1)
    assert not (tmp_path / "parts" / "grades.json").exists()


def test_another_seed_has_judgements_of_its_own(worker, students, tmp_path):
    judge_shard([students], tmp_path / "parts", Shard(1, 1), seed=5)
    judged = tasks_of(worker)
    worker.batches.clear()
    grade([students], tmp_path / "parts", seed=6)
    assert tasks_of(worker) == judged


def test_shards_divide_each_chapter_evenly():
    tasks = [Task(f"{n:02}", chapter, {"a": ""}) for n in range(11) for chapter in ("one", "two", "three")]
    parts = [Shard(number, 4).take(tasks[:: (-1) ** number]) for number in range(1, 5)]  # in whatever order found
    assert sorted(task.key for part in parts for task in part) == sorted(task.key for task in tasks)
    for chapter in ("one", "two", "three"):
        counts = [Counter(task.chapter for task in part)[chapter] for part in parts]
        assert max(counts) - min(counts) <= 1


def test_more_shards_than_answers_leave_some_empty():
    tasks = [Task("a", "one", {"a": ""}), Task("b", "one", {"a": ""})]
    assert [len(Shard(number, 3).take(tasks)) for number in (1, 2, 3)] == [1, 1, 0]


@pytest.mark.parametrize("text", ["", "2", "0/8", "9/8", "2/0", "-1/8", "2 / 8", "a/b", "1/2/3", "1.5/2"])
def test_what_is_no_part_is_refused(text):
    with pytest.raises(ValueError, match="is no part of a class: write --shard 2/8"):
        Shard.parse(text)
    assert str(Shard.parse("2/8")) == "2/8"


def test_a_shard_needs_the_seed_of_the_others(tmp_path):
    with pytest.raises(RosterError, match="all parts of a class need the same seed"):
        Journal(tmp_path, shard=Shard(1, 2))
    Journal(tmp_path, seed=5, shard=Shard(1, 2))
    assert Journal(tmp_path, shard=Shard(2, 2)).seed == 5


def test_shards_with_several_seeds_are_refused_unless_one_is_chosen(tmp_path):
    Journal(tmp_path, seed=5, shard=Shard(1, 2)).add("a", RIGHT)
    Journal(tmp_path, seed=6, shard=Shard(2, 2))
    with pytest.raises(RosterError, match=r"several seeds, 5 \(judgements-1-of-2.jsonl\), 6 .*: choose one"):
        Journal(tmp_path)
    assert Journal(tmp_path, seed=6).judgement("a") == RIGHT  # by its digest, which the other seed does not give


def test_each_shard_writes_a_file_of_its_own_and_reads_all(tmp_path):
    first, second = (Journal(tmp_path, seed=5, shard=Shard(number, 2)) for number in (1, 2))
    first.add("a", RIGHT)
    second.add("b", RIGHT)
    with first.path.open("a") as file:
        file.write('{"answer": "c", "judg')  # as it is while another process writes
    whole = Journal(tmp_path, paths=[tmp_path / "class"])
    assert [whole.judgement(digest) for digest in "abc"] == [RIGHT, RIGHT, None]
    answers = {path.name: path.read_text().count('"answer"') for path in tmp_path.iterdir()}
    assert answers == {"judgements-1-of-2.jsonl": 2, "judgements-2-of-2.jsonl": 1, "judgements.jsonl": 0}
    assert json.loads((tmp_path / "judgements.jsonl").read_text())["seed"] == 5

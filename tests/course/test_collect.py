"""Collecting a class: what is taken, what stays where it is, and what a broken repository costs."""

import json
import os
import subprocess
import time
from datetime import UTC, datetime

import pytest

from labkit.course import collect as module
from labkit.course.collect import collect, read_roster
from labkit.course.manifest import CourseError
from labkit.grading.collected import read_collected
from labkit.grading.files import LATE


def git(folder, *arguments, given=b""):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, input=given, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path):
    """Makes a bare repository whose one commit holds these entries: path -> content, or (mode, content)."""

    def make(name, entries, branch="main", after=()):
        bare = tmp_path / f"{name}.git"
        if not bare.exists():
            git(tmp_path, "init", "--quiet", "--bare", bare.name)
        tree = git(bare, "mktree", "-z", given=b"".join(_entries(bare, entries)))
        parents = [word for parent in after for word in ("-p", parent)]
        commit = git(bare, "commit-tree", *parents, "-m", "handed in", tree)
        git(bare, "update-ref", f"refs/heads/{branch}", commit)
        return commit

    return make


def _entries(bare, entries):
    for path, content in entries.items():
        if isinstance(content, dict):
            tree = git(bare, "mktree", "-z", given=b"".join(_entries(bare, content)))
            yield b"040000 tree %s\t%s\0" % (tree.encode(), os.fsencode(path))
        else:
            mode, content = content if isinstance(content, tuple) else ("100644", content)
            blob = git(bare, "hash-object", "-w", "--stdin", given=content)
            yield b"%s blob %s\t%s\0" % (mode.encode(), blob.encode(), os.fsencode(path))


@pytest.fixture
def class_of(tmp_path):
    """Collects students, whose repositories are named like them, and gives the rows by student."""

    def run(*students, before=None, deadline=None, **addresses):
        lines = [f"{student},{addresses.get(student, f'{student}.git')}" for student in [*students, *addresses]]
        (tmp_path / "roster.csv").write_text("\n".join(["student,repository", *lines]) + "\n")
        return {row.student: row for row in collect(tmp_path / "roster.csv", tmp_path / "out", before, deadline)}

    return run


def files(tmp_path, student):
    folder = tmp_path / "out" / student
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_notebooks_come_with_commit_and_time(repository, class_of, tmp_path):
    commit = repository("ada", {"notebooks": {"03.ipynb": b"{}"}, "top.ipynb": b"[]", "notes.txt": b"x"})
    row = class_of("ada")["ada"]
    assert (row.commit, row.notebooks, row.problem) == (commit, 2, "")
    assert row.committed == git(tmp_path / "ada.git", "log", "-1", "--format=%cI", "main")
    assert files(tmp_path, "ada") == {"notebooks/03.ipynb", "top.ipynb"}
    assert (tmp_path / "out" / "ada" / "top.ipynb").read_bytes() == b"[]"
    (told,) = json.loads((tmp_path / "out" / "collected.json").read_text())
    assert (told["student"], told["commit"]) == ("ada", commit)


@pytest.fixture
def commits(repository, monkeypatch):
    """Two commits of Ada's, of 20 and 22 November."""
    made = []
    for day, content in ((20, b"{}"), (22, b"[]")):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-11-{day}T10:00:00+00:00")
        made.append(repository("ada", {"a.ipynb": content}, after=made[-1:]))
    return made


def test_the_last_commit_before_a_time_counts(commits, repository, class_of, tmp_path):
    until = {day: datetime(2026, 11, day, tzinfo=UTC) for day in (20, 21, 23)}
    assert class_of("ada", before=until[21])["ada"].commit == commits[0]
    assert (tmp_path / "out" / "ada" / "a.ipynb").read_bytes() == b"{}"
    assert class_of("ada", before=until[23])["ada"].commit == class_of("ada")["ada"].commit == commits[1]
    repository("ben", {"a.ipynb": b"{}"})
    assert "no commit to take before 2026-11-20 00:00:00 +0000" in class_of("ben", before=until[20])["ben"].problem


def test_with_a_deadline_the_commit_in_time_and_a_late_one_are_taken(commits, repository, class_of, tmp_path):
    day = {day: datetime(2026, 11, day, tzinfo=UTC) for day in (19, 21, 23)}
    late = tmp_path / "out" / LATE / "ada" / "a.ipynb"
    row = class_of("ada", deadline=day[21])["ada"]
    assert (row.commit, row.late_commit, row.late.time.day) == (*commits, 22)
    assert (files(tmp_path, "ada"), late.read_bytes()) == ({"a.ipynb"}, b"[]")
    assert class_of("ada", deadline=day[21])["ada"] == row == read_collected(tmp_path / "out" / "collected.json")["ada"]
    row = class_of("ada", deadline=day[23])["ada"]
    assert (row.commit, row.late_commit, late.exists()) == (commits[1], "", False)
    row = class_of("ada", deadline=day[19])["ada"]
    assert (row.commit, row.late_commit, files(tmp_path, "ada")) == ("", commits[1], set())


def test_the_work_log_comes_along_if_it_is_a_plain_file_of_moderate_size(repository, class_of, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 3)
    logs = {"ada": b"{}", "ben": b"{} {}", "eve": ("120000", b"/"), "fay": {"a": b""}}
    for student, log in logs.items():
        repository(student, {"a.ipynb": b"{}", "notebooks": {"work-log.jsonl": log}})
        row = class_of(student)[student]
        assert row.notebooks == 1
    assert files(tmp_path, "ada") == {"a.ipynb", "notebooks/work-log.jsonl"}
    assert all(files(tmp_path, student) == {"a.ipynb"} for student in ("ben", "eve", "fay"))


def test_what_is_no_plain_notebook_stays_in_the_repository(repository, class_of, tmp_path):
    (tmp_path / "secret.ipynb").write_text("of the instructor")
    hostile = {
        "good.ipynb": b"{}",
        "link.ipynb": ("120000", str(tmp_path / "secret.ipynb").encode()),
        "..": {"..": {"escaped.ipynb": b"{}"}},
        ".git": {"hooks": {"post-checkout.ipynb": b"#!/bin/sh"}},
        ".ipynb_checkpoints": {"03.ipynb": b"{}"},
        "a\nb.ipynb": b"{}",
        "a\x1b[31m.ipynb": b"{}",
        os.fsdecode(b"\xff.ipynb"): b"{}",
        "..\\up.ipynb": b"{}",
        "c:evil.ipynb": b"{}",
        "folder.ipynb": {"inside.txt": b""},
        ".gitattributes": b"* filter=evil",
    }
    repository("eve", hostile)
    row = class_of("eve")["eve"]
    assert files(tmp_path, "eve") == {"good.ipynb"}
    assert row.notebooks == 1
    assert len(row.left_out) == 7 and "link.ipynb is a link, not a file" in row.left_out
    assert "a\\x1b[31m.ipynb has a name that some systems cannot write" in row.left_out
    assert row.told_left_out.endswith("; 2 more.") and str(row).isprintable()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eve.git", "out", "roster.csv", "secret.ipynb"]


def test_files_too_large_or_too_many_are_left_out(repository, class_of, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(module, "MAX_NOTEBOOKS", 2)
    repository("eve", {"a.ipynb": b"x" * (3 << 19), "b.ipynb": b"{}", "c.ipynb": b"{}", "d.ipynb": b"{}"})
    row = class_of("eve")["eve"]
    large, one_too_many = (
        "a.ipynb has 1.5 MB, and 1 MB are the limit",
        "d.ipynb is one too many: 2 notebooks are the limit",
    )
    assert row.left_out == (large, one_too_many)
    assert str(row).endswith(f"Left out: {large}; {one_too_many}.")
    assert read_collected(tmp_path / "out" / "collected.json")["eve"] == row
    assert files(tmp_path, "eve") == {"b.ipynb", "c.ipynb"}


def test_many_large_files_are_not_all_held_at_once(repository, class_of, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 5 << 19)
    repository("eve", {f"{name}.ipynb": b"x" * (1 << 20) for name in "abcd"})
    row = class_of("eve")["eve"]
    assert row.notebooks == 2 and "c.ipynb does not fit: 2 MB are the limit of all notebooks" in row.left_out


@pytest.mark.parametrize(
    "committer",
    [
        "e <e@f> 1700000000 +2500",
        "e <e@f> 1700000000 -9959",
        "e <e@f> 253402343999 -1200",
        "e <e@f> 99999999999999 +0000",
        "e <e@f>",
    ],
)
def test_a_commit_whose_time_is_none_costs_nobody_anything(repository, class_of, tmp_path, committer):
    repository("ada", {"a.ipynb": b"{}"})
    commit = repository("eve", {"a.ipynb": b"{}"})
    tree = git(tmp_path / "eve.git", "rev-parse", f"{commit}^{{tree}}")
    raw = f"tree {tree}\nauthor {committer}\ncommitter {committer}\n\nhanded in\n".encode()
    forged = git(tmp_path / "eve.git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=raw)
    git(tmp_path / "eve.git", "update-ref", "refs/heads/main", forged)
    rows = class_of("eve", "ada")
    assert rows["eve"].committed == "" and "cannot be read" in rows["eve"].problem
    assert rows["eve"].notebooks == rows["ada"].notebooks == 1
    assert {row.student: row.time is None for row in rows.values()} == {"eve": True, "ada": False}


def test_folders_that_stand_for_countless_files_cost_their_own_row(repository, class_of, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LIST_TIMEOUT_S", 1)
    repository("ada", {"a.ipynb": b"{}"})
    repository("eve", {"a.ipynb": b"{}"})
    tree = git(tmp_path / "eve.git", "mktree", "-z")
    for _ in range(10):
        tree = git(
            tmp_path / "eve.git", "mktree", given="".join(f"040000 tree {tree}\t{n}\n" for n in range(10)).encode()
        )
    commit = git(tmp_path / "eve.git", "commit-tree", "-m", "handed in", tree)
    git(tmp_path / "eve.git", "update-ref", "refs/heads/main", commit)
    start = time.monotonic()
    rows = class_of("eve", "ada")
    assert time.monotonic() - start < 20
    assert "took longer than 1 s" in rows["eve"].problem and rows["ada"].notebooks == 1


def test_a_repository_that_cannot_be_fetched_costs_its_own_row(repository, class_of, tmp_path, monkeypatch):
    for name, value in (("COUNT", "1"), ("KEY_0", "protocol.ext.allow"), ("VALUE_0", "always")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    repository("ada", {"a.ipynb": b"{}"})
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    (tmp_path / "broken.git").mkdir()
    pwned = tmp_path / "pwned"
    rows = class_of(
        "ada", "empty", "broken", "gone", none="", ext=f"ext::sh -c touch% {pwned}", option="--upload-pack=x"
    )
    assert rows["ada"].notebooks == 1
    assert rows["empty"].problem == "There is no commit to take."
    assert rows["none"].problem == "Not fetched: the roster names no repository."
    assert {student for student, row in rows.items() if row.fetched} == {"ada", "empty"}
    for student in ("broken", "gone", "ext", "option"):
        assert rows[student].problem.startswith("Not fetched: "), student
        assert "\n" not in str(rows[student])
    assert not pwned.exists()
    assert len(json.loads((tmp_path / "out" / "collected.json").read_text())) == 7


def test_a_repository_without_a_notebook_says_so(repository, class_of):
    repository("ada", {"a.txt": b""})
    assert class_of("ada")["ada"].problem == "There is no notebook in it."


def test_the_only_branch_is_taken_where_the_default_one_is_empty(repository, class_of):
    commit = repository("ada", {"a.ipynb": b"{}"}, branch="work")
    assert class_of("ada")["ada"].commit == commit
    repository("ada", {"b.ipynb": b"{}"}, branch="other")
    row = class_of("ada")["ada"]
    assert "the default branch is empty, and there are 2 others" in row.problem and not row.fetched


def test_what_was_handed_in_again_replaces_what_was_there(repository, class_of, tmp_path):
    repository("ada", {"a.ipynb": b"first"})
    first = class_of("ada")["ada"]
    stamp = (tmp_path / "out" / "ada" / "a.ipynb").stat().st_mtime_ns
    assert class_of("ada")["ada"] == first
    assert (tmp_path / "out" / "ada" / "a.ipynb").stat().st_mtime_ns == stamp
    repository("ada", {"b.ipynb": b"second"})
    assert class_of("ada")["ada"].commit != first.commit
    assert files(tmp_path, "ada") == {"b.ipynb"}


def test_what_was_collected_before_stays_where_the_fetch_fails(repository, class_of, tmp_path):
    commit = repository("ada", {"a.ipynb": b"first"})
    class_of("ada")
    row = class_of(ada="away.git")["ada"]
    assert row.commit == commit and "does not exist" in row.problem and not row.fetched
    assert files(tmp_path, "ada") == {"a.ipynb"}
    row = class_of("ada")["ada"]
    assert (row.commit, row.problem, row.fetched) == (commit, "", True)


def test_a_folder_that_is_not_from_a_collection_is_left_alone(repository, class_of, tmp_path):
    repository("ada", {"a.ipynb": b"{}"})
    (tmp_path / "out" / "ada").mkdir(parents=True)
    (tmp_path / "out" / "ada" / "mine.txt").write_text("mine")
    row = class_of("ada")["ada"]
    assert "is not from a collection" in row.problem and not row.fetched
    assert files(tmp_path, "ada") == {"mine.txt"}


def test_a_ledger_that_is_broken_is_said_in_a_sentence(repository, class_of, tmp_path):
    repository("ada", {"a.ipynb": b"{}"})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "collected.json").write_text("[{")
    with pytest.raises(CourseError, match="not what `labkit collect` writes.*; move it away"):
        class_of("ada")


@pytest.mark.skipif(os.name == "nt", reason="a shell stands in for ssh")
def test_a_server_that_never_answers_costs_its_own_row(class_of, monkeypatch):
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")  # else git would ask which one it is
    monkeypatch.setenv("GIT_SSH_COMMAND", "sleep 60;")
    monkeypatch.setattr(module, "FETCH_TIMEOUT_S", 1)
    start = time.monotonic()
    assert "took longer than 1 s" in class_of(slow="ssh://example.org/slow.git")["slow"].problem
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ada,ada.git\n", "no column `student`"),
        ("", "no column `student`"),
        ("student\nada\n", "no column `repository`"),
        ("student,repository\n../ada,a.git\n", "line 2 of .* cannot be a folder"),
        ("student,repository\n.,a.git\n", "cannot be a folder"),
        ("student,repository\n,a.git\n", "cannot be a folder"),
        ("student,repository\nada,a.git\nAda,b.git\n", "line 3 of .*: Ada is there twice"),
    ],
)
def test_a_roster_that_is_none_is_told_so(tmp_path, text, said):
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(CourseError, match=said):
        read_roster(tmp_path / "roster.csv")


def test_a_roster_may_come_from_a_spreadsheet(tmp_path):
    text = "\ufeffsection,student,repository\r\n1, Ada Lovelace ,class/ada.git\r\n"
    (tmp_path / "roster.csv").write_bytes(text.encode())
    assert read_roster(tmp_path / "roster.csv") == {"Ada Lovelace": "class/ada.git"}
    with pytest.raises(CourseError, match="cannot be read"):
        read_roster(tmp_path / "absent.csv")

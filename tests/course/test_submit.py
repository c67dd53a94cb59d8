"""Handing in: what is committed and pushed, and the sentence where it cannot be."""

import json
import os
import subprocess

import pytest

from labkit.checking.verdict import Verdict
from labkit.course import git as git_module
from labkit.course.manifest import CourseError
from labkit.course.submit import require_work, submit
from labkit.exercises import exercise
from labkit.exercises.progress import WORK_LOG, note
from labkit.grading.course import Course

COURSE = Course("hw2", ("03-tiled-gemm",), {"put-the-barrier-back": 2, "pad-the-tile": 2})


@pytest.fixture(autouse=True)
def student(monkeypatch, tmp_path):
    """A git that knows no settings of this machine's, and one student."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))] + ["EMAIL"]:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def remote(tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def work(tmp_path):
    """A repository with one commit, as a student's clone has it."""
    folder = tmp_path / "work"
    (folder / "notebooks").mkdir(parents=True)
    (folder / "notebooks" / "a.ipynb").write_text("blank")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "as handed out")
    return folder


def write(work, text="answer"):
    (work / "notebooks" / "a.ipynb").write_text(text)


def hand_in(work):
    require_work(work)
    return submit(COURSE, work, ["put-the-barrier-back"], 2)


def test_notebooks_are_committed_and_pushed_with_the_points_so_far(work, remote):
    git(work, "remote", "add", "origin", str(remote))
    write(work)
    (work / "notebooks" / "new.ipynb").write_text("more")
    committed, pushed = hand_in(work)
    assert committed.startswith("Committed as ") and pushed == "Pushed to origin."
    assert (
        git(remote, "log", "-1", "--format=%s/%b", "main") == "Submit hw2: 2 of 4 points/Solved: put-the-barrier-back"
    )
    assert git(remote, "show", "main:notebooks/a.ipynb") == "answer"
    assert git(remote, "show", "main:notebooks/new.ipynb") == "more"


def test_the_work_log_of_a_course_is_handed_in(work, remote):
    git(work, "remote", "add", "origin", str(remote))
    (work / "course.json").write_text('{"work_log": true}')
    rules = exercise("pad-the-tile")
    note(Verdict(rules.id, rules.title, rules.points, "race", ""), work / "notebooks")
    hand_in(work)
    row = json.loads(git(remote, "show", f"main:notebooks/{WORK_LOG}"))
    assert (row["exercise"], row["reason"]) == ("pad-the-tile", "race")


def test_nothing_beside_the_notebooks_is_committed(work):
    write(work)
    (work / "secret.txt").write_text("mine")
    git(work, "add", "secret.txt")
    hand_in(work)
    assert git(work, "ls-files", "--cached").split() == ["notebooks/a.ipynb", "secret.txt"]
    assert "secret.txt" not in git(work, "ls-tree", "-r", "--name-only", "HEAD")


def test_the_first_commit_of_a_repository_can_be_a_submission(tmp_path):
    (tmp_path / "work" / "notebooks").mkdir(parents=True)
    write(tmp_path / "work")
    git(tmp_path / "work", "init", "--quiet")
    assert hand_in(tmp_path / "work")[0].startswith("Committed")


def test_without_a_remote_it_is_committed_and_said(work):
    write(work)
    assert "there is no remote" in hand_in(work)[-1]
    assert git(work, "log", "-1", "--format=%s").startswith("Submit hw2")


def test_what_was_committed_and_not_pushed_is_pushed_the_next_time(work, remote):
    write(work)
    hand_in(work)
    git(work, "remote", "add", "origin", str(remote))
    assert hand_in(work) == ["Pushed to origin."]
    with pytest.raises(CourseError, match="nothing has changed since your last submission, [0-9a-f]{7}"):
        hand_in(work)


def test_nothing_changed_is_said_before_anything_is_checked(work, remote):
    git(work, "remote", "add", "origin", str(remote))
    git(work, "push", "--quiet", "--set-upstream", "origin", "main")
    with pytest.raises(CourseError, match="nothing has changed"):
        require_work(work)


def test_a_folder_that_is_no_repository(tmp_path):
    (tmp_path / "plain").mkdir()
    with pytest.raises(CourseError, match="is not a git repository; clone the one"):
        require_work(tmp_path / "plain")


@pytest.mark.parametrize("known", ["", "[user]\nemail = ada@example.org\n"])
def test_a_git_that_does_not_know_the_student(work, tmp_path, known):
    """A name that git would guess from the account is none."""
    (tmp_path / "gitconfig").write_text(known)
    write(work)
    with pytest.raises(CourseError, match="does not know who you are; run git config"):
        require_work(work)


def test_a_machine_without_git(work, monkeypatch, tmp_path):
    monkeypatch.setattr(git_module.shutil, "which", lambda name: None)
    with pytest.raises(CourseError, match="git is not here; install it"):
        require_work(work)


def test_an_unfinished_merge(work):
    git(work, "switch", "--quiet", "--create", "other")
    write(work, "theirs")
    git(work, "commit", "--quiet", "--all", "--message", "theirs")
    git(work, "switch", "--quiet", "main")
    write(work, "ours")
    git(work, "commit", "--quiet", "--all", "--message", "ours")
    subprocess.run(["git", "merge", "--quiet", "other"], cwd=work, capture_output=True)
    with pytest.raises(CourseError, match="a merge is not finished; finish it or run git merge --abort"):
        require_work(work)


def test_a_head_on_no_branch(work):
    git(work, "switch", "--quiet", "--detach")
    write(work)
    with pytest.raises(CourseError, match="on no branch"):
        require_work(work)


def test_a_remote_that_has_gone_on(work, remote, tmp_path):
    git(work, "remote", "add", "origin", str(remote))
    git(work, "push", "--quiet", "--set-upstream", "origin", "main")
    git(tmp_path, "clone", "--quiet", "--branch", "main", str(remote), "laptop")
    write(tmp_path / "laptop", "from the laptop")
    hand_in(tmp_path / "laptop")
    write(work)
    with pytest.raises(CourseError, match="committed, but the remote has commits .* git pull"):
        hand_in(work)


def test_a_remote_that_is_away_costs_the_push_alone(work, tmp_path):
    git(work, "remote", "add", "origin", str(tmp_path / "nowhere.git"))
    write(work)
    with pytest.raises(CourseError, match="committed, but not pushed, so submit again later: git push failed: fatal"):
        hand_in(work)
    assert git(work, "log", "-1", "--format=%s").startswith("Submit hw2")

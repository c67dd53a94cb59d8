"""`labkit submit`: a student's notebooks, committed and pushed."""

from collections.abc import Iterable
from pathlib import Path

from labkit.course.git import GitError, git, output_or_none
from labkit.course.manifest import NOTEBOOKS, CourseError
from labkit.grading.course import Course

_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}


def require_work(folder: Path):
    """Raise a CourseError where nothing can be committed here, or nothing has changed."""
    git_folder = output_or_none(folder, "rev-parse", "--absolute-git-dir")
    if git_folder is None:
        raise CourseError(
            f"{folder} is not a git repository; clone the one that your instructor gave you and work there"
        )
    for file, what in _UNFINISHED.items():
        if (Path(git_folder) / file).exists():
            raise CourseError(f"a {what} is not finished; finish it or run git {what} --abort, then submit again")
    if output_or_none(folder, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT") is None:
        raise CourseError(
            'git does not know who you are; run git config --global user.name "Your Name" '
            "and git config --global user.email you@example.org, then submit again"
        )
    if output_or_none(folder, "symbolic-ref", "--quiet", "HEAD") is None:
        raise CourseError("you are on no branch; run git switch main, then submit again")
    if not _changed(folder) and not _ahead(folder):
        raise CourseError(f"nothing has changed since your last submission, {_last(folder)}")


def _changed(folder: Path) -> bool:
    """Say if the notebooks differ from the last commit."""
    return bool(git(folder, "status", "--porcelain", "--", NOTEBOOKS))


def submit(course: Course, folder: Path, solved: Iterable[str], points: float) -> list[str]:
    """Commit the notebooks and push them to the branch's remote, if there is one; sentences say what was done.

    Nothing but the folder of the notebooks is committed, whatever else is staged.
    """
    sentences = []
    if _changed(folder):
        headline = f"Submit {course.assignment}: {points:g} of {course.out_of:g} points"
        note = f"{headline}\n\nSolved: {', '.join(solved) or 'none'}"
        git(folder, "add", "--", NOTEBOOKS)
        git(folder, "commit", "--quiet", "--message", note, "--", NOTEBOOKS)
        sentences.append(f"Committed as {_last(folder)}.")
    return [*sentences, _push(folder)]


def _last(folder):
    return output_or_none(folder, "log", "-1", "--format=%h of %ci") or "which is still to come"


def _ahead(folder):
    """Say if there are commits that the remote does not have; all are if nothing was ever pushed."""
    count = output_or_none(folder, "rev-list", "--count", "@{upstream}..HEAD")
    return count != "0" if count is not None else _remote(folder) is not None


def _remote(folder):
    """Return the branch's remote, else `origin`, else the only one."""
    branch = output_or_none(folder, "symbolic-ref", "--short", "HEAD")
    there = (output_or_none(folder, "remote") or "").split()
    configured = output_or_none(folder, "config", f"branch.{branch}.remote")
    if configured in there:
        return configured
    return "origin" if "origin" in there else there[0] if len(there) == 1 else None


def _push(folder):
    remote = _remote(folder)
    if remote is None:
        return "Not pushed: there is no remote; run git remote add origin ADDRESS, then submit again."
    try:
        git(folder, "push", "--quiet", "--set-upstream", remote, "HEAD")
    except GitError as error:
        if "[rejected]" in error.output:
            raise CourseError(
                "your work is committed, but the remote has commits that are not here; run git pull, then submit again"
            ) from error
        raise CourseError(f"your work is committed, but not pushed, so submit again later: {error}") from error
    return f"Pushed to {remote}."

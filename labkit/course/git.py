"""Runs git, whose failures become sentences."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from labkit.course.manifest import CourseError


class GitError(CourseError):
    """A failure of git; `output` is its error text."""

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.output = output


def git(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> bytes:
    """Run `git` in a folder and return its output; raises GitError if it fails or takes longer than `timeout_s`."""
    if shutil.which("git") is None:
        raise GitError("git is not here; install it, open a new terminal and run this again")
    process = subprocess.Popen(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=timeout_s is not None,  # else git could not ask for a password
    )
    try:
        printed, complaint = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as late:
        _kill(process)
        raise GitError(f"git {arguments[0]} took longer than {timeout_s:g} s") from late
    if process.returncode:
        output = complaint.decode(errors="replace").strip()
        raise GitError(f"git {arguments[0]} failed: {_reason(output)}", output)
    return printed


def _kill(process):
    """End git and what it started, which may hold its pipes."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def output_or_none(folder: Path, *arguments: str) -> str | None:
    """Return the output of `git` without the line's end, or None if it fails."""
    try:
        return git(folder, *arguments).decode(errors="replace").strip()
    except GitError as error:
        if error.output or shutil.which("git"):
            return None
        raise


def _reason(output: str) -> str:
    """Return the line with the reason: the first that git calls fatal or an error, else its last."""
    printable = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in output)
    lines = [line.strip() for line in printable.splitlines() if line.strip()]
    faults = [line for line in lines if line.startswith(("fatal: ", "error: ", "remote: error: ", "! "))]
    return (faults or lines[-1:] or ["it gave no reason"])[0]

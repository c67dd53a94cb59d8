"""`labkit collect`: the notebooks of a roster's repositories, a folder per student, with the times of the commits.

No file of a student is checked out. Notebooks are read from the fetched objects as bytes and written under checked
names, so that links, hooks, filters and odd paths in a repository have no effect.
"""

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from labkit.course.git import git, output_or_none
from labkit.course.manifest import NOTEBOOKS, CourseError
from labkit.exercises.progress import WORK_LOG
from labkit.grading.collected import FILE, Collected, is_time, read_collected, to_json
from labkit.grading.files import LATE, MAX_BYTES, MAX_NOTEBOOKS, printable_path
from labkit.grading.roster import RosterError, read_table

FETCHES_AT_ONCE = 8
FETCH_TIMEOUT_S = 120
LIST_TIMEOUT_S = 10  # folders that hold one another's trees may stand for more files than there can be
MAX_TOTAL_BYTES = 100 << 20  # of a student's notebooks
MAX_LOG_BYTES = 1 << 20
MAX_SHOWN = 80  # characters of the name of a file that is left out
_FOLDER = re.compile(r"[\w@+-][\w@+. -]*(?<![. ])")
_PLAIN = re.compile(r'[^\x00-\x1f\x7f<>:"|?*\\/]+')
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}


def read_roster(path: Path) -> dict[str, str]:
    """Read students and their repositories' addresses from a CSV with the columns `student` and `repository`."""
    try:
        rows = read_table(path, "student", "repository")
    except RosterError as error:
        raise CourseError(str(error)) from error
    roster: dict[str, str] = {}
    for line, row in enumerate(rows, 2):
        student, repository = row["student"].strip(), row["repository"].strip()
        if not _FOLDER.fullmatch(student):
            raise CourseError(f"line {line} of {path}: {student!r} cannot be a folder; use letters, digits, - and _")
        if student.casefold() in map(str.casefold, roster):
            raise CourseError(f"line {line} of {path}: {student} is there twice; give each student one line")
        roster[student] = repository
    return roster


def collect(
    roster: Path, out: Path, before: datetime | None = None, deadline: datetime | None = None
) -> Iterator[Collected]:
    """Fetch every repository of the roster into `out`, and yield each result as it comes, in the roster's order.

    The last commit counts, or the last one that was made before a time: its committer's clock says when. With a
    deadline the last commit of all is taken too, into a folder for late ones, and grading counts the better answer.

    What was collected before is replaced where the commit is another one, and stays where the fetch fails. The results
    stand in `collected.json`.
    """
    students = read_roster(roster)
    try:
        earlier = read_collected(out / FILE) if (out / FILE).exists() else {}
    except RosterError as error:
        raise CourseError(f"{error}; move it away") from error
    out.mkdir(parents=True, exist_ok=True)
    results = {}
    with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        jobs = [
            pool.submit(
                _collect, Collected(student, repository), earlier.get(student), roster.parent, out, before, deadline
            )
            for student, repository in students.items()
        ]
        for job in jobs:
            result = job.result()
            results[result.student] = result
            _replace(out / FILE, to_json({**earlier, **results}.values()))
            yield result


def _replace(path, text):
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    temporary.replace(path)


def _collect(
    row: Collected,
    earlier: Collected | None,
    cwd: Path,
    out: Path,
    before: datetime | None,
    deadline: datetime | None,
) -> Collected:
    """Collect the notebooks of one student; a faulty repository affects only this row."""
    folder = out / row.student
    if earlier is None and folder.exists():
        problem = f"Not fetched: {folder} was there before and is not from a collection; move it away."
        return replace(row, problem=problem, fetched=False)
    if not row.repository:
        problem = "Not fetched: the roster names no repository."
        return replace(earlier or row, repository="", problem=problem, fetched=False)
    try:
        with TemporaryDirectory(prefix="labkit-collect-", ignore_cleanup_errors=True) as temporary_folder:
            bare = Path(temporary_folder) / "repository"
            clone = ["clone", "--quiet", "--bare", "--no-local", "--no-single-branch", "--no-tags"]
            latest = [] if before or deadline else ["--depth=1"]
            git(cwd, *clone, *latest, "--", row.repository, str(bare), env=_ENVIRONMENT, timeout_s=FETCH_TIMEOUT_S)
            commit, last = _find_commit(bare, before or deadline) or "", _find_commit(bare, before) or ""
            late_commit = last if last != commit else ""
            if not last:
                until = f" before {before:%Y-%m-%d %H:%M:%S %z}" if before else ""
                problem = f"There is no commit to take{until}."
                return replace(earlier or row, repository=row.repository, problem=problem, fetched=True)
            known = (earlier.commit, earlier.late_commit) if earlier and earlier.fetched and folder.exists() else None
            if earlier and known == (commit, late_commit):
                return replace(earlier, repository=row.repository)
            result = _take(bare, commit, folder, row)
            late = _take(bare, late_commit, out / LATE / row.student, row)
    except (CourseError, OSError) as error:
        return replace(earlier or row, repository=row.repository, problem=f"Not fetched: {error}.", fetched=False)
    problem = f"{result.problem} {late.problem}".strip()
    left_out = tuple(dict.fromkeys([*result.left_out, *late.left_out]))
    late_fields = {"late_commit": late.commit, "late_committed": late.committed}
    return replace(result, problem=problem, left_out=left_out, **late_fields)


def _take(bare: Path, commit: str, folder: Path, row: Collected) -> Collected:
    """Write the notebooks of a commit into a folder, in place of those that were there; none if there is no commit."""
    if not commit:
        shutil.rmtree(folder, ignore_errors=True)
        return row
    committed = output_or_none(bare, "log", "-1", "--format=%cI", commit) or ""
    notebooks, left_out = _read_notebooks(bare, commit)
    problem = "" if notebooks or left_out else "There is no notebook in it."
    if not is_time(committed):
        committed, problem = "", f"{problem} The time of the commit cannot be read.".strip()
    fresh = bare.with_name(f"notebooks-{commit}")
    for name, content in notebooks.items():
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).write_bytes(content)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    shutil.copytree(fresh, folder) if notebooks else folder.mkdir()
    if log := _read_work_log(bare, commit):
        (folder / NOTEBOOKS).mkdir(exist_ok=True)
        (folder / NOTEBOOKS / WORK_LOG).write_bytes(log)
    what = {"notebooks": len(notebooks), "problem": problem, "left_out": left_out}
    return replace(row, commit=commit, committed=committed, **what)


def _find_commit(bare: Path, before: datetime | None) -> str | None:
    """Return the last commit of the default branch before a time; if that branch is empty, of the only one."""
    commit = output_or_none(bare, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    branches = (output_or_none(bare, "for-each-ref", "--format=%(objectname)", "refs/heads") or "").split()
    if commit is None and len(branches) > 1:
        raise CourseError(f"the default branch is empty, and there are {len(branches)} others; ask for one to be named")
    commit = commit or next(iter(branches), None)
    if commit and before:
        return git(bare, "rev-list", "-1", f"--before={before.isoformat()}", commit).decode().strip() or None
    return commit


def _read_notebooks(bare: Path, commit: str) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the notebooks of a commit by path, and what is left out, each with the reason."""
    notebooks, left_out, bytes_left = {}, [], MAX_TOTAL_BYTES
    for entry in git(bare, "ls-tree", "-r", "-z", "-l", commit, timeout_s=LIST_TIMEOUT_S).split(b"\0"):
        if not entry.lower().endswith(b".ipynb"):
            continue
        attributes, _, path = entry.partition(b"\t")
        mode, _, object, size = attributes.split()
        name = _safe_name(path)
        if name == "":
            continue
        is_plain_file = mode in (b"100644", b"100755")
        if name is None:
            why = "has a name that some systems cannot write"
        elif not is_plain_file:
            why = "is a link, not a file"
        elif int(size) > MAX_BYTES:
            why = f"has {int(size) / (1 << 20):.1f} MB, and {MAX_BYTES >> 20} MB are the limit"
        elif int(size) > bytes_left:
            why = f"does not fit: {MAX_TOTAL_BYTES >> 20} MB are the limit of all notebooks"
        elif len(notebooks) == MAX_NOTEBOOKS:
            why = f"is one too many: {MAX_NOTEBOOKS:,} notebooks are the limit"
        else:
            notebooks[name] = git(bare, "cat-file", "blob", object.decode())
            bytes_left -= len(notebooks[name])
            continue
        left_out.append(f"{printable_path(path.decode(errors='surrogateescape'))[:MAX_SHOWN]} {why}")
    return notebooks, tuple(left_out)


def _read_work_log(bare: Path, commit: str) -> bytes:
    """Return the work log in a commit; nothing if it is not a plain file, or too large."""
    entry = git(bare, "ls-tree", "-l", commit, "--", f"{NOTEBOOKS}/{WORK_LOG}", timeout_s=LIST_TIMEOUT_S)
    mode, _, object, size, *_ = [*entry.split(), b"", b"", b"", b""]
    is_taken = mode in (b"100644", b"100755") and int(size) <= MAX_LOG_BYTES
    return git(bare, "cat-file", "blob", object.decode()) if is_taken else b""


def _safe_name(path: bytes) -> str | None:
    """Return the path as a name to write to: None if it is unsafe, "" if a folder of it is hidden."""
    try:
        parts = PurePosixPath(path.decode()).parts
    except UnicodeDecodeError:
        return None
    if ".." in parts or not all(_PLAIN.fullmatch(part) for part in parts):
        return None
    return "" if any(part.startswith(".") for part in parts) else "/".join(parts)

"""Files that differ from where this branch left `main`: committed since, changed, or new."""

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


@cache
def changed_files() -> frozenset[str]:
    """Paths from the root, deleted ones too; none where there is no git."""
    try:
        base = _git("merge-base", "HEAD", _main() or "HEAD")
        listed = _git("diff", "--name-only", "--no-renames", *base) + _git("ls-files", "--others", "--exclude-standard")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return frozenset()
    return frozenset(listed)


def chapters_in(paths: Iterable[str]) -> set[str]:
    """Slugs of the chapters whose source or notebooks are among some paths from the root."""
    return {slug(path) for path in paths if path.startswith("notebooks/")}


def slug(path) -> str:
    """A chapter's name without its number."""
    return re.sub(r"^\d\d-", "", Path(path).stem)


def _main():
    """The branch that changes are merged into; on itself what it was when last pushed."""
    on_main = _git("rev-parse", "--abbrev-ref", "HEAD") == ["main"]
    known = _git("for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/remotes/origin/main")
    return next((name for name in known if not (on_main and name == "main")), None)


def _git(*arguments) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()

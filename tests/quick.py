"""`make quick`: the tests that a change touches, nearest first, for as long as three minutes allow.

Near is a test of the changed module's own name, then those that import it directly, then through others. Chapters whose
source changed run under nbval; what all stands on is always tested by the layers and the tree.
"""

import subprocess
import sys
from pathlib import Path

from changes import ROOT, changed_files, chapters_in, slug
from imports import distances

SECONDS = 130  # in which tests begin; the last ones, and the start of the workers, take the rest of three minutes
MOST_FILES = 60
ALWAYS = ("tests/test_layers.py", "tests/test_tree.py")


def touched(changed: set[str]) -> list[str]:
    """Test files and notebooks that changed files touch, the nearest first."""
    files = {ROOT / path for path in changed}
    imports = distances({path for path in files if path.suffix == ".py"})
    found = {path: distance for path, distance in imports.items() if path.name.startswith("test_") and path.is_file()}
    for path in files:
        for test, distance in _tests_beside(path).items():
            found[test] = min(found.get(test, distance), distance)
    order = sorted(found, key=lambda path: (found[path], path))
    tests = [path.relative_to(ROOT).as_posix() for path in order]
    return [*ALWAYS, *_chapters(changed), *[path for path in tests if path not in ALWAYS][:MOST_FILES]]


def _tests_beside(path: Path) -> dict[Path, int]:
    """The tests of the folder that mirrors a file's, also for what is no module: 0 for those named like it, else 1."""
    if path.is_relative_to(ROOT / "tests"):
        return {test: 0 for test in path.parent.glob(f"{path.stem}.py") if test.name.startswith("test_")}
    if not path.is_relative_to(ROOT / "labkit"):
        return {}
    *folders, name = path.relative_to(ROOT / "labkit").with_suffix("").parts
    mirrored = next(n for n in range(len(folders), -1, -1) if (ROOT / "tests").joinpath(*folders[:n]).is_dir())
    words = {*folders[mirrored:], name.lstrip("_")}
    folder = (ROOT / "tests").joinpath(*folders[:mirrored])
    near = {test: int(not any(word in test.stem for word in words)) for test in folder.glob("test_*.py")}
    return near if mirrored else {test: 0 for test in near if test.stem.removeprefix("test_") in words}


def _chapters(changed) -> list[str]:
    """The solved notebooks of chapters that changed."""
    solved = sorted((ROOT / "notebooks/solutions").glob("*.ipynb"))
    return [path.relative_to(ROOT).as_posix() for path in solved if slug(path) in chapters_in(changed)]


def main():
    chosen = touched(changed_files())
    print(f"{len(chosen)} files of tests, the nearest first:", *chosen[:12], *["..."][: len(chosen) > 12], sep="\n  ")
    options = [
        "-n",
        "logical",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "--nbval",
        "--begin-within",
        str(SECONDS),
    ]
    return subprocess.call([sys.executable, "-m", "pytest", *options, *chosen], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())

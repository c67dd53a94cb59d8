"""What git tracks: nothing strange in the root, and no path that Windows or macOS cannot check out."""

import re
import subprocess
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IN_ROOT = set(
    ".ci .gitattributes .github .gitignore CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE Makefile README.md "
    "constraints.txt environment.yml kernels labkit notebooks pyproject.toml site tests".split()
)
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # names of devices on Windows
LONGEST = 140  # characters; Windows takes 260, with the folder of the checkout


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return listed.decode().rstrip("\0").split("\0")


def fault(path: str) -> str:
    """Why a path cannot be checked out everywhere; "" where it can."""
    if len(path) > LONGEST:
        return "is too long"
    for name in path.split("/"):
        if re.search(r'[<>:"|?*\\\x00-\x1f]', name):
            return "has a character that Windows refuses"
        if name.endswith((".", " ")) or RESERVED.fullmatch(name):
            return "has a name that Windows refuses"
    return "" if path == unicodedata.normalize("NFC", path) else "is written otherwise on macOS"


def test_the_root_holds_what_it_should():
    assert {path.split("/")[0] for path in tracked()} <= IN_ROOT


def test_what_a_machine_writes_is_marked_as_generated():
    """Reviews fold these away."""
    built = [path for path in tracked() if re.match(r"notebooks/.*\.ipynb|labkit/results/.*\.json", path)]
    asked = ["git", "check-attr", "linguist-generated", *built]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True, text=True).stdout.splitlines()
    assert len(told) == len(built) and all(line.endswith(": set") for line in told)


def test_every_path_is_legal_everywhere():
    assert not {path: fault(path) for path in tracked() if fault(path)}


def test_no_two_paths_differ_by_case_alone():
    paths = tracked()
    assert len({path.casefold() for path in paths}) == len(paths)


@pytest.mark.parametrize("path", ["*1", "a/b?.py", "a/nul", "aux.py", "a./b", "a /b", "x" * 141, "e\u0301.py", "a\\b"])
def test_illegal_paths_are_recognised(path):
    assert fault(path)

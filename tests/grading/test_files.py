"""Files that only have a notebook's name: each costs its own row, and none is waited for, followed or run."""

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from labkit.grading import files
from labkit.grading.files import Unreadable, find_notebooks, printable_path, read_bytes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="these files are made on Unix")


def link(path):
    path.with_name("secret").write_text("{}")
    path.symlink_to(path.with_name("secret"))


def socket_file(path):
    socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))


MAKE = {
    "link": (link, "is a link"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "is a link"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a link"),
    "fifo": (os.mkfifo, "is not a file"),
    "socket": (socket_file, "is not a file"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "huge": (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), files.MAX_BYTES + 1), "more than"),
    "absent": (lambda path: None, "no such file"),
}


@pytest.mark.parametrize("kind", MAKE)
def test_what_is_no_plain_file_has_a_reason(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    make, reason = MAKE[kind]
    make(tmp_path / "a.ipynb")
    with pytest.raises(Unreadable, match=reason):
        read_bytes(tmp_path / "a.ipynb")


def test_a_device_is_not_opened():
    with pytest.raises(Unreadable, match="is not a file"):
        read_bytes(Path("/dev/zero"))


def test_links_are_not_followed_and_odd_names_are_found(tmp_path):
    work = tmp_path / "work"
    (work / "deep" / "\x1b[31m\u202e\n").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.ipynb").touch()
    (work / "all").symlink_to(tmp_path / "elsewhere")
    (work / "folder.ipynb").mkdir()
    (work / "B.IPYNB").touch()
    odd = os.fsencode(work / "deep" / "\x1b[31m\u202e\n") + b"/\xff\xfe.ipynb"
    os.close(os.open(odd, os.O_CREAT))
    found = {printable_path(entry.path.relative_to(work)): entry.complaint for entry in find_notebooks(work)}
    assert found == {
        "B.IPYNB": "",
        "deep/\\x1b[31m\\u202e\\n/\\udcff\\udcfe.ipynb": "",
        "folder.ipynb": "This is a folder: hand in a notebook.",
    }
    (entry,) = find_notebooks(work / "all")
    with pytest.raises(Unreadable, match="is a link"):
        read_bytes(entry.path)


def test_folders_without_end_are_left_out_with_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_NOTEBOOKS", 3)
    deep = tmp_path
    for _ in range(files.MAX_DEPTH + 2):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "a.ipynb").touch()
    assert [entry.complaint[:12] for entry in find_notebooks(tmp_path)] == ["More than 32"]
    for number in range(5):
        (tmp_path / f"{number}.ipynb").touch()
    *complaints, _ = [entry.complaint for entry in find_notebooks(tmp_path)]
    assert complaints == ["", "", "", "More than 3 notebooks are here: the rest was left out."]


def test_names_that_look_alike_are_shown_apart():
    assert printable_path("a\\x1b") != printable_path("a\x1b")
    assert printable_path("\u00e9t\u00e9") == "\u00e9t\u00e9"


@pytest.mark.parametrize(
    ("roots", "names"),
    [
        ("/home/prof/class", "class"),
        ("/home/prof/a/03.ipynb /home/prof/b/03.ipynb /home/prof/04.ipynb", "a/03.ipynb b/03.ipynb 04.ipynb"),
    ],
)
def test_reports_name_no_folder_of_the_grader(roots, names):
    assert list(files.name_roots(map(Path, roots.split())).values()) == names.split()


def test_a_student_with_countless_notebooks_costs_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_NOTEBOOKS", 3)
    for student, count in (("ann", 2), ("mallory", 9), ("zoe", 3)):
        (tmp_path / student / "work").mkdir(parents=True)
        for number in range(count):
            (tmp_path / student / "work" / f"{number}.ipynb").touch()
    for student in ("ann", "zoe"):
        (tmp_path / files.LATE / student).mkdir(parents=True)
        for number in range(2):
            (tmp_path / files.LATE / student / f"{number}.ipynb").touch()
    assert sum(files.LATE in entry.path.parts for entry in find_notebooks(tmp_path) if not entry.complaint) == 4
    shutil.rmtree(tmp_path / files.LATE)
    found = [(entry.path.relative_to(tmp_path).parts[0], bool(entry.complaint)) for entry in find_notebooks(tmp_path)]
    assert found == [("ann", False)] * 2 + [("mallory", False)] * 3 + [("mallory", True)] + [("zoe", False)] * 3

"""Answers that run as programs: in the sandbox alone, where they harm nobody, and for no points."""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import psutil
import pytest
from attacks.programs import PROGRAMS
from handed_in import SAXPY, hand_in, solutions
from sampling import sampled
from test_hostile_class import CANARY, classroom, fill_in, graded  # noqa: F401

from labkit import places
from labkit.exercises import exercise_ids
from labkit.grading import sandbox, second_pass
from labkit.grading.rebuild import read_chapters
from labkit.grading.trusted import Task

CHAPTER = "first-gpu-matmul"
needs_bubblewrap = pytest.mark.needs("bubblewrap")


def ran(**answers):
    """Return the results of answers to a chapter."""
    ids = exercise_ids(CHAPTER)
    task = Task("ann", CHAPTER, solutions(CHAPTER) | {ids[int(name[1:]) - 1]: answers[name] for name in answers})
    with ThreadPoolExecutor(1) as executor:
        return {id: said for _, id, said in second_pass.run_as_programs([task], read_chapters(), executor)}


@needs_bubblewrap
@pytest.mark.long
def test_what_becomes_of_an_answer_is_told():
    assert set(ran().values()) == {"It runs."}
    said = ran(e2="add = undefined", e3="import os\nos._exit(1)")
    assert said["write-saxpy"] == "It runs."
    assert said["rows-and-columns"] == "It fails: NameError: name 'undefined' is not defined"
    assert said["the-game-of-life"] == second_pass.NOT_REACHED


def test_without_a_sandbox_nothing_runs_and_the_report_says_so_once(classroom, monkeypatch):  # noqa: F811
    monkeypatch.setattr(sandbox, "explain_missing", lambda: "No sandbox is here.")
    monkeypatch.setattr(second_pass, "explain_missing", sandbox.explain_missing)
    monkeypatch.setattr("labkit.grading.grade.explain_missing", sandbox.explain_missing)
    monkeypatch.setattr(second_pass, "run_inside", lambda *_: pytest.fail("it ran"))
    (classroom / "class" / "a.ipynb").write_text("{}")
    graded(classroom, run=True)
    assert (classroom / "grades" / "summary.md").read_text().count("No sandbox is here") == 1
    assert set(ran().values()) == {"No sandbox is here."}


@pytest.mark.parametrize(("platform", "found"), [("darwin", "/usr/bin/bwrap"), ("linux", None)])
def test_a_machine_without_bubblewrap_says_what_to_install(monkeypatch, platform, found):
    monkeypatch.setattr(sandbox.sys, "platform", platform)
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: found)
    sandbox.explain_missing.cache_clear()
    assert "apt install bubblewrap" in sandbox.explain_missing()
    monkeypatch.undo()
    sandbox.explain_missing.cache_clear()


@needs_bubblewrap
def test_an_ordinary_user_has_a_sandbox_too():
    user = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--dev-bind", "/", "/"]
    text = "import os\nfrom labkit.grading.sandbox import explain_missing\nprint(os.getuid(), repr(explain_missing()))"
    done = subprocess.run([*user, sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout.strip() == "1000 ''"


FILLS = """
import ctypes, os
ctypes.CDLL(None).unshare(0x10000000 | 0x20000)  # CLONE_NEWUSER, CLONE_NEWNS: root of its own, it could mount more
ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None)
for folder, _, _ in os.walk("/"):
    try:
        for n in range(3):
            with open(f"{folder}/filling-{n}", "wb") as file:
                file.write(bytes(DISK // 2))
        print("filled", folder)
    except OSError:
        pass
    for n in range(3):
        try:
            os.unlink(f"{folder}/filling-{n}")
        except OSError:
            pass
"""


@needs_bubblewrap
def test_no_folder_holds_more_than_the_limit(tmp_path):
    program = FILLS.replace("DISK", str(sandbox.DISK_BYTES))
    status, said = sandbox.run_inside([sys.executable, "-I", "-c", program], tmp_path, {})
    assert (status, said) == (0, "")


LAUNCH = f"""
import labkit
from pathlib import Path
from numba import cuda
import numpy as np

def double(x):
    x[cuda.grid(1)] *= 2

labkit.simulate(cuda.jit(double), 1, 32, np.ones(32, np.float32))
folder = Path({sandbox.COMPILED!r})
print(*(path.name for path in folder.rglob("*.nb?") if not path.is_symlink()) if folder.exists() else "")
"""


@needs_bubblewrap
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_what_this_machine_has_compiled_is_not_compiled_again(tmp_path):
    (tmp_path / "launch.py").write_text(LAUNCH)
    subprocess.run(
        [sys.executable, tmp_path / "launch.py"], check=True, env={**os.environ, "LABKIT_DEVICE": "simulator"}
    )
    status, said = sandbox.run_inside([sys.executable, "launch.py"], tmp_path, {"launch.py": tmp_path / "launch.py"})
    assert (status, said.strip()) == (0, "")


@needs_bubblewrap
@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_programs_that_attack_harm_nobody_and_earn_nothing(classroom, monkeypatch):  # noqa: F811
    monkeypatch.setattr(second_pass, "CELL_TIMEOUT_S", 15)  # the honest one has them on a busy machine too
    ours = sha256(b"".join(path.read_bytes() for path in sorted(places.PACKAGE.rglob("*.py")))).digest()
    names = sampled(PROGRAMS, 3)
    (classroom / "class" / "honest").mkdir()
    hand_in(classroom / "class" / "honest" / "02.ipynb", "first-gpu-matmul", e1=SAXPY + f"# {CANARY}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        for name in names:
            text = fill_in(PROGRAMS[name], classroom).replace("$PORT", str(server.getsockname()[1]))
            hand_in(
                classroom / "class" / name / "02.ipynb", "first-gpu-matmul", e1=text, e2="x = 1", e3="x = 1", e4="x = 1"
            )
        found = graded(classroom, run=True)
        with pytest.raises(TimeoutError):
            server.accept()
    time.sleep(2)
    assert not (classroom / "mark").exists() and not any((folder / "mark").exists() for folder in classroom.parents)
    assert [child.name() for child in psutil.Process().children(recursive=True) if child.name() == "bwrap"] == []
    assert ours == sha256(b"".join(path.read_bytes() for path in sorted(places.PACKAGE.rglob("*.py")))).digest()
    for name in names:
        assert not any(row.points for (student, _), row in found.items() if student == name), name
        assert all(len(row.ran) < 400 and row.ran for (student, _), row in found.items() if student == name), name
    assert {row.ran for (student, _), row in found.items() if student == "honest"} == {"It runs."}
    assert all(row.points for (student, _), row in found.items() if student == "honest")

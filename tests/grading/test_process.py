"""Commands end: at their limits, with all that they started, and when nobody wants them any more."""

import os
import sys
import threading
import time

import psutil
import pytest

from labkit.grading import process
from labkit.grading.process import Limits, run
from labkit.grading.workers import start_workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions and limits are those of Unix")
SLEEPER = "import os, time; os.setsid() if os.fork() == 0 else None; time.sleep(60)"


def python(text, folder, **limits):
    return run([sys.executable, "-c", text], folder, os.environ, Limits(**{"seconds": 60} | limits))


def sleepers():
    return [child for child in psutil.Process().children(recursive=True) if "sleep(60)" in " ".join(child.cmdline())]


def test_what_a_command_prints_is_kept_to_a_length(tmp_path):
    assert python("print('a' * 50, end='b')", tmp_path, printed_bytes=10) == (0, "aaaaaaaaab")


def test_a_command_that_outlives_its_limit_ends_with_all_its_children(tmp_path):
    started_s = time.monotonic()
    assert python(SLEEPER, tmp_path, seconds=2)[0] is None
    assert time.monotonic() - started_s < 10
    assert sleepers() == []


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("import os, time\nfor _ in range(4): os.fork()\ntime.sleep(60)", {"processes": 8}),
        ("held = bytearray(b'1') * (200 << 20)\nimport time; time.sleep(60)", {"memory_bytes": 100 << 20}),
    ],
)
def test_a_command_that_takes_too_much_ends(tmp_path, text, limits):
    started_s = time.monotonic()
    assert python(text, tmp_path, **limits)[0] is None
    assert time.monotonic() - started_s < 30
    assert sleepers() == []


def test_a_command_ends_where_the_memory_of_the_machine_does(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MIN_FREE_SHARE", 1)
    assert python(SLEEPER, tmp_path, memory_bytes=1 << 40)[0] is None
    assert sleepers() == []


def test_an_interrupt_waits_for_no_worker(tmp_path):
    started_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), start_workers(None) as (executor, _):
        running = threading.Event()
        executor.submit(lambda: (running.set(), python(SLEEPER, tmp_path)))
        running.wait()
        while not process._running:
            time.sleep(0.1)
        raise KeyboardInterrupt
    assert time.monotonic() - started_s < 20
    assert sleepers() == []

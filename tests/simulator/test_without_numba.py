"""Where numba is not installed the simulator says the same of every launch, if slowly."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import chapter_launches

SECONDS = 60  # that all of it may take a core without numba


def told(condition):
    """What `chapter_launches` prints in a process of its own, where no kernel is compiled for a GPU."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LABKIT_DEVICE": "simulator"}
    command = [sys.executable, chapter_launches.__file__, condition]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_first_chapters_kernels_are_told_the_same():
    with ThreadPoolExecutor() as threads:
        without, beside = threads.map(told, ("without-numba", "with-numba"))
    assert without["numba"] is False and beside["numba"] is True
    for name, expected in beside["told"].items():
        assert without["told"][name] == expected, name
    assert without["processor_seconds"] < SECONDS

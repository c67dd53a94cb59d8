"""Where numba is not installed the simulator says the same of every launch, if slowly."""

import json
import os
import subprocess
import sys

import chapter_launches

SECONDS = 60  # that all launches may take a core


def without_numba(*command):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LABKIT_DEVICE": "simulator"}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_chapters_launches_are_told_the_same():
    told = json.loads(without_numba(chapter_launches.__file__))
    kernels, launches = chapter_launches.kernels(), chapter_launches.launches()
    assert kernels.keys() == launches.keys() == told["launches"].keys()
    for name, without in told["launches"].items():
        assert without == chapter_launches.told(kernels[name], launches[name]), name
    assert told["processor_seconds"] < SECONDS

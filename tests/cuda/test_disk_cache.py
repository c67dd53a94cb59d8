"""A second process compiles nothing that a first one did."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("gpu")

PROGRAM = """
import sys
import numpy as np
from labkit import cuda

SIZE = {size}

@cuda.jit(device=True)
def scaled(x):
    return x * SIZE

@cuda.jit
def kernel(x):
    x[cuda.grid(1)] = scaled(x[cuda.grid(1)])

x = cuda.to_device(np.ones(64, np.float32))
kernel[2, 32](x)
assert (x.copy_to_host() == SIZE).all()
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def hits_and_misses(size, before=""):
        path = tmp_path / "program.py"
        path.write_text(before + PROGRAM.format(size=size))
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return tuple(map(int, done.stdout.split()))

    return hits_and_misses


def test_a_second_process_compiles_nothing(program):
    assert program(4) == (0, 1)
    assert program(4) == (1, 0)
    assert program(4, before="# moved by a line\n") == (1, 0)


def test_another_value_of_a_constant_is_another_kernel(program):
    assert program(4) == program(8) == (0, 1)
    assert program(4) == program(8) == (1, 0)


def test_what_an_interrupted_process_left_is_compiled_anew(program, tmp_path):
    program(4)
    (path,) = (tmp_path / "cache").rglob("*.kernel")
    path.write_bytes(path.read_bytes()[:1000])
    assert program(4) == (0, 1)
    assert program(4) == (1, 0)


def test_processes_at_the_same_time_do_not_disturb_each_other(program, tmp_path):
    program(4)
    for path in (tmp_path / "cache").rglob("*.kernel"):
        path.unlink()
    command = [sys.executable, str(tmp_path / "program.py")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert all(process.communicate()[0] and process.returncode == 0 for process in running)
    assert program(4) == (1, 0)

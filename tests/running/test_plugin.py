"""`pytest --labkit`: a package's own tests, with its kernels on the simulator."""

import re

from programs import labkit, pytest
from pytest import importorskip

TESTS = """\
import numpy as np
import pytest
from numba import cuda

@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    out[i] = x[i]

@pytest.mark.parametrize("n", [32, 33, 32, 34])
def test_copy(n):
    x = np.arange(n)
    out = np.zeros_like(x)
    copy[(n + 31) // 32, 32](x, out)
    assert (out == x).all()

def test_wrong_anyway():
    assert not cuda.is_available()
"""


def test_the_tests_whose_launches_have_errors_fail(tmp_path):
    (tmp_path / "test_copy.py").write_text(TESTS)
    result = pytest(tmp_path, "--labkit")
    assert result.returncode == 1
    assert "2 passed" in result.stdout and "3 failed" in result.stdout
    for n in (33, 34):  # the second one too, though the fault is the same
        assert f"has {n} elements" in " ".join(result.stdout.split())
    assert "test_copy.py:8: error (bounds) in kernel copy" in result.stdout
    assert "assert not True" in result.stdout  # the test's own failure
    assert "labkit: 2 errors and 0 pieces of advice in 4 launches of 1 kernel" in result.stdout


def test_a_refused_kernel_shows_the_lines_of_the_test_and_none_of_ours(tmp_path):
    (tmp_path / "test_refused.py").write_text("""\
import numpy as np
from numba import cuda

@cuda.jit
def k(x):
    x[0] = open("file")

def test_refused():
    k[1, 32](np.zeros(3))
""")
    result = pytest(tmp_path, "--labkit")
    assert result.returncode == 1
    assert 'test_refused.py", line 9, in test_refused' in result.stdout
    assert re.findall('File "(.*)"', result.stdout) == [str(tmp_path / "test_refused.py")]
    assert "FAILED test_refused.py::test_refused - Failed: labkit.simulator.errors" in result.stdout


def test_without_the_option_nothing_changes(tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "def test_plain():\n    import sys\n    assert 'labkit.cuda' not in sys.modules\n"
    )
    result = pytest(tmp_path)
    assert result.returncode == 0, result.stdout
    assert "kernels on labkit's simulator" not in result.stdout


def test_the_launches_of_all_workers_are_in_one_table(tmp_path):
    importorskip("xdist")
    (tmp_path / "test_copy.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from numba import cuda\nassert cuda.is_available()\n")
    alone = pytest(tmp_path, "--labkit")
    spread = pytest(tmp_path, "--labkit", "-p", "xdist", "-n", "2")
    assert spread.returncode == alone.returncode == 1
    for result in (alone, spread):
        assert "2 passed" in result.stdout and "3 failed" in result.stdout
        assert "labkit: 2 errors and 0 pieces of advice in 4 launches of 1 kernel" in result.stdout
    assert [table_row(alone)[:2], table_row(spread)[:2]] == [["copy", "4"]] * 2
    assert table_row(alone)[2:7] == table_row(spread)[2:7]


def table_row(result):
    return next(line.split() for line in result.stdout.splitlines() if line.startswith("copy "))


def test_pytest_as_the_program_of_labkit_run_prints_no_warning_of_ours(tmp_path):
    (tmp_path / "test_copy.py").write_text(TESTS)
    result = labkit(tmp_path, "run", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_copy.py")
    assert "4 passed, 1 failed" in result.stdout or "1 failed, 4 passed" in result.stdout
    assert "warning" not in result.stdout
    assert "labkit: 2 errors and 0 pieces of advice in 4 launches of 1 kernel" in result.stderr

"""`pytest --labkit`: a package's own tests, with its kernels on the simulator."""

import re

from programs import HEADER, labkit, pytest
from pytest import importorskip, mark

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


def test_modules_of_labkit_are_loaded_as_python_does():
    """pytest rewrites those of other packages with a plugin, which takes seconds."""
    from labkit.simulator import run

    assert type(run.__loader__).__name__ == "SourceFileLoader"


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
    assert "During handling of the above exception" not in result.stdout


def test_a_misspelt_name_that_a_test_imports_shows_no_lines_of_ours(tmp_path):
    (tmp_path / "test_name.py").write_text("def test_name():\n    from numba.cuda import gridd\n")
    result = pytest(tmp_path, "--labkit")
    assert "did you mean `cuda.grid`?" in result.stdout and "find_spec" not in result.stdout


def test_a_loop_without_end_is_told_with_the_option_of_pytest(tmp_path):
    (tmp_path / "test_endless.py").write_text(
        HEADER
        + """\
@cuda.jit
def endless(x):
    while x[0] == 0:
        x[1] += 1

def test_endless():
    endless[1, 1](np.zeros(2))
"""
    )
    assert "or pass `--labkit-time-limit 60`: launches" in pytest(tmp_path, "--labkit").stdout


def test_without_the_option_nothing_changes(tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "def test_plain():\n    import sys\n    assert 'labkit.cuda' not in sys.modules\n"
    )
    result = pytest(tmp_path)
    assert result.returncode == 0, result.stdout
    assert "kernels on labkit's simulator" not in result.stdout


ORDER_DECIDES = (
    HEADER
    + """
@cuda.jit
def last(order, n):
    order[cuda.atomic.add(n, 0, 1)] = cuda.blockIdx.x

@cuda.jit
def double(x):
    x[cuda.grid(1)] *= 2

def test_launches(capfd):
    order, x = np.zeros(4, np.int64), np.arange(100_000)
    last[4, 1](order, np.zeros(1, np.int64))
    double[1000, 100](x)
    assert sorted(order) == [0, 1, 2, 3] and (x == 2 * np.arange(100_000)).all()
    assert capfd.readouterr() == ("", "")
"""
)


def test_launches_run_in_several_orders_and_are_checked_up_to_a_limit(tmp_path):
    (tmp_path / "test_orders.py").write_text(ORDER_DECIDES)
    plain = pytest(tmp_path, "--labkit")
    assert "advice (order" not in plain.stdout and "ran in up to" not in plain.stdout and "checked" not in plain.stdout
    explored = pytest(tmp_path, "--labkit", "--labkit-explore")
    assert "test_orders.py:7: advice (order) in kernel last" in explored.stdout
    assert "each launch ran in up to 5 orders of its blocks and warps" in explored.stdout
    limited = pytest(tmp_path, "--labkit", "--labkit-time-limit", "0")
    assert "2 launches checked only in part, by the time limit" in limited.stdout
    assert plain.returncode == explored.returncode == limited.returncode == 0


@mark.parametrize(
    ("options", "sentence"),
    [
        (["--labkit-explore"], "--labkit-explore and --labkit-time-limit need --labkit"),
        (["--labkit-time-limit", "0"], "--labkit-explore and --labkit-time-limit need --labkit"),
        (["--labkit", "--labkit-time-limit", "-1"], "--labkit-time-limit: a time limit is at least 0 seconds, not -1"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, sentence):
    refused = pytest(tmp_path, *options)
    assert refused.returncode == 4 and sentence in refused.stderr


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

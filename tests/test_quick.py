"""`make quick` finds the tests that a change touches."""

import pytest
from changes import ROOT
from quick import ALWAYS, MOST_FILES, touched


def first(*changed):
    """The first test file that changed files touch, but for those that always run."""
    found = touched(set(changed))
    assert tuple(found[: len(ALWAYS)]) == ALWAYS
    return found[len(ALWAYS)]


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        ("labkit/views/sectors.py", "tests/views/test_sectors.py"),
        ("labkit/views/static/cache.js", "tests/views/test_cache.py"),
        ("labkit/simulator/checks/races.py", "tests/simulator/checks/test_races.py"),
        ("labkit/layout.py", "tests/test_layout.py"),
        ("tests/test_table.py", "tests/test_table.py"),
    ],
)
def test_the_tests_of_a_file_s_own_name_come_first(changed, nearest):
    assert first(changed) == nearest


def test_those_that_use_it_come_behind_also_where_it_is_loaded_when_it_is_asked_for():
    found = touched({"labkit/softmax/interface.py"})  # which has `softmax.softmax`
    assert found.index("tests/softmax/test_interface.py") < found.index("tests/calls/test_host_arrays.py")


def test_a_step_s_tests_are_those_of_its_ladder():
    step = next((ROOT / "labkit/attention/fp8").glob("s01_*.py"))
    assert first(step.relative_to(ROOT).as_posix()).startswith("tests/attention/test_fp8")


def test_a_chapter_runs_where_its_source_changed():
    (source,) = (ROOT / "notebooks/source").glob("*tiled-gemm.md")
    assert first(source.relative_to(ROOT).as_posix()).endswith("solutions/03-tiled-gemm.ipynb")


def test_what_all_stands_on_touches_no_more_than_some_minutes_of_tests():
    assert len(touched({"labkit/layout.py"})) == len(ALWAYS) + MOST_FILES


def test_what_tests_share_is_no_test_itself():
    found = touched({"tests/conftest.py", "tests/cells.py"})
    assert all(path.rpartition("/")[2].startswith("test_") for path in found)


def test_a_text_touches_none():
    assert tuple(touched({"README.md"})) == ALWAYS

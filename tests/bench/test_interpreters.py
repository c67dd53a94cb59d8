"""Other interpreters' reports are read as they are meant, and the record is of the kernels that there are."""

import pytest

from labkit import results
from labkit.bench import interpreters, sanitizer

RACE = """
RACE DETECTED
  write of ('hbm', 100, 0, 0)[(slice(1, 2, 1),)] from 103, 0,
  read of ('hbm', 100, 0, 0)[(slice(1, 2, 1),)] from 100, 0,
result: wrong
"""
KINDS = ("wrong", "right")
BOUNDS = """
Traceback (most recent call last):
IndexError: Out-of-bounds read of (0 0 hbm 100): reading [(slice(3, 4, 1),)] but buffer has shape (3,).
"""


def test_the_first_report_and_the_output_are_read():
    assert interpreters.verdict(RACE, 0) == ("RACE DETECTED", "wrong")
    assert interpreters.verdict(BOUNDS, 1) == ("Out-of-bounds read", "")
    assert interpreters.verdict("result: NaN\n", 0) == ("", "NaN")
    assert interpreters.verdict("", 0) == ("", "")


def test_a_run_that_failed_is_not_taken_for_a_clean_one():
    failed = "Traceback:\nModuleNotFoundError: No module named 'absl'\n"
    assert interpreters.verdict(failed, 1) == ("failed: ModuleNotFoundError: No module named 'absl'", "")


def test_the_bench_says_what_to_install(monkeypatch):
    monkeypatch.setattr(interpreters, "find_spec", lambda module: None if module == "triton_viz" else object())
    with pytest.raises(SystemExit, match=r"`pip install triton-viz==3.0` brings what is missing"):
        interpreters.main()


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "interpreters"])
def test_the_record_has_each_kernel_under_each_tool(machine):
    record = results.load("interpreters", machine)
    runs = {(row["bug"], row["kernel"], row["tool"]): row for row in record.rows}
    kernels = {(bug, kind, tool) for tool in interpreters.TOOLS for bug in interpreters.bugs_of(tool) for kind in KINDS}
    assert runs.keys() == kernels
    assert {bug for bug, _, _ in kernels} <= sanitizer.planted_bugs().keys()
    assert {"jax", "triton", "triton-viz", "date"} <= record.header.keys()
    for (_, kind, tool), row in runs.items():
        assert row["version"] == record.header[interpreters.TOOLS[tool][0]]
        assert not row["reported"].startswith("failed"), row
        if kind == "right":
            assert (row["reported"], row["result"]) == ("", "" if tool == "triton-viz" else "right"), row

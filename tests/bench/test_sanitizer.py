"""What compute-sanitizer writes is read as it is meant, and the simulator misses nothing that it found."""

import pytest

from labkit import results
from labkit.bench import sanitizer
from labkit.machine import device

MEMCHECK = """
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at planted::off_by_one::wrong[abi:v1](Array<float, 1, C, mutable, aligned>)+0x260 in off_by_one.py:21
=========     by thread (36,0,0) in block (1,0,0)
=========     Access at 0x7f0000190 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: ffi_call in libffi.so
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) on CUDA API call to cuCtxSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: ffi_call in libffi.so
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at _ZN7planted13scan_in_place5wrongB3v1+0x1c0 in scan_in_place.py:28
=========     and Read access at _ZN7planted13scan_in_place5wrongB3v1+0x200 in scan_in_place.py:27 [128 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_a_report_is_read_with_its_lines_and_belongs_to_its_kernel():
    assert sanitizer.verdict(MEMCHECK, "off_by_one", "wrong") == ("Invalid __global__ write of size 4 bytes", [21])
    assert sanitizer.verdict(RACECHECK, "scan_in_place", "wrong") == (
        "Error: Race reported between Write access",
        [27, 28],
    )
    for bug, kernel in (("off_by_one", "right"), ("scan_in_place", "wrong")):
        assert sanitizer.verdict(MEMCHECK, bug, kernel) == ("", [])


def test_a_run_that_failed_is_not_taken_for_a_clean_one():
    heading, _ = sanitizer.verdict("Traceback:\nImportError: no numba\n", "off_by_one", "wrong")
    assert heading == "failed: ImportError: no numba"
    assert sanitizer.verdict(sanitizer.NO_END, "off_by_one", "wrong") == (sanitizer.NO_END, [])


def test_a_bench_for_a_gpu_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(device, "detect", lambda: device.Device("simulator", "H100 SXM", "no NVIDIA GPU was found"))
    with pytest.raises(SystemExit):
        sanitizer.main()
    assert "no NVIDIA GPU was found; run `python -m labkit doctor`" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "sanitizer"])
def test_the_simulator_misses_nothing_that_the_sanitizer_found(machine):
    bugs = sanitizer.planted_bugs()
    rows = results.load("sanitizer", machine).rows
    assert {row["bug"] for row in rows} <= bugs.keys()
    for row in rows:
        now = sanitizer.simulate_kernel(row["bug"], row["kernel"])
        found = [row[tool] for tool in sanitizer.TOOLS if row[tool] not in ("", sanitizer.NOT_RUN, sanitizer.NO_END)]
        assert not any(verdict.startswith("failed") for verdict in found), row
        if found:
            assert now["simulator"], row
            assert set(row["sanitizer_lines"]) <= set(now["lines"]), row
    wrong = {row["bug"]: row for row in rows if row["kernel"] == "wrong"}
    assert wrong.keys() == bugs.keys()
    for name, row in wrong.items():
        tool = bugs[name].SANITIZER
        assert tool is None or row[tool], "the tool that should see it does"

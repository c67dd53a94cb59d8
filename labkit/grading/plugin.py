"""A pytest plugin that writes down how each notebook cell fared, one line of JSON a cell."""

import json
from pathlib import Path

import pytest

MOST_CHARACTERS = 2000


def pytest_addoption(parser):
    parser.addoption("--cell-results", type=Path, help="file that receives one JSON line a cell")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" or report.failed:
        line = {
            "cell": item.cell.id,
            "passed": report.outcome == "passed",
            "timed_out": item.parent.timed_out or not item.parent.kernel.is_alive(),
            "said": _said(item.test_outputs or ()),
        }
        with item.config.getoption("--cell-results").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return report


def _said(outputs):
    """The cell's last error or displayed text, cut where it is endless."""
    for output in reversed(outputs):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"[:MOST_CHARACTERS]
        if "data" in output:
            return output.data.get("text/plain", "")[:MOST_CHARACTERS]
    return ""

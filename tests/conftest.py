"""What every test may ask for: `@pytest.mark.needs("gpu")` and the like."""

import os
import shutil
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import pytest
from hypothesis import settings

settings.register_profile("labkit", deadline=None, derandomize=True)
settings.load_profile("labkit")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for item in items:
        for marker in item.iter_markers("needs"):
            for name in marker.args:
                if not _has(name) and not _required(name):
                    item.add_marker(pytest.mark.skip(reason=f"needs {name}, which is not here"))


def pytest_terminal_summary(terminalreporter):
    skipped = [
        report for report in terminalreporter.stats.get("skipped", []) if "needs chromium" in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_sep("!", "the browser was not tested: install chromium", red=True)


@cache
def _has(name):
    match name:
        case "gpu":
            from labkit import device

            return device.detect().kind == "gpu"
        case "numba-cuda":
            return find_spec("numba_cuda") is not None
        case "toolkit":
            return _installed("nvidia-cuda-nvcc") or _installed("nvidia-cuda-nvcc-cu12")
        case "nvdisasm":
            from labkit import sass

            return sass.tool("nvdisasm") is not None
        case "torch":
            return find_spec("torch") is not None
        case "chromium":
            return chromium() is not None
        case "bubblewrap":
            from labkit.grading import sandbox

            return not sandbox.missing()
    raise ValueError(f"needs({name!r}): ask for gpu, numba-cuda, toolkit, nvdisasm, torch, chromium or bubblewrap")


def _installed(name):
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _required(name):
    """CI on Linux must have a browser: there the test fails where elsewhere it would skip."""
    return name == "chromium" and "CI" in os.environ and sys.platform == "linux"


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")

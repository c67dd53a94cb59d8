"""What every test may ask for: `@pytest.mark.needs("gpu")` and the like."""

import os
import shutil
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import pytest
from hypothesis import settings
from sampling import WHOLE, beyond_sample

settings.register_profile("labkit", deadline=None, derandomize=True)
settings.load_profile("labkit")


BEGAN = time.monotonic()
NO_TIME = "no time is left"

# What runs kernels on a GPU where there is one, and in the simulator else; more than what says that it needs a GPU.
ON_GPU = (
    "attention/interface calls conv/interface elementwise gemm/interface layouts nn norm/interface softmax ladder"
).split()


def pytest_addoption(parser):
    parser.addoption("--on-gpu", action="store_true", help="run only what runs kernels on a GPU")
    parser.addoption("--begin-within", type=float, help="skip what has not begun after so many seconds")
    parser.addoption("--piece", default="1/1", help="which of so many pieces to run: 2/3")


def pytest_configure(config):
    if config.getoption("--nbval", False):
        import executed_chapters
        import notebook_checks

        config.pluginmanager.register(executed_chapters)
        config.pluginmanager.register(notebook_checks)


def pytest_ignore_collect(collection_path, config):
    if not config.getoption("--on-gpu") or collection_path.suffix != ".py" or _is_on_gpu(collection_path):
        return None
    return True if 'needs("gpu"' not in collection_path.read_text(encoding="utf-8") else None


def pytest_collection_modifyitems(config, items):
    if config.getoption("--on-gpu"):
        items[:] = [item for item in items if _is_on_gpu(item.path) or _needs_gpu(item)]
        number, count = map(int, config.getoption("--piece").split("/"))
        files = sorted({item.path for item in items})
        items[:] = [item for item in items if files.index(item.path) % count == number - 1]
    if not (WHOLE or config.getoption("--on-gpu")):
        sample(config, items)
    if config.getoption("--begin-within") is None:  # else they come in the order of the command line
        items.sort(key=lambda item: item.path.suffix == ".py" and item.get_closest_marker("long") is None)
    for item in items:
        for marker in item.iter_markers("needs"):
            for name in marker.args:
                if not _has(name) and not _required(name):
                    item.add_marker(pytest.mark.skip(reason=f"needs {name}, which is not here"))


def sample(config, items):
    """Leaves of a test with many cases as many as its marker `sample` says."""
    left_out = beyond_sample(items)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    seconds = item.config.getoption("--begin-within")
    if seconds is not None and time.monotonic() - BEGAN > seconds:
        pytest.skip(NO_TIME)


def pytest_terminal_summary(terminalreporter):
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    if any("needs chromium" in reason for reason in reasons):
        terminalreporter.write_sep("!", "the browser was not tested: install chromium", red=True)
    late = sum(NO_TIME in reason for reason in reasons)
    if late:
        terminalreporter.write_sep("!", f"{late} tests that lie further from the change are left to `make test`")


def _is_on_gpu(path):
    return any(f"/tests/{folder}" in path.as_posix() for folder in ON_GPU)


def _needs_gpu(item):
    return any("gpu" in marker.args for marker in item.iter_markers("needs"))


@cache
def _has(name):
    match name:
        case "gpu":
            from labkit.machine import device

            return device.detect().kind == "gpu"
        case "numba-cuda":
            return find_spec("numba_cuda") is not None
        case "toolkit":
            return _installed("nvidia-cuda-nvcc") or _installed("nvidia-cuda-nvcc-cu12")
        case "nvdisasm":
            from labkit.forecast import sass

            return sass.tool("nvdisasm") is not None
        case "torch":
            return find_spec("torch") is not None
        case "chromium":
            return chromium() is not None
        case "bubblewrap":
            from labkit.grading import sandbox

            return not sandbox.explain_missing()
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

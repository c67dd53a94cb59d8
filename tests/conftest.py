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


# What runs kernels on a GPU where there is one, and in the simulator else; more than what says that it needs a GPU.
ON_GPU = (
    "attention/interface calls conv/interface elementwise gemm/interface layouts nn norm/interface softmax ladder"
).split()


def pytest_addoption(parser):
    parser.addoption("--on-gpu", action="store_true", help="run only what runs kernels on a GPU")
    parser.addoption("--piece", default="1/1", help="which of so many pieces to run: 2/3")


def pytest_configure(config):
    if config.getoption("--nbval", False):
        import notebook_checks

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

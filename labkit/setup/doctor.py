"""Diagnosis of an installation: the state of each part, and a remedy for each fault."""

import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from rich.console import Console
from rich.text import Text

COLOURS = {"works": "green", "absent": "yellow", "fault": "red"}


@dataclass(frozen=True)
class Checkup:
    """Result of one check; an `absent` part is one that labkit does not need."""

    subject: str
    state: Literal["works", "absent", "fault"]
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Driver:
    """Output of nvidia-smi: the GPUs, the driver's version and the newest CUDA that it runs."""

    gpus: tuple[str, ...]
    version: str
    cuda: tuple[int, int]


def run(console: Console | None = None) -> bool:
    """Print each checkup as it ends; return whether nothing is at fault."""
    console, is_well = console or Console(soft_wrap=True), True
    with console.status("looking at this machine; the first simulation takes some seconds"):
        for row in checkups():
            is_well = is_well and row.state != "fault"
            console.print(Text.assemble((f"{row.state:7}", COLOURS[row.state]), f" {row.subject:10} {row.found}"))
            if row.remedy:
                console.print(f"{'':18} -> {row.remedy}", markup=False, highlight=False)
    return is_well


def checkups() -> Iterator[Checkup]:
    """Yield all checkups in the order of the table."""
    driver = find_driver()
    checks: list[tuple[str, Callable[[], Checkup]]] = [
        ("Python", _python),
        ("GPU", lambda: _gpu(driver)),
        ("driver", lambda: _driver(driver)),
        ("toolkit", lambda: _toolkit(driver)),
        ("torch", lambda: _torch(driver)),
        ("simulator", _simulator),
        ("runs on", _runs_on),
        ("kernels", _kernels),
        ("JupyterLab", _jupyterlab),
        ("widgets", _widgets),
    ]
    for subject, check in checks:
        yield _safely(subject, check)


def _safely(subject, check):
    """Run a check; if it breaks, return a fault, so that the table goes on."""
    try:
        return check()
    except Exception as error:
        return Checkup(subject, "fault", f"{type(error).__name__}: {error}", _reinstall())


def find_driver() -> Driver | None:
    """Return the NVIDIA driver; None if nvidia-smi is missing or finds no GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        rows = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().splitlines()
        banner = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    cuda = re.search(r"CUDA Version: (\d+)\.(\d+)", banner)
    if not rows or cuda is None:
        return None
    names, versions = zip(*(row.rsplit(", ", 1) for row in rows), strict=True)
    return Driver(names, versions[0], (int(cuda[1]), int(cuda[2])))


def _python():
    found = f"{platform.python_version()} on {platform.system()}, in {sys.prefix}"
    numpy = _version("numpy")
    if numpy and _pair(numpy) >= (2, 6):
        return Checkup("Python", "fault", f"{found}; NumPy {numpy}", 'pip install "numpy<2.6"')
    return Checkup("Python", "works", found)


def _gpu(driver):
    if driver is None:
        return Checkup("GPU", "absent", "no NVIDIA GPU", "nothing: every kernel runs in the simulator")
    from labkit.machine import device

    found = device.detect()
    if found.kind == "gpu":
        return Checkup("GPU", "works", str(found))
    return Checkup("GPU", "fault", f"{', '.join(driver.gpus)}, but {found.detail}", _install(driver))


def _driver(driver):
    if driver is None:
        if "microsoft" in platform.release().lower():
            remedy = "for a GPU inside WSL, install NVIDIA's driver in Windows (not in WSL)"
        elif sys.platform == "darwin":
            remedy = "nothing: macOS has no NVIDIA driver"
        else:
            remedy = "only if this machine has an NVIDIA GPU: install NVIDIA's driver"
        return Checkup("driver", "absent", "nvidia-smi finds none", remedy)
    found = f"{driver.version}, runs CUDA up to {driver.cuda[0]}.{driver.cuda[1]}"
    if driver.cuda < (12, 0):
        return Checkup("driver", "fault", found, "update NVIDIA's driver: CUDA 12 is the oldest that labkit runs")
    return Checkup("driver", "works", found)


def _toolkit(driver):
    needed = driver is not None
    nvrtc = _version("nvidia-cuda-nvrtc") or _version("nvidia-cuda-nvrtc-cu12")
    remedy = _install(driver) if needed else "nothing; the extra toolchain compiles CUDA C++ without a GPU"
    if _version("numba-cuda") is None:
        return Checkup("toolkit", "fault" if needed else "absent", "numba-cuda is not installed", remedy)
    if nvrtc is None:
        return Checkup("toolkit", "fault" if needed else "absent", "no CUDA wheels are installed", remedy)
    ptxas = _version("nvidia-cuda-nvcc") or _version("nvidia-cuda-nvcc-cu12")
    found = f"numba-cuda {_version('numba-cuda')}, NVRTC {nvrtc}" + (f", ptxas {ptxas}" if ptxas else "")
    line = _pair(nvrtc)
    bindings = _pair(_version("cuda-bindings") or nvrtc)
    if bindings[0] != line[0] or (ptxas and _pair(ptxas) != line):
        return Checkup("toolkit", "fault", f"{found}, cuda-bindings {bindings[0]}.{bindings[1]}", _reinstall())
    if needed and line > driver.cuda and line[0] > driver.cuda[0]:
        return Checkup("toolkit", "fault", f"{found}, newer than the driver", _install(driver))
    return Checkup("toolkit", "works", found)


def _torch(driver):
    torch = _version("torch")
    if torch is None:
        return Checkup("torch", "absent", "not installed", "nothing; labkit.nn and benches need the extra torch")
    if driver is None:
        return Checkup("torch", "works", torch)
    command = [sys.executable, "-c", "import torch; print(torch.cuda.is_available())"]
    if subprocess.run(command, capture_output=True, text=True).stdout.strip() == "True":
        return Checkup("torch", "works", f"{torch}, sees the GPU")
    return Checkup("torch", "fault", f"{torch}, does not see the GPU", "pip install --force-reinstall torch")


def _simulator():
    import numpy as np

    from labkit import cuda, simulate

    def double(x, out):
        i = cuda.grid(1)  # pyright: ignore[reportCallIssue] - numba declares a type and calls it a function
        if i < x.size:
            out[i] = x[i] + x[i]

    x = np.arange(64, dtype=np.float32)
    trace = simulate(double, 2, 32, x, np.zeros_like(x))
    if trace.errors or not np.array_equal(trace.outputs[1], 2 * x):
        return Checkup("simulator", "fault", "a small kernel gave a wrong result", _reinstall())
    return Checkup("simulator", "works", "ran a small kernel")


def _runs_on():
    from labkit.machine import device

    try:
        return Checkup("runs on", "works", str(device.current()))
    except device.DeviceError as error:
        return Checkup("runs on", "fault", str(error), "set LABKIT_DEVICE=simulator, or fix the rows above")


def _kernels():
    from labkit.cuda import kernel_folder

    if not (found := kernel_folder.kernels()):
        return Checkup("kernels", "absent", f"no compiled kernels in {kernel_folder.folder()}")
    size = f"{sum(path.stat().st_size for path in found) / 1e6:.0f} MB"
    remedy = "for later processes; `labkit doctor --clear-kernels` removes them"
    return Checkup("kernels", "works", f"{len(found)} compiled, {size} in {kernel_folder.folder()}", remedy)


def _jupyterlab():
    lab = _version("jupyterlab")
    if lab is None:
        return Checkup("JupyterLab", "absent", "not installed", "only for the book: pip install 'labkit-gpu[book]'")
    from jupyter_client.kernelspec import KernelSpecManager

    if "python3" not in KernelSpecManager().find_kernel_specs():
        return Checkup(
            "JupyterLab", "fault", f"{lab}, without a Python kernel", "pip install --force-reinstall ipykernel"
        )
    return Checkup("JupyterLab", "works", lab)


def _widgets():
    if _version("anywidget") is None:
        return Checkup("widgets", "absent", "not installed", "only for the book: pip install 'labkit-gpu[book]'")
    from pathlib import Path

    from jupyter_core.paths import jupyter_path

    names = {"anywidget": "anywidget", "ipywidgets": "@jupyter-widgets/jupyterlab-manager"}
    missing = [
        package
        for package, extension in names.items()
        if not any((Path(folder) / extension).is_dir() for folder in jupyter_path("labextensions"))
    ]
    if missing:
        remedy = f"pip install --force-reinstall jupyterlab_widgets {' '.join(missing)}"
        return Checkup("widgets", "fault", f"JupyterLab lacks the extension of {', '.join(missing)}", remedy)
    return Checkup("widgets", "works", f"ipywidgets {_version('ipywidgets')}, anywidget {_version('anywidget')}")


def _install(driver):
    extra = "cu13" if driver.cuda[0] >= 13 else "cu12"
    return f"in a checkout: python -m labkit.setup.environment {extra}; else: pip install 'labkit-gpu[{extra}]'"


def _reinstall():
    return "in a checkout: delete .venv and run `make lab` again; else: pip install --force-reinstall labkit-gpu"


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _pair(text):
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in text.split(".")[:2])

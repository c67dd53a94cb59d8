"""Parts of all benches: the header of a record, its file, and the table on the screen."""

import os
import platform
import shutil
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill

from rich import box
from rich.console import Console
from rich.table import Table

from labkit import __version__, results
from labkit.cuda.driver_calls import gpu_versions
from labkit.machine import device

WIDTH_OF_FILES = 120  # characters per line where the output is no terminal
MIN_TEXT_WIDTH = 8  # of a column of text, which is folded below its natural width
GAP_WIDTH = 2  # between columns
PACKAGES = """numpy numba numba-cuda numba-cuda-mlir torch cuda-bindings nvidia-cuda-nvrtc jupyterlab triton triton-viz
    jax""".split()


def header() -> dict:
    """Return the machine, the versions and the date of a measurement."""
    return {
        "date": date.today().isoformat(),
        **gpu(),
        "cpu": f"{cpu_name()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "labkit": __version__,
        **{name: found for name in PACKAGES if (found := installed_version(name))},
    }


def require_gpu(activity: str, program: str = ""):
    """Return the GPU, or end this process with a sentence if it or a program is missing; activity: "times kernels"."""
    gpu_device = device.detect()
    missing = gpu_device.detail if gpu_device.kind != "gpu" else f"{program} is not on the PATH"
    if gpu_device.kind != "gpu" or (program and shutil.which(program) is None):
        Console().print(f"This bench {activity} on a GPU, but {missing}; run `python -m labkit doctor`.")
        raise SystemExit(1)
    return gpu_device


def gpu() -> dict:
    """Return name, compute capability and driver of the GPU; nothing without one."""
    gpu_device = device.detect()
    if gpu_device.kind != "gpu":
        return {}
    return {"gpu": gpu_device.name, **gpu_versions(), **driver_version()}


def driver_version() -> dict:
    """Return the driver's own version; nothing if the system does not report it."""
    path = Path("/proc/driver/nvidia/version")
    if not path.is_file():
        return {}
    words = path.read_text().splitlines()[0].split()
    return {"driver": next((word for word in words if word[0].isdigit()), "")}


def cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def report_progress(text: str) -> None:
    """Print what a bench does next, on stderr: tables come minutes later, and a moving bar would take CPU time."""
    print(text, file=sys.stderr, flush=True)


def print_table(title: str, rows: list[dict], columns: dict[str, str]) -> None:
    """Print rows as a table; `columns` maps a field to its format, such as `.3f`."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES)
    least_width = 0
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for name, format_spec in columns.items():
        heading = name.replace("_", " ")
        cells = [format(row[name], format_spec) for row in rows if name in row]
        if format_spec:  # a figure is never cut: text folds, and the table may become wider than the screen
            width = max(map(len, [*heading.split(), *cells]))
            table.add_column(fill(heading, width), justify="right", no_wrap=True, min_width=width)
        else:
            width = min(MIN_TEXT_WIDTH, max(map(len, [heading, *cells])))
            table.add_column(heading, overflow="fold", min_width=width)
        least_width += width + GAP_WIDTH
    for row in rows:
        table.add_row(*(format(row[name], format_spec) if name in row else "" for name, format_spec in columns.items()))
    console.width = max(console.width, least_width)
    console.print(table)


def store_if_requested(operation: str, rows: list[dict], machine: str, record: bool, out: Path | None) -> None:
    """Store the rows in the package (`record`) or in a folder (`out`), if requested."""
    if record or out:
        path = results.save(results.Results(operation, header(), rows), machine, out or results.FOLDER)
        Console().print(f"stored in {path}")

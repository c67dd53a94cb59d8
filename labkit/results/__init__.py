"""Recorded measurements: one JSON file for each GPU or CPU and operation, with what it was measured on.

>>> from labkit import results
>>> results.recorded()
[('nvidia-h100-80gb-hbm3', 'gemm'), ...]
>>> gemm = results.load("gemm")
>>> gemm.gpu, gemm.rows[0]["tflops"]
>>> results.table("gemm", ["step", "problem", "tflops"], dtype="float32")

A file holds measurements, one row per line; a row's `step` names a kernel of the operation's ladder. Speeds and ratios
are computed when it is loaded (`computed.py`).
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log
from pathlib import Path
from typing import Any

from labkit.machine import device
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS
from labkit.results.computed import add_computed, drop_computed
from labkit.table import Table, json_lines

FOLDER = Path(__file__).parent
HEADINGS = {
    "tflops": "TFLOP/s", "gflops": "GFLOP/s", "gb_s": "GB/s", "dtype": "format", "min_bytes": "bytes moved",
    "working_set_kb": "working set, KB",
}  # fmt: skip
UNITS = ("ms", "us", "ns", "mb", "kb", "bytes")


@dataclass(frozen=True)
class Results:
    """The measurements of one run.

    Attributes
    ----------
    operation
        Name of the record.
    header
        GPU, versions and date.
    rows
        Measurements, with the fields that are computed from them.
    missing_gpu
        Name of this machine's GPU, if there is no such record of it and another GPU's was loaded; else "".
    """

    operation: str
    header: dict[str, Any]
    rows: list[dict[str, Any]]
    missing_gpu: str = field(default="", compare=False)

    @property
    def gpu(self) -> str:
        """Name of the GPU that was measured, or of the CPU where no GPU was."""
        return self.header.get("gpu") or self.header.get("cpu", "")

    @property
    def caption(self) -> str:
        """A sentence that names the device and the date, and says if this machine's GPU has no such record."""
        date = f" on {self.header['date']}" if "date" in self.header else ""
        fallback = f"; this machine's {self.missing_gpu} has no record of {self.operation}" if self.missing_gpu else ""
        return f"Measured on {self.gpu}{date}{fallback}." if self.gpu else ""

    def select(self, **fields) -> list[dict[str, Any]]:
        """Return the rows with these values: `select(step="tiled", dtype=["float16", "bfloat16"])`.

        A list, tuple, set or mapping stands for any of its members.
        """
        return [row for row in self.rows if all(_matches(row.get(name), wanted) for name, wanted in fields.items())]

    def table(self, columns: Sequence[str] | Mapping[str, str], /, folded: str = "", **fields) -> Table:
        """Return columns of the selected rows as a table.

        Parameters
        ----------
        columns
            Fields, or a mapping from a field to its heading.
        folded
            For a long table: the line that a reader clicks to see it.
        **fields
            Values that rows must have, as for `select`.

        Returns
        -------
        Table
            A line for each row, and one line for rows that agree in all columns; its caption names the device.
        """
        rows = self.select(**fields)
        known = dict.fromkeys(name for row in self.rows for name in row)
        if unknown := [name for name in columns if name not in known]:
            raise KeyError(f"{self.operation} has no field {unknown[0]!r}: choose from {', '.join(known)}")
        titles = columns.values() if isinstance(columns, Mapping) else map(heading, columns)
        cells = dict.fromkeys(tuple(_cell(row.get(name)) for name in columns) for row in rows)
        return Table(list(titles), cells, folded, self.caption)


def recorded(folder: Path = FOLDER) -> list[tuple[str, str]]:
    """List all records as pairs of machine and operation."""
    return sorted((path.parent.name, path.stem) for path in folder.glob("*/*.json"))


def load(operation: str, machine: str | None = None, folder: Path = FOLDER) -> Results:
    """Return the record of an operation on one machine.

    The default is this machine's GPU; without one, the GPU that the simulator models. If that GPU has no record, the
    nearest GPU with one stands in (see `nearest`), and if none has, a CPU. `caption` of the result names the device.

    Raises
    ------
    KeyError
        Nothing was recorded for the operation, or not on that machine; the message lists what there is.
    """
    machines = [machine_name for machine_name, name in recorded(folder) if name == operation]
    if not machines:
        raise KeyError(f"there are no results for {operation!r}: none were recorded")
    if machine is None:
        return _load_nearest(operation, machines, folder)
    if machine not in machines:
        raise KeyError(f"there are no results for {operation!r} on {machine!r}: name one of {', '.join(machines)}")
    return _read(folder / machine / f"{operation}.json")


def as_results(record: str | Results) -> Results:
    """Return a record itself, or `load` the one of this name."""
    return load(record) if isinstance(record, str) else record


def table(operation: str, columns: Sequence[str] | Mapping[str, str], /, machine: str | None = None, **fields) -> Table:
    """Return columns of the selected rows of a record as a table: see `load` and `Results.table`."""
    return load(operation, machine).table(columns, **fields)


def nearest(operation: str, gpu: str, capability: tuple[int, ...], folder: Path = FOLDER) -> dict[str, tuple[int, ...]]:
    """Return machines with results of an operation and their compute capabilities, the most similar to a GPU first.

    The GPU itself comes first, then those of its compute capability, then all others. Within each
    group, GPUs closest in multiprocessors and memory bandwidth come first, and GPUs not in `labkit.machine.gpus` last.

    Parameters
    ----------
    gpu
        Its name, as the driver has it.
    capability
        Its compute capability.
    """
    machines = [machine for machine, name in recorded(folder) if name == operation]
    headers = {machine: load(operation, machine, folder).header for machine in machines}
    capabilities = {
        machine: tuple(map(int, header["compute_capability"].split(".")))
        for machine, header in headers.items()
        if "compute_capability" in header
    }

    def difference(machine):
        is_other = capabilities[machine] != tuple(capability[:2])
        return machine != slug(gpu), is_other, _gpu_difference(gpu, headers[machine]["gpu"]), machine

    return {machine: capabilities[machine] for machine in sorted(capabilities, key=difference)}


def save(results: Results, machine: str, folder: Path = FOLDER) -> Path:
    """Write the results to `folder/machine/operation.json`, in place of older ones; returns the file."""
    path = folder / slug(machine) / f"{results.operation}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_json_text(results), encoding="utf-8", newline="\n")
    return path


def slug(name: str) -> str:
    """Return a name as a folder: `NVIDIA H100 80GB HBM3` becomes `nvidia-h100-80gb-hbm3`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def heading(name: str) -> str:
    """Return a field's name with its unit after a comma: `time_ms` becomes `time, ms`."""
    words = name.split("_")
    if name in HEADINGS:
        return HEADINGS[name]
    unit = words[-1].replace("us", "µs") if words[-1] in UNITS and words[1:] else ""
    return f"{' '.join(words[:-1])}, {unit}" if unit else " ".join(words)


def _read(path: Path, missing_gpu: str = "") -> Results:
    stored = json.loads(path.read_text(encoding="utf-8"))
    rows = [add_computed(row) for row in stored["rows"]]
    return Results(stored["operation"], stored["header"], rows, missing_gpu)


def _load_nearest(operation, machines, folder):
    """Return the record of this machine's GPU, else of the nearest GPU, else of a CPU."""
    this_device = device.detect()
    gpu, capability = this_device.name, _capability(this_device)
    ranked = list(nearest(operation, gpu, capability, folder))
    machine = (ranked or machines)[0]
    is_missing = this_device.kind == "gpu" and bool(ranked) and machine != slug(gpu)
    return _read(folder / machine / f"{operation}.json", gpu if is_missing else "")


def _capability(this_device: device.Device) -> tuple[int, ...]:
    if this_device.kind == "gpu":  # whose detail is "compute capability 9.0"
        return tuple(map(int, re.findall(r"\d+", this_device.detail)))
    return GPUS[this_device.name].compute_capability


def _json_text(results: Results) -> str:
    """Return the results as JSON: an indented header, and one row per line without computed fields."""
    head = {"operation": results.operation, "header": results.header, "rows": []}
    start = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("[]\n}")
    rows = json_lines(map(drop_computed, results.rows), row_indent="  ", end_indent=" ", ensure_ascii=False)
    return f"{start}{rows}\n}}\n"


def _matches(value, wanted) -> bool:
    is_choice = isinstance(wanted, Collection) and not isinstance(wanted, str)
    return value in wanted if is_choice else value == wanted


def _cell(value):
    """Return a cell of a table: numbers stay numbers, an absent value is empty."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else value if isinstance(value, int | float) else str(value)


def _gpu_difference(one: str, other: str) -> float:
    """Return the difference of two GPUs in multiprocessors and bandwidth; infinite if one is not in the table."""
    first, second = (GPUS.get(GPU_BY_DRIVER_NAME.get(name, name)) for name in (one, other))
    if first is None or second is None:
        return inf
    return abs(log(first.sms / second.sms)) + abs(log(first.dram_gb_s / second.dram_gb_s))

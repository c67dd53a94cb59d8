"""Recorded measurements: one JSON file for each GPU and operation, with what it was measured on.

>>> from labkit import results
>>> results.recorded()
[('nvidia-h100-80gb-hbm3', 'gemm'), ...]
>>> gemm = results.load("gemm")
>>> gemm.header["gpu"], gemm.rows[0]["tflops"]
"""

import json
import re
from dataclasses import asdict, dataclass
from math import inf, log
from pathlib import Path
from typing import Any

from labkit.machine.gpus import GPUS, NAMES_OF_DRIVER

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Results:
    """What one run measured: `header` says on what, each of `rows` is one measurement."""

    operation: str
    header: dict[str, Any]
    rows: list[dict[str, Any]]

    def select(self, **fields) -> list[dict[str, Any]]:
        """The rows with these values: `select(step="tiled", dtype="float32")`."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in fields.items())]


def recorded(folder: Path = FOLDER) -> list[tuple[str, str]]:
    """What has been recorded, as pairs of machine and operation."""
    return sorted((path.parent.name, path.stem) for path in folder.glob("*/*.json"))


def load(operation: str, machine: str | None = None, folder: Path = FOLDER) -> Results:
    """The results of an operation on one machine; the machine may be left out where there is only one.

    Raises
    ------
    KeyError
        Nothing was recorded for it, or on several machines; the message lists what there is.
    """
    machines = [where for where, what in recorded(folder) if what == operation]
    if machine is None and len(machines) == 1:
        machine = machines[0]
    if machine not in machines:
        wanted = f"for {operation!r} on {machine!r}" if machine else f"for {operation!r} on a machine to choose"
        there = f"name one of {', '.join(machines)}" if machines else "none were recorded"
        raise KeyError(f"there are no results {wanted}: {there}")
    return Results(**json.loads((folder / machine / f"{operation}.json").read_text(encoding="utf-8")))


def nearest(operation: str, gpu: str, capability: tuple[int, ...], folder: Path = FOLDER) -> dict[str, tuple[int, ...]]:
    """Machines whose GPU has results of an operation, with its compute capability, the most similar to a GPU first.

    The GPU itself comes first, then those of its compute capability, then all others. Among these the order is that of
    multiprocessors and memory bandwidth, where `labkit.machine.gpus` has the figures.

    Parameters
    ----------
    gpu
        Its name, as the driver has it.
    capability
        Its compute capability.
    """
    machines = [machine for machine, name in recorded(folder) if name == operation]
    headers = {machine: load(operation, machine, folder).header for machine in machines}
    known = {
        machine: tuple(map(int, header["compute_capability"].split(".")))
        for machine, header in headers.items()
        if "compute_capability" in header
    }

    def difference(machine):
        is_other = known[machine] != tuple(capability[:2])
        return machine != slug(gpu), is_other, _difference(gpu, headers[machine]["gpu"]), machine

    return {machine: known[machine] for machine in sorted(known, key=difference)}


def _difference(one: str, other: str) -> float:
    """How far apart multiprocessors and bandwidth of two GPUs are; infinite if one of them is not in the table."""
    first, second = (GPUS.get(NAMES_OF_DRIVER.get(name, name)) for name in (one, other))
    if first is None or second is None:
        return inf
    return abs(log(first.sms / second.sms)) + abs(log(first.dram_gb_s / second.dram_gb_s))


def save(results: Results, machine: str, folder: Path = FOLDER) -> Path:
    """Write the results to `folder/machine/operation.json`, in place of older ones; returns the file."""
    path = folder / slug(machine) / f"{results.operation}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def slug(name: str) -> str:
    """A name as a folder: `NVIDIA H100 80GB HBM3` becomes `nvidia-h100-80gb-hbm3`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")

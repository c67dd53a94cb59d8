"""The device that runs kernels: a GPU if there is one, else the simulator.

The environment variable `LABKIT_DEVICE` chooses: `gpu`, `simulator`, or nothing for the best device.
"""

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Literal

MODELLED_GPU = "H100 SXM"


class DeviceError(RuntimeError):
    """The requested device is not here."""


@dataclass(frozen=True)
class Device:
    """A device that runs kernels.

    `name` is the GPU's, or that of the GPU that the simulator models; `detail` is the GPU's compute capability, or the
    reason for the simulator.
    """

    kind: Literal["gpu", "simulator"]
    name: str
    detail: str

    def __repr__(self):
        place = "on the GPU" if self.kind == "gpu" else "in the simulator of the GPU"
        return f"Kernels run {place} {self.name} ({self.detail})."


def current() -> Device:
    """Return the device that runs kernels now.

    Raises
    ------
    DeviceError
        `LABKIT_DEVICE` asks for a GPU and there is none, or has an unknown value.
    """
    wanted = os.environ.get("LABKIT_DEVICE")
    if not wanted:  # quick, since every call gets here
        return detect()
    wanted = wanted.strip().lower()
    if wanted == "simulator":
        return Device("simulator", MODELLED_GPU, "LABKIT_DEVICE asks for it")
    if wanted not in ("", "gpu"):
        raise DeviceError(f"LABKIT_DEVICE is {wanted!r}; set it to 'gpu' or 'simulator', or leave it unset")
    device = detect()
    if wanted == "gpu" and device.kind != "gpu":
        raise DeviceError(
            f"LABKIT_DEVICE asks for a GPU, but {device.detail}; run `python -m labkit doctor` to see what to do, "
            "or set LABKIT_DEVICE=simulator"
        )
    return device


@cache
def detect() -> Device:
    """Return the best device of this machine, whatever `LABKIT_DEVICE` is. The result is cached."""
    if find_spec("numba_cuda") is None:
        return Device("simulator", MODELLED_GPU, "numba-cuda is not installed")
    from numba import cuda

    if cuda.cuda_error() is not None or len(cuda.gpus) == 0:
        return Device("simulator", MODELLED_GPU, "no NVIDIA GPU was found")
    if not cuda.is_available():
        return Device("simulator", MODELLED_GPU, "a GPU was found, but not the CUDA toolkit")
    gpu = cuda.gpus[0]
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
    major, minor = gpu.compute_capability
    return Device("gpu", name, f"compute capability {major}.{minor}")

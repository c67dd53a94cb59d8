"""Which hardware runs the kernels of the book: a GPU if there is one, else the simulator.

The environment variable `LABKIT_DEVICE` chooses: `gpu`, `simulator`, or nothing for the best there is.
"""

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Literal

MODELLED_GPU = "H100 SXM"


class DeviceError(RuntimeError):
    """The device that was asked for is not here."""


@dataclass(frozen=True)
class Device:
    """What runs the kernels.

    `name` is the GPU's, or that of the GPU which the simulator models; `detail` is the GPU's compute
    capability, or why the simulator runs.
    """

    kind: Literal["gpu", "simulator"]
    name: str
    detail: str

    def __repr__(self):
        place = "on the GPU" if self.kind == "gpu" else "in the simulator of the GPU"
        return f"Kernels run {place} {self.name} ({self.detail})."


def current() -> Device:
    """The device that runs kernels now.

    Raises
    ------
    DeviceError
        `LABKIT_DEVICE` asks for a GPU and there is none, or holds another word.
    """
    wanted = os.environ.get("LABKIT_DEVICE")
    if not wanted:  # each call asks
        return detect()
    wanted = wanted.strip().lower()
    if wanted == "simulator":
        return Device("simulator", MODELLED_GPU, "LABKIT_DEVICE asks for it")
    if wanted not in ("", "gpu"):
        raise DeviceError(f"LABKIT_DEVICE is {wanted!r}; set it to 'gpu' or 'simulator', or leave it unset")
    found = detect()
    if wanted == "gpu" and found.kind != "gpu":
        raise DeviceError(
            f"LABKIT_DEVICE asks for a GPU, but {found.detail}; run `python -m labkit doctor` to see what to do, "
            "or set LABKIT_DEVICE=simulator"
        )
    return found


@cache
def detect() -> Device:
    """The best device of this machine, whatever `LABKIT_DEVICE` says; looked for once."""
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

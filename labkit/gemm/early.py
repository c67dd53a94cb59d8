"""Kernels that begin while the previous launch still runs, on GPUs that can: compute capability 9.0.

Such a kernel is compiled with `early=True` and `await_previous` replaced by `previous_launch`. Its first blocks share
SMs with the last ones of the previous launch, and are then unevenly spread: a launch of one wave, of which an SM holds
several blocks, took up to 1.7 times as long on an H200. It only releases the next launch, by `release_next`.
"""

from labkit import cuda, ptx
from labkit.ptx.capabilities import CAPABILITIES, is_missing


@cuda.jit(device=True)
def await_previous():
    """Return at once: a launch that is not early begins after the previous one."""


@cuda.jit(device=True)
def previous_launch():
    """Let the next launch begin, and wait for the previous one, before any access to global memory."""
    ptx.launch_release()
    ptx.launch_wait()


@cuda.jit(device=True)
def release_next():
    """Let the next launch begin."""
    ptx.launch_release()


def is_early() -> bool:
    """Return whether launches on this GPU may begin early."""
    capability = tuple(cuda.get_current_device().compute_capability)
    return not is_missing(capability, CAPABILITIES["launch_wait"])

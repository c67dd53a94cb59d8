"""Bandwidth of this GPU's memory, for estimated times."""

from labkit.calls import tuning
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS

CYCLES_PER_US = 1700  # of a busy GPU of compute capability 9.0
SUSTAINED = 0.87  # share of the published bandwidth; measured
H100_BYTES_PER_CYCLE = 1700


def dram_bytes_per_cycle() -> float:
    """Return the bytes per cycle that all SMs together get from DRAM; an H100's if this GPU is not known."""
    name = GPU_BY_DRIVER_NAME.get(tuning.gpu_name())
    return H100_BYTES_PER_CYCLE if name is None else GPUS[name].dram_gb_s * SUSTAINED * 1e3 / CYCLES_PER_US

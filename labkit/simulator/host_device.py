"""The modelled GPU under the names of numba's device objects: devices, contexts and their attributes."""

from typing import NamedTuple

from labkit.machine.device import MODELLED_GPU
from labkit.machine.gpus import gpu as gpu_by_name
from labkit.simulator.errors import LaunchError


class MemoryInfo(NamedTuple):
    """Bytes of a GPU's memory, under numba's names."""

    free: int
    total: int


class Context:
    """The context of the modelled GPU, in which nothing is ever allocated."""

    def __init__(self, device: "SimulatedDevice"):
        self.device = device
        self.deallocations: list = []  # arrays that are to be freed

    def get_memory_info(self) -> MemoryInfo:
        """Return the memory of the modelled GPU; all of it is free."""
        total_bytes = int(self.device.model.dram_gb * 1e9)
        return MemoryInfo(total_bytes, total_bytes)

    def synchronize(self) -> None:
        """Do nothing: every launch returns when it has run."""

    reset = push = pop = synchronize


class SimulatedDevice:
    """The GPU that the simulator models, under the names of numba's device objects.

    Attributes that are the same for all GPUs of its compute capability are those of the CUDA C++ Programming Guide,
    "Compute Capabilities".
    """

    def __init__(self):
        self.model = model = gpu_by_name(MODELLED_GPU)
        self.id = 0
        self.name = f"simulator of the GPU {model.name}"
        self.uuid = "GPU-00000000-0000-0000-0000-000000000000"
        self.compute_capability = model.compute_capability
        self.COMPUTE_CAPABILITY_MAJOR, self.COMPUTE_CAPABILITY_MINOR = model.compute_capability
        self.WARP_SIZE = 32
        self.MULTIPROCESSOR_COUNT = model.sms
        self.CLOCK_RATE = int(model.clock_ghz * 1e6)  # kHz
        self.MAX_THREADS_PER_BLOCK = model.threads_per_block
        self.MAX_BLOCK_DIM_X = self.MAX_BLOCK_DIM_Y = 1024
        self.MAX_BLOCK_DIM_Z = 64
        self.MAX_GRID_DIM_X = 2**31 - 1
        self.MAX_GRID_DIM_Y = self.MAX_GRID_DIM_Z = 65_535
        self.MAX_THREADS_PER_MULTI_PROCESSOR = self.MAX_THREADS_PER_MULTIPROCESSOR = model.threads_per_sm
        self.MAX_BLOCKS_PER_MULTIPROCESSOR = model.blocks_per_sm
        self.MAX_REGISTERS_PER_BLOCK = self.MAX_REGISTERS_PER_MULTIPROCESSOR = model.registers_per_sm
        self.MAX_SHARED_MEMORY_PER_BLOCK = 48 * 1024
        self.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = model.shared_bytes_per_block
        self.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = model.shared_bytes_per_sm
        self.TOTAL_CONSTANT_MEMORY = 64 * 1024
        self.L2_CACHE_SIZE = model.l2_bytes
        self.COOPERATIVE_LAUNCH = self.UNIFIED_ADDRESSING = self.MANAGED_MEMORY = self.CONCURRENT_KERNELS = 1

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        """Do nothing: there is no other device to return to."""

    def __eq__(self, other):
        return isinstance(other, SimulatedDevice)

    def __hash__(self):
        return self.id

    def __repr__(self):
        return f"<{self.name}>"

    def reset(self) -> None:
        """Do nothing: there is no memory to free."""

    def get_primary_context(self) -> Context:
        return Context(self)


class DeviceList(list):
    """Devices, with the current one."""

    @property
    def lst(self) -> list[SimulatedDevice]:
        return self

    @property
    def current(self) -> SimulatedDevice:
        return SimulatedDevice()


gpus = DeviceList()  # of this machine: none, where labkit's own `cuda` says so


def list_devices() -> DeviceList:
    """Return the GPUs of this machine: none."""
    return gpus


def is_available() -> bool:
    """Return whether kernels run on a GPU: no, they run in the simulator."""
    return False


def cuda_error() -> None:
    return None


def detect() -> bool:
    """Print that kernels run in the simulator, where numba's `detect` lists GPUs."""
    print(f"Found 0 CUDA devices: kernels run in the simulator of the GPU {MODELLED_GPU}.")
    return False


def get_current_device() -> SimulatedDevice:
    return SimulatedDevice()


def current_context(devnum: int | None = None) -> Context:
    return select_device(devnum or 0).get_primary_context()


def select_device(device_id: int) -> SimulatedDevice:
    if device_id != 0:
        raise LaunchError(f"there is no device {device_id}: the simulator is the only one, select_device(0)")
    return SimulatedDevice()


__all__ = """gpus list_devices is_available cuda_error detect get_current_device current_context
select_device""".split()

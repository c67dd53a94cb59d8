"""Occupancy: the blocks and warps that an SM holds at a time, and the resource that limits them.

The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h` of the CUDA toolkit; CUDA C++ Best Practices
Guide, "Calculating Occupancy"): a block needs threads in whole warps, registers in units for each warp, taken from the
SM's four parts, and shared memory in units, some of which the system reserves.
"""

from dataclasses import dataclass
from math import inf

from labkit.machine.gpus import Gpu
from labkit.machine.gpus import gpu as find_gpu

WARP_LANES = 32
MAX_REGISTERS = 255  # of a thread: the limit of the instruction encoding

# Before a kernel is compiled, its registers are unknown (see `labkit.forecast.sass`). With 32 per thread, the 2,048
# threads of most GPUs' SMs just fill the 65,536 registers.
USUAL_REGISTERS = 32


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that one SM holds at a time; `limits` are the blocks that each resource allows."""

    blocks: int
    warps: int
    warps_per_block: int
    max_warps: int
    limits: dict[str, int]
    gpu: str

    @property
    def share(self) -> float:
        """Resident warps over the largest possible number."""
        return self.warps / self.max_warps

    @property
    def limiter(self) -> str:
        """Resource, or resources, that would have to be larger to hold another block."""
        return " and ".join(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self):
        if not self.blocks:
            return f"an SM of {self.gpu} cannot hold such a block: {self.limiter} would not suffice"
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        warps = f"{self.warps} of {self.max_warps} warps ({self.share:.0%})"
        return f"an SM of {self.gpu} holds {blocks} at a time, {warps}, limited by {self.limiter}"

    __repr__ = __str__


def occupancy(gpu: str | Gpu, threads: int, shared_bytes: int = 0, registers: int = USUAL_REGISTERS) -> Occupancy:
    """Return the blocks and warps of a kernel that one SM of a GPU holds at a time.

    Parameters
    ----------
    gpu : str or Gpu
        Such as "H100 SXM".
    threads : int
        Threads of a block.
    shared_bytes : int
        Shared memory of a block, static and dynamic.
    registers : int
        Registers of a thread.

    Raises
    ------
    ValueError
        The GPU accepts no such block: it has no thread, too many threads or registers, or negative sizes.
    """
    gpu = gpu if isinstance(gpu, Gpu) else find_gpu(gpu)
    if not 1 <= threads <= gpu.threads_per_block:
        raise ValueError(f"a block of {threads} threads does not exist: give it 1 to {gpu.threads_per_block}")
    if not 0 <= registers <= MAX_REGISTERS:
        raise ValueError(f"a thread with {registers} registers does not exist: it has 0 to {MAX_REGISTERS}")
    if shared_bytes < 0:
        raise ValueError(f"a block with {shared_bytes} bytes of shared memory does not exist: give it 0 or more")
    warps = -(-threads // WARP_LANES)
    limits = {
        "threads": gpu.warps_per_sm // warps,
        "blocks": gpu.blocks_per_sm,
        "registers": _blocks_by_registers(gpu, warps, registers),
        "shared memory": _blocks_by_shared_memory(gpu, shared_bytes),
    }
    blocks = int(min(limits.values()))
    limits = {name: int(limit) for name, limit in limits.items() if limit < inf}
    return Occupancy(blocks, blocks * warps, warps, gpu.warps_per_sm, limits, gpu.name)


def shared_allocation(gpu: Gpu, shared_bytes: int) -> int:
    """Return the bytes of an SM's shared memory that a block uses: with the system's share, in whole units."""
    needed = shared_bytes + gpu.shared_bytes_reserved
    return -(-needed // gpu.shared_bytes_unit) * gpu.shared_bytes_unit


def _blocks_by_shared_memory(gpu, shared_bytes):
    if shared_bytes > gpu.shared_bytes_per_block:
        return 0
    allocated = shared_allocation(gpu, shared_bytes)
    return gpu.shared_bytes_per_sm // allocated if allocated else inf


def _blocks_by_registers(gpu, warps, registers):
    """Return the blocks that fit by registers: each part of the SM has its own, and a warp runs in one part."""
    if registers == 0:
        return inf
    warp_registers = -(-registers * WARP_LANES // gpu.registers_unit) * gpu.registers_unit
    return gpu.registers_per_sm // gpu.sm_parts // warp_registers * gpu.sm_parts // warps

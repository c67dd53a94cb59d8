"""Predicted times of tiles of products of 16-bit numbers, in cycles of an SM of an H100, fitted to an H200."""

from math import ceil, inf

from labkit.conv.tensor.tilings import DRAM_BYTES, OUTSIDE_CYCLES, PIXEL_CYCLES, START_CYCLES

ROW_BYTES = 128  # of a tile, per step
SHARED_CYCLES = 0.5  # at least, to load a row of a tile from L2 that other SMs load as well
SHARING = 0.75  # n blocks that load the same rows take 1 / n**SHARING of the time
STEP_CYCLES = 20  # of waits
OUTPUTS_PER_CYCLE = 31  # of a tile, in a step of 64 terms
SHARED_BYTES_PER_CYCLE = 128  # of shared memory
STORED_PER_CYCLE = 8  # results of a block
OVERLAP = 0.9  # of computing and access to device memory
ALONE = 1.1  # time of a step of a team's tile, in which no other team's products fill the waits


def load_cycles(size: int, total: int, blocks: int) -> float:
    """Return the cycles to load `size` rows of a tile, of `total` in all tiles, that as many blocks load."""
    outside = -total % size / ceil(total / size)  # past the last, on average
    return size * max(SHARED_CYCLES, PIXEL_CYCLES / blocks**SHARING) + outside * OUTSIDE_CYCLES


def step_cycles(rows: int, cols: int, read_rows: int, loads: float) -> float:
    """Return the cycles of a step of 64 terms of a tile's sums.

    It takes as long as its products, or the copies from L2 (`loads`), or the traffic with shared memory: each row of
    the tile is written by a copy, and warpgroups read `read_rows`.
    """
    shared = (rows + cols + read_rows) * ROW_BYTES / SHARED_BYTES_PER_CYCLE
    return STEP_CYCLES + max(rows * cols / OUTPUTS_PER_CYCLE, loads, shared)


def kernel_cycles(waves: int, main_cycles: float, results: int, teams: int, bytes: int) -> float:
    """Return the cycles of `waves` tiles per block, one after the other, which access this many bytes of memory.

    A team of warpgroups stores the results of a tile while another multiplies; each needs a tile.
    """
    store_cycles = results / STORED_PER_CYCLE
    main_cycles *= ALONE if teams > 1 else 1
    if waves < teams:  # some teams have no tile
        return inf
    tile_cycles = max(main_cycles, (main_cycles + store_cycles) / teams)  # of all tiles but the last
    block_cycles = (waves - 1) * tile_cycles + main_cycles + store_cycles
    memory_cycles = bytes / DRAM_BYTES
    longer, shorter = max(block_cycles, memory_cycles), min(block_cycles, memory_cycles)
    return START_CYCLES + longer + (1 - OVERLAP) * shorter

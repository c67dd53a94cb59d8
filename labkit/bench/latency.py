"""`labkit bench latency`: the latency of a load on this GPU, from L1, L2 and DRAM.

One thread walks a random ring. Each load returns the next address, so that no two loads overlap. The
ring fits in the memory that is measured: in L1, in L2, or only in DRAM. Computing the next address
from the value is inside the time, a few cycles.
"""

import numpy as np

from labkit import cuda
from labkit.bench import _record
from labkit.calls import timing

LINE_BYTES = 128
RINGS_BYTES = {"L1": 32 << 10, "L2": 8 << 20, "DRAM": 512 << 20}
STEPS = 50_000
COLUMNS = {"level": "", "ring_bytes": ",d", "latency_ns": ".1f", "latency_cycles": ".0f"}


@cuda.jit
def pointer_chase(ring, steps, position):
    index = position[0]
    for _ in range(steps):
        index = ring[index]
    position[0] = index


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times loads")
    clock_ghz = cuda.get_current_device().CLOCK_RATE / 1e6
    rows = []
    for level, ring_bytes in RINGS_BYTES.items():
        latency_ns = measure(ring_bytes)
        row = {"operation": "latency", "level": level, "ring_bytes": ring_bytes}
        rows.append({**row, "latency_ns": latency_ns, "latency_cycles": latency_ns * clock_ghz})
    _record.print_table(f"One load on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("latency", rows, gpu.name, record, out)


def measure(ring_bytes: int) -> float:
    """Measure the time in ns from one load to the next, without the time of a launch."""
    ring = cuda.to_device(random_ring(ring_bytes // LINE_BYTES))
    position = cuda.to_device(np.zeros(1, np.uint32))

    def time_ms(steps):
        # each launch goes on where the last one stopped, and so meets no line that it left in L2
        return timing.gpu_time_ms([lambda stream: pointer_chase[1, 1, stream](ring, steps, position)])

    return (time_ms(2 * STEPS) - time_ms(STEPS)) / STEPS * 1e6


def random_ring(lines: int) -> np.ndarray:
    """Return a ring through the first word of every line, in random order: each word holds the next one's index."""
    words = LINE_BYTES // 4
    order = np.random.default_rng(0).permutation(lines)
    ring = np.zeros(lines * words, np.uint32)
    ring[order * words] = np.roll(order, -1) * words
    return ring

"""`labkit bench copies`: what a copy between host and GPU takes, from plain and from pinned host memory, by its size.

The time is the host's, from the request to the end of the copy, and so has the fixed cost that small copies consist of.
"""

import numpy as np

from labkit import cuda
from labkit.bench import _record
from labkit.calls import timing

SIZES = tuple(2**exponent for exponent in range(12, 31, 2))  # bytes
REPEATS = 15
MEMORIES = {"plain": np.empty, "pinned": cuda.pinned_array}
COLUMNS = {"step": "", "direction": "", "bytes": ",d", "time_ms": ".4f", "gb_s": ".2f"}


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times copies")
    rows = [row for memory in MEMORIES for size in SIZES for row in measure(memory, size)]
    _record.print_table(f"Copies between the host and {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("copies", rows, gpu.name, record, out)


def measure(memory: str, size: int) -> list[dict]:
    """Return a row for each direction, with the median time of a copy of `size` bytes."""
    host, there = MEMORIES[memory](size, np.uint8), cuda.device_array(size, np.uint8)
    host[:] = 1  # an untouched page of plain memory is not there yet
    stream = timing.timing_stream()

    def to_gpu():
        there.copy_to_device(host, stream=stream)
        stream.synchronize()

    def from_gpu():
        there.copy_to_host(host, stream=stream)
        stream.synchronize()

    rows = []
    for direction, copy in {"to the GPU": to_gpu, "from the GPU": from_gpu}.items():
        time_ms = timing.host_time_ms(copy, repeats=REPEATS)
        row = {"operation": "copies", "step": memory, "direction": direction, "bytes": size}
        rows.append({**row, "time_ms": time_ms, "gb_s": size / time_ms / 1e6})
    return rows

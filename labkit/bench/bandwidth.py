"""`labkit bench bandwidth`: how fast this GPU reads an array again and again, from L2 and from DRAM.

Every thread loads 16 bytes at a time. In each pass over the array a block reads another part of it, so that L1 rarely
holds what it asks for. The arrays are well below or far above the size of L2. In between, blocks find in L2 what others
have just read, and the rate is neither memory's.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.bench import _record
from labkit.calls import timing

MIB = 2**20
SIZES_BYTES = {"L2": (16 * MIB, 24 * MIB, 32 * MIB), "DRAM": (1024 * MIB, 2048 * MIB)}
READ_BYTES = 16 << 30  # in all passes together
THREADS, BLOCKS_PER_SM = 512, 4
VECTORS = 4  # that a thread loads at once
NEXT_PART = 37  # by so many blocks the parts move from pass to pass: no SM meets its last one
COLUMNS = {"level": "", "bytes": ",d", "time_ms": ".3f", "gb_s": ",.0f"}


@cuda.jit
def read_again(words, passes, sums):
    total = np.uint32(0)
    vectors = np.uint32(words.shape[0] // 4)
    per_round = np.uint32(cuda.gridDim.x * THREADS)
    for turn in range(passes):
        block = np.uint32(cuda.blockIdx.x + turn * NEXT_PART) % np.uint32(cuda.gridDim.x)
        for first in range(block * THREADS + cuda.threadIdx.x, vectors, per_round * VECTORS):
            for n in range(VECTORS):
                vector = np.uint32(first + n * per_round)
                if vector < vectors:
                    w0, w1, w2, w3 = ptx.load4(words, vector * 4)
                    total += w0 ^ w1 ^ w2 ^ w3
    sums[cuda.grid(1)] = total  # else the compiler removes the loads


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times loads")
    rows = [measure(level, size) for level, sizes in SIZES_BYTES.items() for size in sizes]
    _record.print_table(f"Reading an array again and again on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("bandwidth", rows, gpu.name, record, out)


def measure(level: str, size: int) -> dict:
    """Return the row of an array of `size` bytes."""
    words = cuda.to_device(np.ones(size // 4, np.uint32))
    blocks = BLOCKS_PER_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT
    sums = cuda.device_array(blocks * THREADS, np.uint32)
    passes = max(1, READ_BYTES // size)
    time_ms = timing.gpu_time_ms([lambda stream: read_again[blocks, THREADS, stream](words, passes, sums)])
    gb_s = passes * size / time_ms / 1e6
    return {"operation": "bandwidth", "level": level, "bytes": size, "time_ms": time_ms, "gb_s": gb_s}

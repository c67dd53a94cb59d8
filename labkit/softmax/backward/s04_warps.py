"""A warp takes a row: its sum needs no barrier, and no warp waits for another.

Costs, in passes over memory, each of them a matrix read or written once:

    3       warps: dy and y read, dx written
    3       passes in all

Limited by memory. A lane keeps up to 16 values of both rows, so that these are at most 512 wide. `s05_clusters` is for
wide ones.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, store
from labkit.softmax.backward import EXAMPLES, WIDTHS, benched

EXAMPLES = tuple(sizes for sizes in EXAMPLES if sizes[1] <= 512)  # those that it takes
BENCHED = benched(WIDTHS[0])
COMPARED = BENCHED[0]
WIDTH = 4  # values of a piece
PIECES = 2  # of a lane and a row
ROWS = 2  # of a warp
SLOTS = ROWS * PIECES
MOST = 16  # values of a lane, of each matrix
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block
IN_SM = 4  # blocks of an SM: each thread has 64 registers


@cuda.jit
def warps(dy, y, dx, columns):
    gradient = cuda.local.array((SLOTS, WIDTH), np.float32)
    value = cuda.local.array((SLOTS, WIDTH), np.float32)
    start = np.uint32((cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP) * ROWS)
    lane, last = np.uint32(cuda.threadIdx.x % WARP), np.uint32(y.shape[0] - 1)
    if start <= last:
        for r in range(ROWS):  # the last row twice, where their number is odd
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    load(dy, min(np.uint32(start + r), last), i, gradient[r * PIECES + k])
                    load(y, min(np.uint32(start + r), last), i, value[r * PIECES + k])
        for r in range(ROWS):
            total = np.float32(0)
            for k in range(PIECES):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        total += value[r * PIECES + k, e] * gradient[r * PIECES + k, e]
            total = warp_all_sum(total)
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    for e in range(WIDTH):
                        value[r * PIECES + k, e] *= gradient[r * PIECES + k, e] - total
                    store(dx, min(np.uint32(start + r), last), i, value[r * PIECES + k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Pieces of a lane and a row, and rows that a warp takes at once."""
    pieces = -(-columns // (width * WARP))
    if columns > WARP * MOST:
        raise TooLarge(f"a row has {columns} values, and a warp keeps {WARP * MOST} in registers")
    return pieces, 2 if 2 * pieces * width <= MOST else 1


def launches(dy, y, dx, problem, format=FP32):
    """dx of each row."""
    problem.check(dy, y, dx, dtype=format.dtype)
    at_once = vector_width(dy, y, dx)
    pieces, rows = geometry(problem.columns, at_once)
    kernel = specialise_vectors(warps, format.dtype, at_once, (WARP * WARPS, IN_SM), PIECES=pieces, ROWS=rows)
    arrays = kernel_view(dy, at_once), kernel_view(y, at_once), kernel_view(dx, at_once), np.uint32(problem.columns)
    return [Launch(kernel, -(-problem.rows // (WARPS * rows)), WARP * WARPS, arrays)]

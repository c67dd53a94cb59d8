"""A warp takes a row: its maximum and its sum need no barrier, and no warp waits for another.

A row of 256 values is two pieces of 16 bytes for each lane of a warp. It takes two such rows at once, so that it has
more loads under way. With all of a row in one warp nothing is left to rescale.

Costs, in passes over memory, each of them the matrix read or written once:

    2       warps: read, written
    2       passes in all

Limited by memory. A lane keeps up to 32 values, so that rows are at most 1024 wide. `s05_clusters` is for wide ones.

Parts: `warp_all_sum` of `labkit.parts.sums`; `load`, `store` of `labkit.parts.vectors`.
"""

import numpy as np

from labkit import cuda
from labkit.formats import FP32
from labkit.ladder import Launch, TooLarge
from labkit.parts.sums import warp_all_sum
from labkit.parts.vector_widths import kernel_view, specialise_vectors, vector_width
from labkit.parts.vectors import load, store
from labkit.softmax.forward import WIDTHS, benched
from labkit.softmax.online import LEAST, exp, warp_max

BENCHED = benched(*WIDTHS[:2])  # those that it takes
COMPARED = BENCHED[1]
WIDTH = 4  # values of a piece
PIECES = 4  # of a lane and a row
ROWS = 2  # of a warp
SLOTS = ROWS * PIECES
MOST = 32  # values of a lane
WARP, WARPS = 32, 8  # threads of a warp, and warps of a block


@cuda.jit
def warps(x, y, columns):
    own = cuda.local.array((SLOTS, WIDTH), np.float32)
    start = np.uint32((cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP) * ROWS)
    lane, last = np.uint32(cuda.threadIdx.x % WARP), np.uint32(x.shape[0] - 1)
    if start <= last:
        for r in range(ROWS):  # the last row twice, where their number is odd
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    load(x, min(np.uint32(start + r), last), i, own[r * PIECES + k])
        for r in range(ROWS):
            maximum, total = LEAST, np.float32(0)
            for k in range(PIECES):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        maximum = max(maximum, own[r * PIECES + k, e])
            maximum = warp_max(maximum)
            for k in range(PIECES):
                if np.uint32(WIDTH * (k * WARP + lane)) < columns:
                    for e in range(WIDTH):
                        own[r * PIECES + k, e] = exp(own[r * PIECES + k, e] - maximum)
                        total += own[r * PIECES + k, e]
            scale = np.float32(1) / warp_all_sum(total)
            for k in range(PIECES):
                i = np.uint32(WIDTH * (k * WARP + lane))
                if i < columns:
                    for e in range(WIDTH):
                        own[r * PIECES + k, e] *= scale
                    store(y, min(np.uint32(start + r), last), i, own[r * PIECES + k])


def geometry(columns: int, width: int) -> tuple[int, int]:
    """Pieces of a lane and a row, and rows that a warp takes at once."""
    pieces = -(-columns // (width * WARP))
    if columns > WARP * MOST:
        raise TooLarge(f"a row has {columns} values, and a warp keeps {WARP * MOST} in registers")
    return pieces, 2 if 2 * pieces * width <= MOST else 1


def launches(x, y, problem, format=FP32):
    """y of each row."""
    problem.check(x, y, dtype=format.dtype)
    at_once = vector_width(x, y)
    pieces, rows = geometry(problem.columns, at_once)
    kernel = specialise_vectors(warps, format.dtype, at_once, WARP * WARPS, PIECES=pieces, ROWS=rows)
    arrays = kernel_view(x, at_once), kernel_view(y, at_once), np.uint32(problem.columns)
    return [Launch(kernel, -(-problem.rows // (WARPS * rows)), WARP * WARPS, arrays)]

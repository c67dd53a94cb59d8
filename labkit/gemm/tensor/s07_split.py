"""A product with few tiles is also split along k: several blocks share a tile of C, and the last one adds the parts.

A layer's weights times a few rows of activations: all of B must be loaded, and C has so few tiles that most SMs would
be idle. So SPLITS blocks take a part of k each. A block writes its sums to a workspace and increments a counter; the
last one adds all parts in a fixed order, so that every run gives the same result. Where A has fewer rows than a
warpgroup multiplies, operands are swapped: B's many rows take the side of `wgmma` that has at least 64, A's the side
that may be 8, and C is stored transposed.

Costs, for 16-bit formats and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)              copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)              `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * BK * 4         bytes of shared memory per block
    2 * 4 * SPLITS                      bytes of workspace per output, if SPLITS is more than 1

Limited by memory bandwidth, as long as A has fewer than about 300 rows on an H100.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import as_bits, as_words
from labkit.gemm.tensor.operands import check_operands
from labkit.ladder import Launch

FORMAT = RESULT = ptx.BF16  # of A and B, and of C; `launches` replaces them
BM, BN = 128, 128  # a block's part of the product: rows and columns of the instruction
BK = 32  # words of k that a stage holds, 128 bytes
STEP = 8  # words of k that an instruction takes
STAGES = 6
SPLITS = 2
SWAPPED = False  # whether B's rows, not A's, are the rows of the instruction
WM = 64  # rows of a warpgroup's part
NUM_ACC = WM * BN // 128  # of a thread
WARPGROUPS = BM // WM  # that multiply
WARPS = 4 * (1 + WARPGROUPS)
MMA_THREADS = 128 * WARPGROUPS
RIGHT_BYTE = STAGES * BM * BK * 4  # where the tiles of the right operand begin
SHARED_BYTES = STAGES * (BM + BN) * BK * 4
STAGE_BYTES = (BM + BN) * BK * 4


@cuda.jit(launch_bounds=(32 * WARPS, 1))
def split(left_map, right_map, C, rows, cols, K, parts, arrived):
    left_tiles = ptx.shared_array(0, (STAGES, BM, BK), np.uint32)
    right_tiles = ptx.shared_array(RIGHT_BYTE, (STAGES, BN, BK), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    last = cuda.shared.array(1, np.int32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    # -- initialise barriers --
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, WARPGROUPS)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    top, left, part = cuda.blockIdx.x * BM, cuda.blockIdx.y * BN, cuda.blockIdx.z
    tiles = -(-K // BK)
    begin, end = tiles * part // SPLITS, tiles * (part + 1) // SPLITS

    # -- producer: load A and B tiles --
    if warp < 4:
        if warp == 0 and lane == 0:
            for tile in range(begin, end):
                stage, phase = (tile - begin) % STAGES, (tile - begin) // STAGES
                ptx.mbarrier_wait(empty, stage, (phase + 1) % 2)  # passes at once in the first phase
                ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                ptx.tma_load(left_tiles, (stage, 0, 0), left_map, (top, tile * BK), full, stage)
                ptx.tma_load(right_tiles, (stage, 0, 0), right_map, (left, tile * BK), full, stage)
    # -- consumers: acc += A @ B.T --
    else:
        acc = cuda.local.array(NUM_ACC, np.float32)
        group = warp // 4 - 1
        leads = warp % 4 == 0 and lane == 0
        for n in range(NUM_ACC):
            acc[n] = 0
        for tile in range(begin, end):
            stage, phase = (tile - begin) % STAGES, (tile - begin) // STAGES
            ptx.mbarrier_wait(full, stage, phase % 2)
            ptx.wgmma_fence()
            for step in range(0, BK, STEP):
                ptx.wgmma(acc, 0, BN, left_tiles, (stage, group * WM, step), right_tiles, (stage, 0, step), FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(0)
            if leads:
                ptx.mbarrier_arrive(empty, stage)

        # -- add the parts of k --
        if SPLITS > 1:
            thread = (warp - 4) * 32 + lane
            output_tile = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
            for n in range(NUM_ACC):
                parts[output_tile, part, n, thread] = acc[n]
            cuda.threadfence()
            ptx.barrier_sync(1, MMA_THREADS)
            if thread == 0:
                last[0] = cuda.atomic.inc(arrived, output_tile, SPLITS - 1) == SPLITS - 1  # resets the counter to 0
            ptx.barrier_sync(1, MMA_THREADS)
            if last[0] == 0:
                return
            cuda.threadfence()
            for n in range(NUM_ACC):
                acc[n] = 0
            for other in range(SPLITS):
                for n in range(NUM_ACC):
                    acc[n] += parts[output_tile, other, n, thread]

        # -- store C --
        y, x = top + group * WM + warp % 4 * 16 + lane // 4, left + lane % 4 * 2
        for n in range(0, NUM_ACC, 4):
            for half in range(2):
                row, col = y + half * 8, x + n * 2
                pair = ptx.pack2(acc[n + half * 2], acc[n + half * 2 + 1], RESULT)
                if SWAPPED:
                    if row < rows and col < cols:
                        C[col, row] = pair & 0xFFFF
                    if row < rows and col + 1 < cols:
                        C[col + 1, row] = pair >> 16
                elif row < rows and col < cols:
                    C[row, col // 2] = pair


def geometry(M: int, N: int):
    """Grid and block for an M x N result."""
    return (-(-M // BM), -(-N // BN), SPLITS), (32, WARPS)


def launches(A, B, C, format, workspace):
    """C = A @ B.T."""
    return launches_for_tiling(A, B, C, format, workspace)


def launches_for_tiling(A, B, C, format, workspace, *, bm=BM, bn=BN, stages=STAGES, splits=SPLITS, swapped=SWAPPED):
    """Return the launch of C = A @ B.T with tiles of bm x bn."""
    check_operands(A, B, C, format)
    left, right = (as_words(B), as_words(A)) if swapped else (as_words(A), as_words(B))
    rows, cols = left.shape[0], right.shape[0]
    grid = -(-rows // bm), -(-cols // bn), splits
    tiles = grid[0] * grid[1] if splits > 1 else 1
    parts = workspace.array("parts", (tiles, splits, WM * bn // 128, 2 * bm), np.float32)
    arguments = (
        *(ptx.TensorMap(left, (bm, BK)), ptx.TensorMap(right, (bn, BK))),
        *(as_bits(C) if swapped else as_words(C), rows, cols, left.shape[1], parts, workspace.counters(tiles)),
    )
    kernel = _specialise(format, BM=bm, BN=bn, STAGES=stages, SPLITS=splits, SWAPPED=swapped)
    return [Launch(kernel, grid, (32, 4 * (1 + bm // WM)), arguments, stages * (bm + bn) * BK * 4)]


@cache
def _specialise(format, **constants):
    """Return the kernel for a format and other constants."""
    return specialise(split, FORMAT=format.number, RESULT=format.result.number, **constants)

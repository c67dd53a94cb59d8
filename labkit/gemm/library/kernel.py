"""Any product: alpha, beta, batches; tiles as wide as fills the SMs in whole waves; launches that overlap.

The kernel behind `gemm.multiply`. A `Tiling` cuts the product up. The columns of a tile may be any multiple of 8: 256
by 11008 outputs make 86 tiles of 128 x 256, and 46 of an H100's 132 SMs would rest, or 132 of 128 x 168, and none does.
A box of C has 64 columns of 16 bits all the same; the last of a tile may begin within the one before, and stores some
columns twice.

What the steps of the tensor ladder do is here as well: a ring of stages, blocks that take several tiles, parts along k,
and operands that change places. An operand of 16 bits may lie MN-major, its memory running across k, as B's does where
A @ B is asked for: its tile comes in boxes of 64 columns. Sums are multiplied by alpha, and beta times what C held is
added, before they are rounded.

The kernel begins early: while the launch before it still works, its blocks set up their barriers, and have the tensor
maps fetched; then they wait for it to end. That matters where a product takes 10 microseconds.

Costs, for 16-bit formats, operands that run along k, and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)                                copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)                                `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * 128 + 2 * WARPGROUPS * WM * 128  bytes of shared memory per block

and where SPLITS is more than 1, 2 * 4 * SPLITS bytes of workspace per output.

Limited by memory for few rows, by how soon the first tile is there for small squares, and by power for large ones.
Tried as well, at 1024 on an H100: two blocks of a cluster that share a tile by multicast, 0.83 of the speed, since a
cluster begins later, and an SM receives as many bytes as before.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.library.constants import (
    BM,
    BN,
    LEFT_SHAPE,
    RIGHT_BYTE,
    RIGHT_SHAPE,
    SPLITS,
    STAGES,
    SUMS,
    WARPGROUPS,
    WARPS,
    WM,
)
from labkit.gemm.library.epilogue import epilogue
from labkit.gemm.library.main_loop import accumulate, fetch
from labkit.gemm.library.scheduler import steps_of, work
from labkit.gemm.library.split import add_parts
from labkit.parts.ring import init_ring


@cuda.jit(launch_bounds=(32 * WARPS, 1), early=True)
def general(left, right, tiles, output, parts):
    left_tiles = ptx.shared_array(0, LEFT_SHAPE, np.uint32)
    right_tiles = ptx.shared_array(RIGHT_BYTE, RIGHT_SHAPE, np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    if warp == 0 and lane == 0:
        init_ring(full, empty, STAGES, WARPGROUPS)
    elif warp == 1 and lane == 0:
        ptx.tma_prefetch(left.map)
        ptx.tma_prefetch(right.map)
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()  # from here on global memory is touched
    stage, parity = 0, 0

    if warp < 4:
        ptx.setmaxnreg_dec(56)
        if warp == 0 and lane == 0:
            for item in range(cuda.blockIdx.x, tiles.items, cuda.gridDim.x):
                part, batch, row, col = work(item, tiles)
                begin, end = steps_of(part, tiles)
                top, first = row * BM, col * BN
                stage, parity = fetch(
                    left_tiles, right_tiles, full, empty, stage, parity, left, right, batch, top, first, begin, end
                )
    else:
        ptx.setmaxnreg_inc(224)
        sums = cuda.local.array(SUMS, np.float32)
        group, thread = warp // 4 - 1, (warp - 4) * 32 + lane
        leads = warp % 4 == 0 and lane == 0
        box = 0  # of two, which take turns
        for item in range(cuda.blockIdx.x, tiles.items, cuda.gridDim.x):
            part, batch, row, col = work(item, tiles)
            begin, end = steps_of(part, tiles)
            place = batch, row * BM + group * WM, col * BN
            stage, parity = accumulate(
                sums, left_tiles, right_tiles, full, empty, stage, parity, group * WM, begin, end, leads
            )
            if SPLITS > 1 and not add_parts(sums, parts, item // SPLITS, part, thread):
                continue
            box = epilogue(sums, place, output, box)
        if leads:
            ptx.tma_store_wait(0)

"""Any product: alpha, beta, batches; tiles as wide as fills the SMs in whole waves; launches that overlap.

The kernel behind `gemm.multiply`. A `Tiling` divides the product into tiles of BM rows and BN columns, whose steps
along k may be split into SPLITS parts. Work items are all parts of all tiles. BN may be any multiple of 8: 256 x 11008
outputs are 86 tiles of 128 x 256, which leave 46 of an H100's 132 SMs idle, or 132 tiles of 128 x 168, which leave
none. A box of C always has 64 columns of 16 bits. The last box of a tile may overlap the one before and store some
columns twice. One warpgroup loads, and WARPGROUPS others multiply.

The kernel combines the ideas of the tensor ladder: a ring of stages, persistent blocks, split-k and swapped operands.
A 16-bit operand may be MN-major, contiguous across k, as B is for A @ B: its tile comes in boxes of 64 columns. Sums
are multiplied by alpha, and beta times the old C is added, before they are rounded.

The kernel begins early: while the previous launch still runs, its blocks initialise barriers and prefetch the tensor
maps; then they wait for that launch to end. This matters where a product takes 10 us.

Costs, for 16-bit formats, operands that run along k, and sides that are multiples of the tile:

    K / 64 * 2 / (BM * BN)                                copies per output, of a whole tile
    K / 16 * 2 / (BM * BN)                                `wgmma` of a warpgroup per output
    STAGES * (BM + BN) * 128 + 2 * WARPGROUPS * WM * 128  bytes of shared memory per block

and where SPLITS is more than 1, 2 * 4 * SPLITS bytes of workspace per output.

Limited by memory for few rows, by the latency of the first tile for small squares, and by power for large ones.
Also tried, at 1024 on an H100: two blocks of a cluster that share a tile by multicast, 0.83 of the speed, since a
cluster begins later and an SM receives as many bytes as before.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.gemm.library.constants import (
    BM,
    BN,
    LEFT_SHAPE,
    NUM_ACC,
    RIGHT_BYTE,
    RIGHT_SHAPE,
    SPLITS,
    STAGES,
    WARPGROUPS,
    WARPS,
    WM,
)
from labkit.gemm.library.epilogue import epilogue
from labkit.gemm.library.main_loop import accumulate, load_stages
from labkit.gemm.library.scheduler import decode_item, k_range
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
    ptx.launch_wait()  # before any access to global memory
    stage, parity = 0, 0

    if warp < 4:
        ptx.setmaxnreg_dec(56)
        if warp == 0 and lane == 0:
            for item in range(cuda.blockIdx.x, tiles.items, cuda.gridDim.x):
                part, batch, row, col = decode_item(item, tiles)
                begin, end = k_range(part, tiles)  # in steps of 128 bytes along k
                m0, n0 = row * BM, col * BN
                stage, parity = load_stages(
                    left_tiles, right_tiles, full, empty, stage, parity, left, right, batch, m0, n0, begin, end
                )
    else:
        ptx.setmaxnreg_inc(224)
        acc = cuda.local.array(NUM_ACC, np.float32)
        group, thread = warp // 4 - 1, (warp - 4) * 32 + lane
        leads = warp % 4 == 0 and lane == 0
        box = 0  # of two, used alternately
        for item in range(cuda.blockIdx.x, tiles.items, cuda.gridDim.x):
            part, batch, row, col = decode_item(item, tiles)
            begin, end = k_range(part, tiles)
            origin = batch, row * BM + group * WM, col * BN
            stage, parity = accumulate(
                acc, left_tiles, right_tiles, full, empty, stage, parity, group * WM, begin, end, leads
            )
            if SPLITS > 1 and not add_parts(acc, parts, item // SPLITS, part, thread):
                continue  # the tile's last block adds and stores
            box = epilogue(acc, origin, output, box)  # output: C, alpha, beta and the array that beta multiplies
        if leads:
            ptx.tma_store_wait(0)

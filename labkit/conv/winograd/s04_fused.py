"""All in one kernel: pixels are transformed on their way to shared memory, products never leave the SM.

A block has 64 filters and 32 tiles of F(2x2, 3x3), and loops over eight channels at a time. Each of its 256 threads
loads the 4 x 4 pixels of a tile in one channel, transforms them in registers and stores them to shared memory.
Meanwhile `cp.async` copies transformed filters there. A warp multiplies two of the 16 points of a tile, with 8 x 8
accumulators per thread for each: every value loaded from shared memory is used eight times. The pixels of the next
channels are loaded meanwhile. At the end, eight warps hold the products of a tile. They exchange them through shared
memory, and each thread transforms those of eight filters. (Lavin and Gray, 2015, section 5, on fusing; Yan, Wang and
Chu, Optimizing Batched Winograd Convolution on GPUs, 2020, for this division among warps.)

F(4x4, 3x3) does not fit: 36 points of 64 x 32 products are 288 KB, more than the registers of an SM.

Costs, where tiles, filters and channels fit:

    4                     multiply-adds per output and channel, in place of 9
    C / 16                pixels loaded per output: 16 for 4 outputs, by each block of 64 filters
    C / 8                 floats of U per output, from L2
    0                     floats of V and M in device memory; U alone is workspace

Limited by instructions, by count: for eight channels a thread issues 1024 multiply-adds and some 400 others. Its
other stalls were not measured. F(4x4, 3x3) needs 9 / 16 of the multiply-adds.
"""

import numpy as np

from labkit import cuda, ptx
from labkit.conv.winograd.problem import SUPPORTED, Forward2x2
from labkit.conv.winograd.transforms import as_float32, transforms
from labkit.ladder import Launch

PROBLEM = Forward2x2
OUT, TAPS = 2, 3  # rows and columns of a tile's outputs, and of a filter
TILE = OUT + TAPS - 1  # rows and columns of a tile's pixels
POINTS = TILE * TILE  # elements of a transformed tile
A, G, B = map(as_float32, transforms(OUT, TAPS))
FILTERS, TILES, CHANNELS = 64, 32, 8  # of a block, in each iteration over channels
TK, TT = 8, 8  # filters and tiles of a thread at each of its two points, in groups of 4
WARPS, THREADS = 8, 256
MINUS_ZERO = np.float32(-0.0)  # adding to it takes no instruction, unlike adding to 0
ROWS = CHANNELS * POINTS  # of U and V in shared memory
COPY_ROWS = THREADS * 4 // FILTERS  # rows of U that the block copies at once
V_BYTE = 2 * ROWS * FILTERS * 4  # where V begins in dynamic shared memory
SHARED_BYTES = POINTS * FILTERS * TILES * 4  # for all accumulators, which exceed U and V


@cuda.jit
def transform_filters(w, U, flipped):
    """U = G @ g @ G.T for each channel and filter, zeros for the padding of a block."""
    g = cuda.local.array((TAPS, TAPS), np.float32)
    half = cuda.local.array((TILE, TAPS), np.float32)
    k, c = cuda.grid(2)
    for i in range(TAPS):
        for j in range(TAPS):
            g[i, j] = 0
            if k < w.shape[0] and c < w.shape[1]:
                g[i, j] = w[k, c, TAPS - 1 - i, TAPS - 1 - j] if flipped else w[k, c, i, j]
    for i in range(TILE):
        for j in range(TAPS):
            half[i, j] = 0
            for n in range(TAPS):
                if G[i, n] != 0:
                    half[i, j] += G[i, n] * g[n, j]
    for i in range(TILE):
        for j in range(TILE):
            value = np.float32(0)
            for n in range(TAPS):
                if G[j, n] != 0:
                    value += half[i, n] * G[j, n]
            U[c * POINTS + i * TILE + j, k] = value


@cuda.jit(device=True)
def copy_filters(U_tile, buffer, U, first, k0, thread):
    """Start this thread's copies of U, for CHANNELS channels from `first` on."""
    row, col = np.uint64(thread // (FILTERS // 4)), np.uint64(thread % (FILTERS // 4) * 4)
    begin, k0 = np.uint64(first) * np.uint64(POINTS) + row, np.uint64(k0) + col
    for i in range(0, ROWS, COPY_ROWS):
        index = begin + np.uint64(i), k0
        ptx.cp_async(U_tile, (buffer, row + np.uint64(i), col), U, index, 16, np.uint32(16))
    ptx.cp_async_commit()


@cuda.jit(device=True)
def load_pixels(d, x, image, c, first_row, first_col):
    """Load the tile of an image in a channel; pixels outside the image are zeros."""
    channels, rows, cols = np.uint32(x.shape[1]), np.uint32(x.shape[2]), np.uint32(x.shape[3])
    for i in range(TILE):
        for j in range(TILE):
            row, col = first_row + np.uint64(i), first_col + np.uint64(j)
            d[i, j] = 0
            if c < channels and np.uint32(row) < rows and np.uint32(col) < cols:
                d[i, j] = x[image, c, row, col]


@cuda.jit(device=True)
def store_transformed(V_tile, buffer, c, lane, d):
    """Store B.T @ d @ B to a channel's rows of shared memory."""
    half = cuda.local.array((TILE, TILE), np.float32)
    first = np.uint64(c) * np.uint64(POINTS)
    for i in range(TILE):
        for j in range(TILE):
            half[i, j] = MINUS_ZERO
            for n in range(TILE):
                if B[n, i] != 0:
                    half[i, j] += B[n, i] * d[n, j]
    for i in range(TILE):
        for j in range(TILE):
            value = MINUS_ZERO
            for n in range(TILE):
                if B[n, j] != 0:
                    value += half[i, n] * B[n, j]
            V_tile[buffer, first + np.uint64(i * TILE + j), lane] = value


@cuda.jit(device=True)
def load_rows(u, v, U_tile, V_tile, buffer, row, y, x):
    """Load this thread's part of a row of U and of V."""
    for i in range(0, TK, 4):
        u[i], u[i + 1], u[i + 2], u[i + 3] = ptx.load4(U_tile, (buffer, row, y + np.uint64(i * 8)))
    for j in range(0, TT, 4):
        v[j], v[j + 1], v[j + 2], v[j + 3] = ptx.load4(V_tile, (buffer, row, x + np.uint64(j * 4)))


@cuda.jit(device=True)
def swizzle(k, t):
    """Return the column of tile t in the row of filter k: filters four apart have a tile in other banks."""
    return np.uint32(t ^ k // 4 % 4 * 8)


@cuda.jit(device=True)
def multiply(acc, point, u, v):
    """Add the products of a row of U and a row of V."""
    for i in range(TK):
        for j in range(TT):
            acc[point, i, j] += u[i] * v[j]


@cuda.jit(device=True)
def store_outputs(y, acc_tile, image, k, filter, row, col, lane):
    """Store A.T @ m @ A for the products m of a filter and this lane's tile, cropped to the outputs."""
    half = cuda.local.array((OUT, TILE), np.float32)
    out = cuda.local.array((OUT, OUT), np.float32)
    N, K, P, Q = np.uint32(y.shape[0]), np.uint32(y.shape[1]), np.uint32(y.shape[2]), np.uint32(y.shape[3])
    for i in range(OUT):
        for j in range(TILE):
            half[i, j] = MINUS_ZERO
            for n in range(TILE):
                if A[n, i] != 0:
                    half[i, j] += A[n, i] * acc_tile[n * TILE + j, k, swizzle(k, lane)]
    for i in range(OUT):
        for j in range(OUT):
            out[i, j] = MINUS_ZERO
            for n in range(TILE):
                if A[n, j] != 0:
                    out[i, j] += half[i, n] * A[n, j]
    if image < N and filter < K:
        for i in range(OUT):
            out_row = np.uint32(row + i)
            if out_row < P and Q % OUT == 0:
                ptx.store2(y, (image, filter, out_row, col), out[i, 0], out[i, 1])
            elif out_row < P:
                for j in range(OUT):
                    if np.uint32(col + j) < Q:
                        y[image, filter, out_row, np.uint32(col + j)] = out[i, j]


@cuda.jit(launch_bounds=(THREADS, 1))  # one block on an SM
def fused(x, U, y, tiles_y, tiles_x, top, left):
    U_tile = ptx.shared_array(0, (2, ROWS, FILTERS), np.float32)
    V_tile = ptx.shared_array(V_BYTE, (2, ROWS, TILES), np.float32)
    acc_tile = ptx.shared_array(0, (POINTS, FILTERS, TILES), np.float32)  # replaces U and V after the loop
    acc = cuda.local.array((2, TK, TT), np.float32)
    d = cuda.local.array((TILE, TILE), np.float32)
    u = cuda.local.array(TK, np.float32)
    v = cuda.local.array(TT, np.float32)
    u_next = cuda.local.array(TK, np.float32)
    v_next = cuda.local.array(TT, np.float32)
    lane, warp = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
    k_blocks = np.uint32(U.shape[1] // FILTERS)  # consecutive blocks with the same tiles
    block = np.uint32(cuda.blockIdx.x)
    k0 = np.uint32(np.uint32(block % k_blocks) * FILTERS)
    t = np.uint32(np.uint32(block // k_blocks) * TILES + lane)
    image, tile = np.uint32(t // np.uint32(tiles_y * tiles_x)), np.uint32(t % np.uint32(tiles_y * tiles_x))
    tile_y, tile_x = np.uint32(tile // np.uint32(tiles_x)), np.uint32(tile % np.uint32(tiles_x))
    row, col = np.uint32(tile_y * OUT), np.uint32(tile_x * OUT)
    first_row, first_col = np.uint64(row - top), np.uint64(col - left)  # large where negative
    if image >= np.uint32(x.shape[0]):
        first_row = np.uint64(x.shape[2])  # outside of every image, so that it has only zeros
    ky = np.uint64(lane % 2 + lane // 4 % 4 * 2) * np.uint64(4)
    tx = np.uint64(lane // 2 % 2 + lane // 16 * 2) * np.uint64(4)
    thread, point = np.uint32(warp * 32 + lane), np.uint64(warp) * np.uint64(2)

    # -- clear accumulators, load first channels --
    for p in range(2):
        for i in range(TK):
            for j in range(TT):
                acc[p, i, j] = 0
    buffer, channels = np.uint32(0), np.uint32(x.shape[1])
    copy_filters(U_tile, buffer, U, buffer, k0, thread)
    load_pixels(d, x, image, warp, first_row, first_col)
    store_transformed(V_tile, buffer, warp, lane, d)
    for start in range(0, channels, CHANNELS):
        # -- load next channels --
        ptx.cp_async_wait(0)
        cuda.syncthreads()
        next_channel = np.uint32(start + CHANNELS)
        if next_channel < channels:
            copy_filters(U_tile, np.uint32(buffer ^ np.uint32(1)), U, next_channel, k0, thread)
        load_pixels(d, x, image, np.uint32(next_channel + warp), first_row, first_col)
        # -- acc += U V --
        load_rows(u, v, U_tile, V_tile, buffer, point, ky, tx)
        for index in range(0, ROWS, 2 * POINTS):  # two channels
            first = np.uint64(index) + point
            load_rows(u_next, v_next, U_tile, V_tile, buffer, first + np.uint64(1), ky, tx)
            multiply(acc, 0, u, v)
            load_rows(u, v, U_tile, V_tile, buffer, first + np.uint64(POINTS), ky, tx)
            multiply(acc, 1, u_next, v_next)
            load_rows(u_next, v_next, U_tile, V_tile, buffer, first + np.uint64(POINTS + 1), ky, tx)
            multiply(acc, 0, u, v)
            after = (first + np.uint64(2 * POINTS)) % np.uint64(ROWS)  # wraps around at the end, which saves a branch
            load_rows(u, v, U_tile, V_tile, buffer, after, ky, tx)
            multiply(acc, 1, u_next, v_next)
        # -- transform next pixels --
        buffer = np.uint32(buffer ^ np.uint32(1))
        store_transformed(V_tile, buffer, warp, lane, d)

    # -- exchange products of a tile --
    cuda.syncthreads()
    for p in range(2):
        for i in range(TK):
            for j in range(0, TT, 4):
                k = np.uint32(ky + i % 4 + i // 4 * 32)
                index = np.uint32(point + p), k, swizzle(k, np.uint32(tx + j * 4))
                ptx.store4(acc_tile, index, acc[p, i, j], acc[p, i, j + 1], acc[p, i, j + 2], acc[p, i, j + 3])
    # -- transform products, store outputs --
    cuda.syncthreads()
    for i in range(0, FILTERS, WARPS):
        k = np.uint32(warp + i)
        store_outputs(y, acc_tile, image, k, np.uint32(k0 + k), row, col, lane)


def launches(x, w, y, problem, workspace):
    """y = the convolution of x and w."""
    problem.check(x, w, y, supported=SUPPORTED)
    tiles_y, tiles_x = -(-problem.P // OUT), -(-problem.Q // OUT)
    channels, k_blocks = -(-problem.C // CHANNELS) * CHANNELS, -(-problem.K // FILTERS)
    U = workspace.array("filters", (channels * POINTS, k_blocks * FILTERS), np.float32)
    grid = k_blocks * -(-problem.N * tiles_y * tiles_x // TILES)
    return [
        Launch(transform_filters, (k_blocks, channels), (FILTERS, 1), (w, U, int(problem.flipped))),
        Launch(fused, grid, (32, WARPS), (x, U, y, tiles_y, tiles_x, problem.top, problem.left), SHARED_BYTES),
    ]

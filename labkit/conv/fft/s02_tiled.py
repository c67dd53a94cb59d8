"""Images are cut into overlapping tiles: a filter's spectrum has the size of a tile, and few outputs wrap around.

A circular convolution of T x T points has T - R + 1 rows and T - S + 1 columns without wrap-around (overlap-save). So
tiles begin that many rows and columns apart, and their outputs are adjacent. For each frequency, one product multiplies
the filters with all tiles of all images, K x C times C x (N tiles).

Two real lines are transformed as one complex line: rows r and r + T / 2, then columns 0 and T / 2, which are real. In
columns 0 and T / 2, the frequencies beyond T / 2 are conjugates of others. So bins are: 0 to T / 2 of column 0, the
same of column T / 2, and then T of each column between. A block transforms neighbours in a row of the spectra, and
writes their numbers of a bin side by side. Transforms of lines are `fft.lines`, the product is `fft.product`.

T is chosen by counting: large tiles have less overlap, small ones fit the image better and have short spectra.

Costs, for `tiles` tiles of T x T per image:

    T * T / 2 + 2                               frequencies
    8 * K * C * N * tiles * (T * T / 2 + 2)     FLOPs of the product
    8 * (T * T / 2 + 2) * (C * N * tiles + K * C + K * N * tiles)     bytes of workspace

Limited by the product with many channels, and by memory for spectra with few.
"""

from functools import cache

import numpy as np

from labkit import cuda, ptx, specialise
from labkit.arrays.views import reshape
from labkit.conv.fft.lines import PITCH, F, T, load_points, load_roots, pitch, slot, store_points, transform
from labkit.conv.fft.product import make_product
from labkit.conv.problem import PLAIN_NCHW
from labkit.ladder import Launch, TooLarge

SUPPORTED = PLAIN_NCHW | {"result": ("y",)}  # fields that it takes; y: outputs
SIDES = 16, 32, 64  # of a tile, T
THREADS = 256
TILES = THREADS // T  # of a block, neighbours in a row of the spectra
HALF = T // 2  # lines of a tile
BATCH = THREADS // (HALF * F)  # tiles that the block transforms at once, by F threads per line
TILE_PITCH = 162  # elements from one tile to the next, which avoid bank conflicts between TILES tiles
ROWS = 2 * TILES  # of shared memory: real parts, then imaginary ones
TFLOPS, TB_S = 48.0, 3.0  # FLOP/s of the product and bytes/s of memory, both in units of 10^12, to choose T


@cuda.jit(device=True)
def locate_block(columns):
    """Return the row of the spectra that this block transforms, and its first column there."""
    blocks = np.uint32(columns + TILES - 1) // np.uint32(TILES)
    block = np.uint32(cuda.blockIdx.x)
    return np.uint32(block // blocks), np.uint32(block % blocks * np.uint32(TILES))


@cuda.jit(device=True)
def locate_tile(tiles_as_rows, row, column, tiles_h, tiles_w):
    """Return the image, channel, and row and column of the tile at a row and a column of the spectra."""
    index = row if tiles_as_rows else column
    channel = column if tiles_as_rows else row
    tiles_h, tiles_w = np.uint32(tiles_h), np.uint32(tiles_w)
    line = np.uint32(index // tiles_w)
    return np.uint32(line // tiles_h), channel, np.uint32(line % tiles_h), np.uint32(index % tiles_w)


@cuda.jit(launch_bounds=(THREADS, 3))
def tiled(X, H, W, spectra, tiles_as_rows, sign, top, left, rows, cols, step_h, step_w, tiles_h, tiles_w):
    """Write the spectra of tiles of X, `rows` x `cols` pixels each, padded with zeros, to [bin, row, column].

    X[n, c] holds H rows of W pixels. Rows of the spectra are channels and columns are tiles, or the other way round if
    `tiles_as_rows`. `sign` is -1 for conjugates.
    """
    lines = ptx.shared_array(0, (ROWS, TILE_PITCH), np.float32)  # real parts of all tiles, then imaginary ones
    re = cuda.local.array(8, np.float32)
    im = cuda.local.array(8, np.float32)
    root_re = cuda.local.array(8, np.float32)
    root_im = cuda.local.array(8, np.float32)
    t = np.uint32(cuda.threadIdx.x)
    columns = X.shape[1] if tiles_as_rows else X.shape[0] * tiles_h * tiles_w
    spectra_row, first_column = locate_block(columns)
    H, W = np.uint32(H), np.uint32(W)

    # -- load tiles: rows r and r + T / 2 as one complex line --
    tile, col = t // T, t % T
    column = np.uint32(min(first_column + tile, columns - 1))
    image, channel, tile_h, tile_w = locate_tile(tiles_as_rows, spectra_row, column, tiles_h, tiles_w)
    plane = X[image, channel]
    h, w = np.uint32(tile_h * step_h - top), np.uint32(tile_w * step_w - left + col)  # huge if negative
    end_h = np.uint32(min(np.int32(H - h), np.int32(rows)))  # of the rows that are not zero
    if first_column + tile >= columns or col >= cols or w >= W:
        end_h = np.uint32(0)
    begin_h = np.uint32(max(np.int32(-h), np.int32(0)))
    w = min(w, np.uint32(W - 1))
    for first in range(0, T, 8):
        for i in range(8):
            re[i] = 0
        if first < rows:
            for i in range(8):  # all loads are issued before one is used; outside of X, they load its edge
                re[i] = plane[np.uint32(min(np.uint32(h + first + i), np.uint32(H - 1)) * W + w)]
        part, index = first // HALF * TILES + tile, first % HALF * PITCH + slot(col)
        for i in range(8):
            row = np.uint32(first + i)
            lines[part, index + i * PITCH] = re[i] if row >= begin_h and row < end_h else np.float32(0)
        cuda.syncwarp()  # else the compiler issues more loads, which take more registers
    cuda.syncthreads()

    # -- transform rows, then columns --
    j, line = t % F, t // F % HALF
    begin = line * PITCH
    load_roots(root_re, root_im, j)
    mirrored = T - line if line > 0 else HALF
    for batch in range(0, TILES, BATCH):
        re_row = batch + t // (F * HALF)
        im_row = re_row + TILES
        if t // 32 * 32 // F % HALF < rows:  # else all lines of the warp are zero, before and after
            load_points(re, im, lines, re_row, im_row, begin, j)
            transform(re, im, root_re, root_im, lines, re_row, im_row, begin, j)
            store_points(re, im, lines, re_row, im_row, begin, j)
        cuda.syncthreads()
        for i in range(4):  # of both real rows in a line, the points of column `line`
            index = (j + F * i) * PITCH
            a_re, a_im = lines[re_row, index + slot(line)], lines[im_row, index + slot(line)]
            b_re, b_im = lines[re_row, index + slot(mirrored)], lines[im_row, index + slot(mirrored)]
            if line == 0:  # the real columns 0 and T / 2 as one
                re[i], im[i], re[i + 4], im[i + 4] = a_re, b_re, a_im, b_im
            else:
                re[i], im[i] = (a_re + b_re) * np.float32(0.5), (a_im - b_im) * np.float32(0.5)
                re[i + 4], im[i + 4] = (a_im + b_im) * np.float32(0.5), (b_re - a_re) * np.float32(0.5)
        cuda.syncthreads()
        transform(re, im, root_re, root_im, lines, re_row, im_row, begin, j)
        store_points(re, im, lines, re_row, im_row, begin, j)
    cuda.syncthreads()

    # -- store spectra --
    tile, first = t % TILES, t // TILES
    column = np.uint32(first_column + tile)
    if column < columns:
        for u in range(first, HALF + 1, THREADS // TILES):
            a_re, a_im = lines[tile, slot(u)], lines[tile + TILES, slot(u)]
            b_re, b_im = lines[tile, slot((T - u) % T)], lines[tile + TILES, slot((T - u) % T)]
            zero_re, zero_im = (a_re + b_re) * np.float32(0.5), (a_im - b_im) * np.float32(0.5)
            half_re, half_im = (a_im + b_im) * np.float32(0.5), (b_re - a_re) * np.float32(0.5)
            ptx.store2(spectra, (u, spectra_row, 2 * column), zero_re, sign * zero_im)
            ptx.store2(spectra, (HALF + 1 + u, spectra_row, 2 * column), half_re, sign * half_im)
        for i in range(T, HALF * T, THREADS // TILES):
            index = np.uint32(first + i)
            offset = index // T * PITCH + slot(index % T)
            ptx.store2(
                spectra, (index + 2, spectra_row, 2 * column), lines[tile, offset], sign * lines[tile + TILES, offset]
            )


@cuda.jit(launch_bounds=(THREADS, 4))
def inverse(spectra, Y, P, Q, tiles_as_rows, first_row, first_col, step_h, step_w, tiles_h, tiles_w):
    """Write to Y the part of tiles from `first_row` and `first_col` on, from their spectra [bin, row, column].

    Y[n, k] holds P rows of Q pixels. Rows of the spectra are channels and columns are tiles, or the other way round if
    `tiles_as_rows`.
    """
    lines = ptx.shared_array(0, (ROWS, TILE_PITCH), np.float32)
    re = cuda.local.array(8, np.float32)
    im = cuda.local.array(8, np.float32)
    root_re = cuda.local.array(8, np.float32)
    root_im = cuda.local.array(8, np.float32)
    t = np.uint32(cuda.threadIdx.x)
    columns = Y.shape[1] if tiles_as_rows else Y.shape[0] * tiles_h * tiles_w
    spectra_row, first_column = locate_block(columns)

    # -- load spectra --
    tile, first = t % TILES, t // TILES
    source_column = np.uint32(min(first_column + tile, columns - 1))  # past the end, the last one
    for u in range(first, HALF + 1, THREADS // TILES):
        zero_re, zero_im = ptx.load2(spectra, (u, spectra_row, 2 * source_column))
        half_re, half_im = ptx.load2(spectra, (HALF + 1 + u, spectra_row, 2 * source_column))
        lines[tile, slot(u)], lines[tile + TILES, slot(u)] = zero_re - half_im, zero_im + half_re
        if u > 0 and u < HALF:
            lines[tile, slot(T - u)], lines[tile + TILES, slot(T - u)] = (zero_re + half_im, half_re - zero_im)
    for i in range(T, HALF * T, THREADS // TILES):
        index = np.uint32(first + i)
        offset = index // T * PITCH + slot(index % T)
        lines[tile, offset], lines[tile + TILES, offset] = ptx.load2(
            spectra, (index + 2, spectra_row, 2 * source_column)
        )
    cuda.syncthreads()

    # -- transform columns, then rows --
    j, line = t % F, t // F % HALF
    begin = line * PITCH
    load_roots(root_re, root_im, j)
    mirrored = T - line if line > 0 else HALF
    for batch in range(0, TILES, BATCH):
        re_row = batch + t // (F * HALF)
        im_row = re_row + TILES
        load_points(re, im, lines, re_row, im_row, begin, j)
        transform(im, re, root_re, root_im, lines, im_row, re_row, begin, j)
        cuda.syncthreads()
        for m in range(8 // F):
            for n in range(F // 2):
                a = m * F + n
                b, index = a + F // 2, (j + F * m + 8 * n) * PITCH  # b is T / 2 rows below a
                if line == 0:
                    lines[re_row, index], lines[im_row, index] = re[a], re[b]
                    lines[re_row, index + slot(mirrored)], lines[im_row, index + slot(mirrored)] = (im[a], im[b])
                else:
                    lines[re_row, index + slot(line)] = re[a] - im[b]
                    lines[im_row, index + slot(line)] = im[a] + re[b]
                    lines[re_row, index + slot(mirrored)] = re[a] + im[b]
                    lines[im_row, index + slot(mirrored)] = re[b] - im[a]
        cuda.syncthreads()
        load_points(re, im, lines, re_row, im_row, begin, j)
        transform(im, re, root_re, root_im, lines, im_row, re_row, begin, j)
        store_points(re, im, lines, re_row, im_row, begin, j)
    cuda.syncthreads()

    # -- store outputs --
    scale = np.float32(1 / (T * T))
    tile, col = t // T, t % T
    column = np.uint32(min(first_column + tile, columns - 1))
    image, channel, tile_h, tile_w = locate_tile(tiles_as_rows, spectra_row, column, tiles_h, tiles_w)
    plane = Y[image, channel]
    p, q = np.uint32(tile_h * step_h), np.uint32(tile_w * step_w)
    q = np.uint32(q + np.uint32(col - first_col) % np.uint32(T))
    plane_offset = np.uint32(p * np.uint32(Q) + q)
    end_p = np.int32(min(step_h, P - p))
    if first_column + tile < columns and q < min(tile_w * step_w + step_w, Q):
        for first in range(0, T, 8):
            part, index = first // HALF * TILES + tile, first % HALF * PITCH + slot(col)
            begin = np.int32(first - first_row)
            if begin >= 0 and begin + 8 <= end_p:  # eight rows of the result, without a test for each
                for i in range(8):
                    plane[np.uint32(plane_offset + (begin + i) * Q)] = lines[part, index + i * PITCH] * scale
            else:
                for i in range(8):
                    row = np.int32(np.uint32(begin + i) % np.uint32(T))
                    if row < end_p:
                        plane[np.uint32(plane_offset + row * Q)] = lines[part, index + i * PITCH] * scale


@cache
def _specialise(kernel, side):
    """Return a kernel for tiles of side x side."""
    return specialise(kernel, T=side, F=side // 8, PITCH=pitch(side), TILE_PITCH=tile_pitch(side))


def tile_pitch(side: int) -> int:
    """Return the elements from one tile to the next, which avoid bank conflicts between tiles."""
    lines = side // 2 * pitch(side)
    return lines + (side // 8 - lines) % 32


def shared_bytes(side: int) -> int:
    """Return the shared memory of a block that transforms tiles."""
    return 2 * (THREADS // side) * tile_pitch(side) * 4


def count_bins(side: int) -> int:
    """Return the number of independent frequencies of a real tile."""
    return side * side // 2 + 2


def allocate_spectra(workspace, role: str, side: int, rows: int, columns: int):
    """Allocate spectra of rows x columns complex numbers per bin; rows begin at multiples of 16 bytes."""
    return workspace.array(role, (count_bins(side), rows, 2 * (columns + columns % 2)), np.float32)


def as_planes(X):
    """View each X[n, c] as one row of pixels."""
    N, C, H, W = X.shape
    return reshape(X, N, C, H * W)


def make_transform(
    X, spectra, side, *, sizes, step=None, tiles=(1, 1), corner=(0, 0), tiles_as_rows=False, conjugated=False
) -> Launch:
    """Return the launch that writes spectra of `tiles` of X, whose first pixel is at `corner` of the first tile.

    Tiles have `sizes` pixels, padded with zeros to side x side, and begin `step` apart, by default `sizes`.
    """
    columns = X.shape[1] if tiles_as_rows else X.shape[0] * tiles[0] * tiles[1]
    blocks = spectra.shape[1] * -(-columns // (THREADS // side))
    tile_arguments = *corner, *sizes, *(step or sizes), *tiles
    sign = np.float32(-1 if conjugated else 1)
    arguments = as_planes(X), *X.shape[2:], spectra, int(tiles_as_rows), sign, *tile_arguments
    return Launch(_specialise(tiled, side), blocks, THREADS, arguments, shared_bytes(side))


def make_inverse(spectra, Y, side, *, step, tiles=(1, 1), first_output=(0, 0), tiles_as_rows=False) -> Launch:
    """Return the launch that writes `step` pixels of Y per tile: those from `first_output` on, row and column."""
    columns = Y.shape[1] if tiles_as_rows else Y.shape[0] * tiles[0] * tiles[1]
    blocks = spectra.shape[1] * -(-columns // (THREADS // side))
    arguments = spectra, as_planes(Y), *Y.shape[2:], int(tiles_as_rows), *first_output, *step, *tiles
    return Launch(_specialise(inverse, side), blocks, THREADS, arguments, shared_bytes(side))


def predict_ms(problem, side: int) -> float:
    """Return the predicted time with tiles of side x side, from FLOPs and bytes."""
    tiles = -(-problem.P // (side - problem.R + 1)) * -(-problem.Q // (side - problem.S + 1))
    images, filters, outputs = (
        count_bins(side) * count
        for count in (problem.N * tiles * problem.C, problem.K * problem.C, problem.N * tiles * problem.K)
    )
    overlap = tiles * side**2 / (problem.H * problem.W)
    pixels = problem.N * (problem.C * problem.H * problem.W * max(1, overlap) + problem.K * problem.P * problem.Q)
    moved = 8 * (images + filters + outputs)
    flops = 8 * count_bins(side) * problem.K * problem.C * problem.N * tiles
    return max(flops / TFLOPS, moved / TB_S) / 1e9 + (moved + 4 * pixels) / TB_S / 1e9


def choose_side(problem) -> int:
    """Return the side of tiles with the least predicted time; raise `TooLarge` for a filter larger than any tile."""
    sides = [side for side in SIDES if side >= max(problem.R, problem.S)]
    if not sides:
        raise TooLarge(
            f"the filter has {problem.R} x {problem.S} taps, and tiles have {SIDES[-1]} x {SIDES[-1]} points at most"
        )
    return min(sides, key=lambda side: predict_ms(problem, side))


def choose_tiles(problem, side: int | None = None):
    """Return the side of a tile, by default the fastest; along both axes the step between tiles and their number."""
    side = side or choose_side(problem)
    step = side - problem.R + 1, side - problem.S + 1
    return side, step, (-(-problem.P // step[0]), -(-problem.Q // step[1]))


def launches(x, w, y, problem, workspace, side=None, product=make_product):
    """y = the convolution of x and w, by tiles of side x side, with the products by `product`."""
    problem.check(x, w, y, supported=SUPPORTED)
    R, S, K, C = problem.R, problem.S, problem.K, problem.C
    side, step, tiles = choose_tiles(problem, side)
    count = problem.N * tiles[0] * tiles[1]
    filters = allocate_spectra(workspace, "filters", side, C, K)
    images = allocate_spectra(workspace, "images", side, C, count)
    outputs = allocate_spectra(workspace, "outputs", side, K, count)
    # cross-correlation uses conjugates; in a convolution, the first valid outputs follow the wrap-around
    first_output = (R - 1, S - 1) if problem.flipped else (0, 0)
    return [
        make_transform(w, filters, side, sizes=(R, S), conjugated=not problem.flipped),
        make_transform(x, images, side, sizes=(side, side), step=step, tiles=tiles, corner=(problem.top, problem.left)),
        product(filters, images, outputs, K, count, C),
        make_inverse(outputs, y, side, step=step, tiles=tiles, first_output=first_output),
    ]

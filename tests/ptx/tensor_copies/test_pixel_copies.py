"""Copies of pixels by the copy engine: which windows, in which order, with zeros where, and what it does not take."""

import numpy as np
import pytest
from cells import kernel_in
from numba import uint16, uint32, uint64

import labkit
from labkit import ptx

LOAD = """
@cuda.jit
def load(images, first, columns, rows, top, left, stride_h, stride_w, r, s, c, out):
    tile = cuda.shared.array((PIXELS, CHANNELS), KIND, alignment=1024)
    bar = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(bar, 0, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if t == 0:
        window = first + PIXELS * cuda.blockIdx.x
        p, q = window // columns % rows, window % columns
        place = (window // (columns * rows), p * stride_h - top, q * stride_w - left, c)
        ptx.mbarrier_expect(bar, 0, PIXELS * 128)
        ptx.tma_load_pixels(tile, (0, 0), images, place, (r, s), bar, 0)
    ptx.mbarrier_wait(bar, 0, 0)
    for row in range(t, PIXELS, 32):
        for i in range(CHANNELS):
            out[cuda.blockIdx.x, row, i] = tile[row, i]
"""
PIXELS = 24


def kernel(text=LOAD, dtype=np.uint16, pixels=PIXELS):
    kind = {2: uint16, 4: uint32}[np.dtype(dtype).itemsize]
    names = dict(ptx=ptx, uint64=uint64, PIXELS=pixels, CHANNELS=128 // np.dtype(dtype).itemsize, KIND=kind)
    return kernel_in(text, **names)


def numbers(shape, dtype=np.uint16):
    dtype = np.dtype(dtype)
    return np.random.default_rng(3).integers(1, 1 << 8 * dtype.itemsize, shape, dtype)


class Case:
    """Images, the windows on them, and a copy of the pixels at (r, s) of all windows from `first` on."""

    def __init__(self, shape, padding=(0, 0, 0, 0), filters=(1, 1), strides=(1, 1), dilations=(1, 1), **options):
        self.shape, self.padding, self.filters = shape, padding, filters
        self.strides, self.dilations = strides, dilations
        self.first, self.at = options.get("first", 0), options.get("at", (0, 0))
        self.channel, self.dtype = options.get("channel", 0), options.get("dtype", np.uint16)
        top, left, bottom, right = padding
        reach = [(n - 1) * d for n, d in zip(filters, dilations, strict=True)]
        self.rows = (shape[1] + top + bottom - reach[0] - 1) // strides[0] + 1
        self.columns = (shape[2] + left + right - reach[1] - 1) // strides[1] + 1
        self.images = numbers(shape, self.dtype)
        self.blocks = -(-(shape[0] * self.rows * self.columns - self.first) // PIXELS) + 1

    def __repr__(self):
        parts = self.shape, self.padding, self.filters, self.strides, self.dilations, self.first, self.at, self.channel
        return " ".join(map(str, parts))

    @property
    def offset(self):
        return tuple(n * d for n, d in zip(self.at, self.dilations, strict=True))

    def pixel_map(self):
        sizes = *self.padding, *self.filters, *self.strides, *self.dilations
        return ptx.PixelMap(self.images, PIXELS, 128 // self.images.itemsize, *sizes)

    def arguments(self):
        out = np.zeros((self.blocks, PIXELS, 128 // self.images.itemsize), self.images.dtype)
        walk = self.first, self.columns, self.rows, *self.padding[:2], *self.strides
        return self.pixel_map(), *walk, *self.offset, self.channel, out

    def expected(self):
        """The pixels, window after window, by indexing a padded array; and zeros behind them."""
        top, left, bottom, right = self.padding
        each = 128 // self.images.itemsize
        wide = np.pad(self.images, ((0, 0), (top, bottom), (left, right), (0, each)))
        (r, s), (down, across) = self.offset, self.strides
        pixels = wide[:, r::down, s::across][:, : self.rows, : self.columns, self.channel : self.channel + each]
        pixels = pixels.reshape(-1, each)[self.first :]
        filled = np.zeros((self.blocks * PIXELS, each), self.images.dtype)
        filled[: len(pixels)] = pixels
        return swizzled(filled)


def swizzled(rows):
    """Rows of 128 bytes as they lie in shared memory, in tiles of a multiple of 8 rows."""
    pieces = rows.reshape(-1, 8, 8, rows.shape[1] // 8)
    lies = np.empty_like(pieces)
    for r in range(8):
        for p in range(8):
            lies[:, r, p ^ r] = pieces[:, r, p]
    return lies.reshape(-1, PIXELS, rows.shape[1])


CASES = {
    "one by one": Case((2, 5, 7, 64)),
    "padded": Case((2, 5, 7, 64), (1, 1, 1, 1), (3, 3), at=(0, 0)),
    "padded, the middle": Case((2, 5, 7, 64), (1, 1, 1, 1), (3, 3), at=(1, 1)),
    "padded, the end": Case((2, 5, 7, 64), (1, 1, 1, 1), (3, 3), at=(2, 2)),
    "no padding": Case((3, 6, 9, 64), filters=(3, 3), at=(2, 1)),
    "one side": Case((2, 5, 7, 64), (2, 0, 0, 1), (3, 4), at=(0, 3)),
    "other side": Case((2, 5, 7, 64), (0, 3, 1, 0), (2, 5), at=(1, 0)),
    "stride 2, odd": Case((2, 7, 9, 64), (1, 1, 1, 1), (3, 3), (2, 2), at=(0, 2)),
    "stride 2, even": Case((2, 8, 10, 64), (1, 1, 1, 1), (3, 3), (2, 2), at=(2, 0)),
    "stride 2 with a rest": Case((3, 8, 10, 64), filters=(3, 3), strides=(2, 2), at=(1, 1)),
    "stride 3": Case((2, 11, 13, 64), (1, 2, 0, 1), (3, 3), (3, 3), at=(2, 2)),
    "strides of both kinds": Case((2, 11, 13, 64), (2, 1, 2, 0), (3, 2), (3, 2), at=(0, 1)),
    "stride 2 of single pixels": Case((3, 7, 7, 64), strides=(2, 2)),
    "stride 8": Case((2, 19, 25, 64), (3, 3, 3, 3), (7, 7), (8, 5), at=(6, 0)),
    "dilated": Case((2, 9, 8, 64), (2, 2, 2, 2), (3, 3), dilations=(2, 2), at=(2, 0)),
    "dilated and strided": Case((2, 13, 12, 64), (3, 2, 1, 4), (3, 3), (2, 3), (2, 3), at=(1, 2)),
    "from the middle of a row": Case((3, 5, 7, 64), (1, 1, 1, 1), (3, 3), first=17, at=(2, 1)),
    "the last window": Case((3, 5, 7, 64), (1, 1, 1, 1), (3, 3), first=104, at=(1, 1)),
    "behind the last window": Case((3, 5, 7, 64), (1, 1, 1, 1), (3, 3), first=110, at=(1, 1)),
    "two windows an image": Case((9, 2, 3, 64), filters=(2, 2), at=(1, 1)),
    "more padding than image": Case((2, 2, 2, 64), (4, 4, 4, 4), (3, 3), at=(1, 1)),
    "channels beyond the last": Case((2, 5, 7, 72), (1, 1, 1, 1), (3, 3), channel=24, at=(1, 0)),
    "channels from the middle": Case((2, 5, 7, 192), (1, 1, 1, 1), (3, 3), channel=64, at=(0, 1)),
    "32 bits": Case((2, 5, 7, 32), (1, 1, 1, 1), (3, 3), (2, 1), at=(2, 2), dtype=np.uint32),
    "a wide image": Case((1, 3, 200, 64), (0, 2, 0, 2), (1, 5), at=(0, 4)),
    "a filter of 16 x 16": Case((2, 20, 21, 64), filters=(16, 16), strides=(2, 1), at=(15, 15)),
}


def load(case, text=LOAD):
    return labkit.simulate(kernel(text, case.dtype), case.blocks, 32, *case.arguments())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_tile_is_a_pixel_of_each_window_with_zeros_outside(case):
    trace = load(case)
    assert not trace.errors
    assert np.array_equal(trace.outputs[-1], case.expected())

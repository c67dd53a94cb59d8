"""Copies of pixels by TMA: which windows, in which order, with zeros where, and what it does not take."""

import re

import numpy as np
import pytest
from cells import kernel_in
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import uint8, uint16, uint32, uint64

import labkit
from labkit import ptx
from labkit.simulator import host
from labkit.simulator.errors import KernelError, LaunchError

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
    kind = {1: uint8, 2: uint16, 4: uint32}[np.dtype(dtype).itemsize]
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
    "8 bits": Case((2, 5, 7, 128), (1, 1, 1, 1), (3, 3), (1, 2), at=(1, 2), dtype=np.uint8),
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


@st.composite
def cases(draw):
    sides = st.integers(1, 9)
    shape = draw(st.tuples(st.integers(1, 4), sides, sides, st.sampled_from([8, 64, 96])))
    filters, dilations = (draw(st.tuples(st.integers(1, 4), st.integers(1, 4))) for _ in range(2))
    strides = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    padding = draw(st.tuples(*[st.integers(0, 5)] * 4))
    spans = (size + padding[i] + padding[i + 2] for i, size in enumerate(shape[1:3]))
    assume(all(span > (n - 1) * d for span, n, d in zip(spans, filters, dilations, strict=True)))
    case = Case(shape, padding, filters, strides, dilations, channel=draw(st.integers(0, shape[3])))
    case.first = draw(st.integers(0, shape[0] * case.rows * case.columns + 3))
    case.at = tuple(draw(st.integers(0, n - 1)) for n in filters)
    return case


@settings(max_examples=60, deadline=None)
@given(cases())
def test_any_windows(case):
    trace = load(case)
    assert not trace.errors
    assert np.array_equal(trace.outputs[-1], case.expected())


def test_a_map_has_as_many_windows_as_the_convolution_outputs():
    for case in CASES.values():
        assert case.pixel_map().windows == (case.rows, case.columns)


def test_a_load_counts_the_sectors_of_the_pixels_that_lie_in_their_images():
    case = CASES["padded"]  # 2 x 5 x 7 windows; at (0, 0) the first row and the first column lie outside
    trace = load(case)
    site = next(c for c in trace.sites if c.site.space == "global" and c.site.kind == "load")
    pixels = 2 * 4 * 6
    assert (site.accesses, site.requests, site.bytes) == (64 * pixels, case.blocks, 128 * pixels)
    assert (site.sectors, site.l1_hits) == (4 * pixels, 0)
    written = next(c for c in trace.sites if c.site.array == "tile" and c.site.kind == "store")
    assert (written.accesses, written.wavefronts) == (case.blocks * PIXELS * 64, case.blocks * PIXELS)


def test_float32_is_rounded_to_tf32_as_it_is_loaded():
    case = CASES["32 bits"]
    images = np.random.default_rng(5).standard_normal(case.shape).astype(np.float32)
    loaded = []
    for to_tf32 in (False, True):
        sizes = *case.padding, *case.filters, *case.strides
        given = ptx.PixelMap(images.view(np.uint32), PIXELS, 32, *sizes, to_tf32=to_tf32)
        trace = labkit.simulate(kernel(LOAD, np.uint32), case.blocks, 32, given, *case.arguments()[1:])
        loaded.append(trace.outputs[-1])
    assert np.array_equal((loaded[0] + 0xFFF + (loaded[0] >> 13 & 1)) & 0xFFFFE000, loaded[1])
    assert (loaded[0] != loaded[1]).any()


def changed(*pairs):
    text = LOAD
    for before, after in pairs:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def broken(before, after=""):
    return load(CASES["padded"], changed((before, after)))


@pytest.mark.parametrize(
    "before, after, kind, part",
    [
        ("    ptx.mbarrier_wait(bar, 0, 0)\n", "", "in-flight", "before the copy that thread 0 of block 0 began"),
        ("PIXELS * 128)", "PIXELS * 64)", "deadlock", "3,072 of 1,536 expected bytes"),
        (", alignment=1024", "", "misaligned", "alignment=1024"),
        ("tile, (0, 0), images", "tile, (1, 0), images", "bounds", "the array ends before"),
        ("    if t == 0:\n        window", "    tile[0, t] = 1\n    cuda.syncthreads()\n    if t == 0:\n        window",
         "proxy", "ptx.fence_async()"),
    ],
)  # fmt: skip
def test_a_broken_copy_is_found_out(before, after, kind, part):
    trace = broken(before, after)
    assert any(f.kind == kind and part in f.message for f in trace.errors), trace.errors


@pytest.mark.parametrize("row, is_read", [(0, True), (4, False)])
def test_nobody_writes_a_pixel_that_a_copy_still_reads(row, is_read):
    """The first 24 windows, of 3 x 3 without padding, read at (0, 0) rows 0 to 3 of the image alone."""
    wait = "    ptx.mbarrier_wait(bar, 0, 0)\n"
    write = f"    if t == 0 and cuda.blockIdx.x == 0:\n        again[0, {row}, 3, 5] = 5\n"
    case = Case((1, 6, 9, 64), filters=(3, 3))
    made = kernel(changed(("def load(", "def load(again, "), (wait, write + wait)))
    trace = labkit.simulate(made, 1, 32, case.images, *case.arguments())
    assert [f.kind for f in trace.errors] == ["in-flight"] * is_read


def by_pairs(case):
    """The kernel by which a block of each pair brings the pixels of `case` for both, and its arguments."""
    call = "        ptx.tma_load_pixels("
    text = changed(
        ("@cuda.jit", "@cuda.jit(cluster=2)"),
        ("cuda.blockIdx.x\n        p, q", "(cuda.blockIdx.x // 2)\n        p, q"),
        (call, "    ptx.cluster_sync()\n    if t == 0 and ptx.cluster_rank() == 0:\n" + call),
    )
    text = text.replace("load_pixels(tile", "load_pixels_multicast(tile").replace(
        "(r, s), bar, 0)", "(r, s), bar, 0, 3)"
    )
    *arguments, out = case.arguments()
    return kernel(text + "    ptx.cluster_sync()\n"), (2 * case.blocks, 32, *arguments, np.repeat(out, 2, axis=0))


def test_blocks_of_a_cluster_get_the_pixels_of_one_copy():
    case = CASES["stride 2, odd"]
    made, arguments = by_pairs(case)
    trace = labkit.simulate(made, *arguments)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[-1], np.repeat(case.expected(), 2, axis=0))
    read = next(c for c in trace.sites if c.site.space == "global" and c.site.kind == "load")
    alone = next(c for c in load(case).sites if c.site.space == "global" and c.site.kind == "load")
    assert read.bytes == alone.bytes


@pytest.mark.parametrize(
    "before, after, part",
    [
        ("p * stride_h - top", "p * stride_h - top - 1", "begins at row -2: an image has 5"),
        ("q * stride_w - left", "q * stride_w - left - 1", "no window of this pixel map begins at column -2"),
        ("q * stride_w - left", "q * stride_w - left + columns", "no window of this pixel map begins at column 6"),
        ("(r, s), bar", "(r - 1, s), bar", "a pixel lies 0 to 255 rows from its window's corner, not -1"),
        ("(r, s), bar", "(r, s + 256), bar", "a pixel lies 0 to 255 columns from its window's corner, not 256"),
        ("place, (r, s), bar", "place[:3], (r, s), bar", "a tuple of 4 whole numbers"),
        ("(r, s), bar", "(0.5, s), bar", "a pixel in its window is a tuple of 2 whole numbers"),
        ("(r, s), bar", "r, bar", "a pixel in its window is a tuple of 2 whole numbers"),
        ("images, place", "out, place", "needs a PixelMap"),
        ("ptx.tma_load_pixels(tile, (0, 0), images, place, (r, s), bar, 0)",
         "ptx.tma_load(tile, (0, 0), images, place, bar, 0)", "needs a TensorMap"),
        ("    ptx.mbarrier_wait(bar, 0, 0)\n", "    ptx.tma_store(images, (0, 0, 0, 0), tile, (0, 0))\n",
         "needs a TensorMap"),
    ],
)  # fmt: skip
def test_a_copy_that_cannot_run_is_refused_in_a_sentence(before, after, part):
    with pytest.raises(KernelError, match=part):
        broken(before, after)


def test_a_place_between_two_windows_is_refused_in_a_sentence():
    part = "no window of this pixel map begins at column 0: an image has 5, from column -1 on and 2 apart"
    with pytest.raises(KernelError, match=part):
        load(CASES["stride 2, odd"], changed(("q * stride_w - left", "q * stride_w - left + 1")))


def test_a_box_is_no_window():
    made = kernel(LOAD)
    case = CASES["padded"]
    boxes = ptx.TensorMap(case.images, (1, 4, 6, 64))
    with pytest.raises(KernelError, match="needs a PixelMap"):
        labkit.simulate(made, 1, 32, boxes, *case.arguments()[1:])


def test_the_map_itself_may_be_fetched_before():
    assert not broken(
        "    if t == 0:\n        window", "    if t == 0:\n        ptx.tma_prefetch(images)\n        window"
    ).errors


def test_a_map_of_a_slice_begins_at_a_multiple_of_16_bytes():
    case = Case((2, 5, 7, 72), filters=(3, 3), at=(1, 1))
    there = host.to_device(case.images)
    sizes = *case.padding, *case.filters
    trace = labkit.simulate(
        kernel(), case.blocks, 32, ptx.PixelMap(there[..., 8:], PIXELS, 64, *sizes), *case.arguments()[1:]
    )
    case.channel = 8
    assert np.array_equal(trace.outputs[-1], case.expected())
    with pytest.raises(LaunchError, match="does not begin at a multiple of 16 bytes"):
        labkit.simulate(kernel(), 1, 32, ptx.PixelMap(there[..., 4:], PIXELS, 64, *sizes), *case.arguments()[1:])


IMAGES = np.zeros((2, 5, 7, 64), np.uint16)
WHOLE = dict(images=IMAGES, pixels=32, channels=64, top=1, left=1, bottom=1, right=1, R=3, S=3)


@pytest.mark.parametrize(
    "changes, part",
    [
        (dict(images=IMAGES[0]), "N x H x W x C"),
        (dict(images=IMAGES[:, ::-1]), "run backwards"),
        (dict(images=np.zeros((2, 5, 7, 68), np.uint16)), "multiples of 16 bytes"),
        (dict(images=IMAGES[:0]), "no empty one"),
        (dict(channels=32), "128 bytes of each of 1 to 1024 pixels, not 32 channels"),
        (dict(pixels=0), "1 to 1024 pixels"),
        (dict(pixels=1025), "1 to 1024 pixels"),
        (dict(stride_h=9), "1 to 8 pixels apart"),
        (dict(stride_w=0), "1 to 8 pixels apart"),
        (dict(dilation_w=0), "dilations"),
        (dict(R=0), "a filter of"),
        (dict(R=2, dilation_h=256, bottom=255), "at most 255"),
        (dict(top=129), "-128 to 127 pixels"),
        (dict(right=130), "-128 to 127 pixels"),
        (dict(R=131, top=127), "-128 to 127 pixels"),
        (dict(R=8), "larger than an image"),
        (dict(S=6, dilation_w=2), "larger than an image"),
        (dict(to_tf32=True), "TF32"),
    ],
    ids=str,
)
def test_windows_that_tma_does_not_take(changes, part):
    with pytest.raises(ValueError, match=part):
        ptx.PixelMap(**WHOLE | changes)


@pytest.mark.parametrize(
    "changes, part",
    [
        (dict(images=[[1, 2]]), "describes an array"),
        (dict(images=IMAGES.astype(np.float64)), "moves numbers of 1, 2 or 4 bytes"),
        (dict(pixels=8.5), "whole numbers"),
        (dict(stride_h="2"), "whole numbers"),
    ],
)
def test_maps_of_other_things_are_refused_in_a_sentence(changes, part):
    with pytest.raises(TypeError, match=part):
        ptx.PixelMap(**WHOLE | changes)


def compiled(text):
    from numba import types

    from labkit.cuda.compiling import ptx_text
    from labkit.ptx.tensor_copies.map_types import PixelMapType

    return ptx_text(kernel(text), (PixelMapType(), *[types.int32] * 10, types.Array(uint16, 3, "C")), (9, 0))


@pytest.mark.needs("numba-cuda")
def test_the_instruction_takes_places_with_the_last_axis_first():
    text = changed(("(window // (columns * rows), p * stride_h - top, q * stride_w - left, c)", "(1, 2, 3, 64)"))
    code = compiled(text.replace("(r, s), bar", "(4, 5), bar"))
    (line,) = [line for line in code.splitlines() if "cp.async.bulk.tensor" in line]
    assert line.split()[0].endswith(".4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes")
    values = dict(re.findall(r"mov\.u\d+ \t(%\w+), (\d+);", code))
    places = [[values[register] for register in re.findall(r"%\w+", part)] for part in re.findall(r"\{(.+?)\}", line)]
    assert places == [["64", "3", "2", "1"], ["5", "4"]]


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize(
    "before, after, part",
    [
        ("images, place", "out, place", "needs a PixelMap"),
        ("ptx.tma_load_pixels(tile, (0, 0), images, place, (r, s), bar, 0)",
         "ptx.tma_load(tile, (0, 0), images, place, bar, 0)", "needs a TensorMap"),
        ("place, (r, s), bar", "place[:3], (r, s), bar", "a tuple of 4 whole numbers"),
        ("(r, s), bar", "r, bar", "a pixel in its window is a tuple of 2 whole numbers"),
    ],
)  # fmt: skip
def test_the_compiler_refuses_other_things_in_the_same_words(before, after, part):
    with pytest.raises(Exception, match=part):
        compiled(changed((before, after)))


# --- stores ----------------------------------------------------------------------------------------

STORE = """
@cuda.jit
def store(images, values, columns, rows):
    tile = cuda.shared.array((PIXELS, CHANNELS), KIND, alignment=1024)
    t = cuda.threadIdx.x
    for row in range(PIXELS):
        for i in range(t, CHANNELS, 32):
            tile[row, i] = values[cuda.blockIdx.x, row, i]
    ptx.fence_async()
    cuda.syncthreads()
    if t == 0:
        window = PIXELS * cuda.blockIdx.x
        place = window // (columns * rows), window // columns % rows, window % columns, 0
        ptx.tma_store_pixels(images, place, tile, (0, 0))
        ptx.tma_store_commit()
        ptx.tma_store_wait(0)
"""


@pytest.mark.parametrize("missing", [(0, 0), (1, 2)])
@pytest.mark.parametrize("channels", [64, 40])
def test_stores_write_pixels_of_images_that_are_apart_in_memory_and_no_others(missing, channels):
    """Every second row and third column; windows past the images, of `missing` rows and columns, are not stored."""
    whole = np.zeros((3, 9, 11, channels), np.uint16)
    images = whole[:, 1::2, ::3]
    windows = tuple(size + more for size, more in zip(images.shape[1:3], missing))
    count = 3 * windows[0] * windows[1]
    values = numbers((-(-count // PIXELS) * PIXELS, 64))
    given = ptx.PixelMap(images, PIXELS, 64, 0, 0, *missing, 1, 1)
    tiles = swizzled(values).reshape(-1, PIXELS, 64)
    trace = labkit.simulate(kernel(STORE), len(tiles), 32, given, tiles, windows[1], windows[0])
    assert not trace.errors
    expected = values[:count].reshape(3, *windows, 64)[:, : images.shape[1], : images.shape[2], :channels]
    assert np.array_equal(trace.outputs[0], expected)

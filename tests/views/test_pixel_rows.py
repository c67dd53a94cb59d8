"""Pixels as rows of a tile: what the picture says is where a run of TMA's im2col mode put them."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.views import pixel_rows
from labkit.views.base import unpack

ROWS, R, S, STRIDE, PAD, DILATION, BEGIN = 16, 3, 3, 1, 1, 1, 20


@cuda.jit
def gathered(x_map, P, Q, tiles):
    tile = cuda.shared.array((ROWS, 32), np.uint32, alignment=1024)
    full = cuda.shared.array(1, np.uint64)
    word = cuda.threadIdx.x
    if word == 0:
        ptx.mbarrier_init(full, 0, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    n, p, q = BEGIN // (P * Q), BEGIN // Q % P, BEGIN % Q
    for tap in range(R * S):
        r, s = tap // S, tap % S
        if word == 0:
            ptx.mbarrier_expect(full, 0, ROWS * 128)
            corner = n, p * STRIDE - PAD, q * STRIDE - PAD, 0
            ptx.tma_load_pixels(tile, (0, 0), x_map, corner, (r * DILATION, s * DILATION), full, 0)
        ptx.mbarrier_wait(full, 0, tap % 2)
        for row in range(ROWS):
            tiles[r, s, row, word] = tile[row, word]
        cuda.syncthreads()


def run(words=32, stride=1, pad=1, dilation=1, begin=20, images=2):
    """A trace of copies from numbered images of 5 x 6 pixels."""
    x = np.arange(1, 1 + images * 30 * words, dtype=np.uint32).reshape(images, 5, 6, words)
    x_map = ptx.PixelMap(x, ROWS, 32, pad, pad, pad, pad, R, S, stride, stride, dilation, dilation)
    kernel = labkit.specialise(gathered, STRIDE=stride, PAD=pad, DILATION=dilation, BEGIN=begin)
    return labkit.simulate(kernel, 1, 32, x_map, *x_map.windows, np.zeros((R, S, ROWS, 32), np.uint32))


@pytest.fixture(scope="module")
def view():
    return pixel_rows(run())


def test_rows_are_windows_in_the_order_of_the_outputs_across_rows_and_images(view):
    windows = 20 + np.arange(ROWS)  # of 5 x 6 outputs per image
    expected = np.stack([windows // 30, windows // 6 % 5 - 1, windows % 6 - 1], axis=1)
    assert (unpack(view.data["corners"]) == expected).all()
    for r in range(R):
        for s in range(S):
            pixels = expected + np.array((0, r, s))
            outside = (pixels[:, 1:] < 0).any(axis=1) | (pixels[:, 1] >= 5) | (pixels[:, 2] >= 6)
            shown = unpack(view.data["pixels"])[r, s]
            assert (shown[~outside] == pixels[~outside]).all() and (shown[outside] == -1).all()


def test_vectors_are_at_their_number_xor_the_row(view):
    pixels, vectors = unpack(view.data["pixels"]), unpack(view.data["vectors"])
    for row in range(ROWS):
        for tile_pixels, places in zip(pixels.reshape(9, ROWS, 3), vectors.reshape(9, ROWS, 8), strict=True):
            assert (places[row] == (np.arange(8) ^ row % 8 if tile_pixels[row, 0] >= 0 else -1)).all()


def test_each_row_and_then_each_tap_is_told(view):
    say = view.data["say"]
    assert len(say) == ROWS + R * S - 1
    assert say[5] == (
        "Row 5: the window that begins at row 3, column 0 of image 0. Its pixel (0, 0) becomes 128 bytes of the tile. "
        "Vector 0, its first channels, is at **place 5** of the row: TMA swizzles."
    )
    assert say[10].startswith("Row 10: the window that begins at row -1, column -1 of image 1. Its pixel (0, 0) is out")
    assert say[ROWS + 4].startswith("**Tap (1, 2)**, one more copy: the same 16 windows, another offset. 13 rows are")
    assert view.data["stats"]["values"][ROWS + 4] == [6, 13, 3]
    assert view.data["rim"] == [1, 1, 1, 1]


def test_stride_and_dilation_are_read_from_the_run():
    strided = pixel_rows(run(stride=2, begin=0)).data
    assert unpack(strided["corners"])[:4].tolist() == [[0, -1, -1], [0, -1, 1], [0, -1, 3], [0, 1, -1]]
    dilated = pixel_rows(run(dilation=2, begin=0)).data
    assert dilated["dilation"] == [2, 2] and dilated["reach"] == [5, 5]
    assert pixel_rows(run(pad=0, begin=0)).data["rim"] == [0, 0, 0, 0]


def test_few_channels_leave_zeros_in_every_row():
    vectors = unpack(pixel_rows(run(words=4)).data["vectors"])
    assert set((vectors >= 0).sum(axis=-1).ravel()) == {0, 1}  # one vector of 8 channels, or a pixel outside


def test_windows_past_the_last_image_are_zeros():
    data = pixel_rows(run(begin=20, images=1)).data
    assert unpack(data["corners"])[9:12, 0].tolist() == [0, -1, -1]
    why = "no tap of this window meets a pixel. TMA writes **zeros**, and the barrier counts them as well."
    assert data["say"][12] == f"Row 12: {why}"


def test_a_still_picture(view, tmp_path):
    for step in (5, 18):
        view.save_png(tmp_path / "rows.png", step=step)
        assert (tmp_path / "rows.png").stat().st_size > 5000


def test_what_is_no_tile_of_pixels_is_refused():
    with pytest.raises(ValueError, match="no array filters, it has x_map and tiles: say which to show"):
        pixel_rows(run(), images="filters")
    trace = run()
    trace.outputs[-1][1, 2, 4, :8] += 1
    with pytest.raises(ValueError, match=r"Row 4 of the tile of tap \(1, 2\) does not hold vectors of one pixel"):
        pixel_rows(trace)
    with pytest.raises(TypeError, match="pixel_rows takes a trace"):
        pixel_rows(None)

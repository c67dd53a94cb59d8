"""The lowered matrix, held against NumPy's windows, and the tiles that a kernel makes against the matrix."""

import numpy as np
import pytest

import labkit
from labkit import conv, cuda
from labkit.conv.im2col import s01_batch
from labkit.conv.implicit_gemm import s01_index
from labkit.conv.sizes import make_sizes
from labkit.views import lowering
from labkit.views.base import unpack
from labkit.views.lowering import state_at

PADDED = conv.Forward(2, 2, 5, 4, 3, 3, 2, stride_h=2, top=1, left=1)
PLAIN = conv.Forward(2, 2, 6, 6, 4, 3, 3)


def stored(problem, every_block=True):
    of, images = make_sizes(problem), problem.operands()[0].reshape(problem.N, -1)
    matrix = np.empty((int(of.CRS), int(of.NPQ)), np.float32)
    grid = 1, -(-matrix.shape[0] // s01_batch.ROWS)
    record = list(np.ndindex(*grid))[: None if every_block else 1]
    return labkit.simulate(s01_batch.batch, grid, s01_batch.THREADS, images, matrix, of, record=record)


def gathered(problem, tile=4):
    kernel, of = labkit.specialise(s01_index.index, TILE=tile), make_sizes(problem)
    x, w, y, _ = problem.operands()
    grid = -(-int(of.NPQ) // tile), -(-problem.K // tile)
    filters, record = w.reshape(problem.K, -1), list(np.ndindex(*grid))
    return labkit.simulate(kernel, grid, (tile, tile), x, filters, y, of, record=record)


def places(problem):
    """Which pixel stands where, by NumPy; -1 in the padding."""
    numbers = np.arange(problem.N * problem.C * problem.H * problem.W).reshape(problem.N, problem.C, problem.H, -1)
    rows, columns = (problem.top, problem.bottom), (problem.left, problem.right)
    padded = np.pad(numbers, ((0, 0), (0, 0), rows, columns), constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (problem.R, problem.S), (2, 3))
    windows = windows[:, :, :: problem.stride_h, :: problem.stride_w]
    return windows.transpose(1, 4, 5, 0, 2, 3).reshape(problem.C * problem.R * problem.S, -1)


@pytest.fixture(scope="module")
def both():
    return lowering(stored(PLAIN), gathered(PLAIN), shape=(2, 2, 6, 6))


@pytest.mark.parametrize("problem", [PLAIN, PADDED], ids=str)
def test_each_element_of_the_matrix_shows_the_pixel_that_was_stored_there(problem):
    view = lowering(stored(problem), shape=(problem.N, problem.C, problem.H, problem.W))
    np.testing.assert_array_equal(unpack(view.data["place"]), places(problem).ravel())
    assert view.data["bytes"] == {
        "images": 4 * problem.operands()[0].size,
        "matrix": 4 * places(problem).size,
        "tile": 0,
    }
    pixel = int(view.data["start"])
    assert view.data["stats"]["values"][pixel][0] == (places(problem) == pixel).sum()


def test_a_pixel_lights_up_once_for_each_tap_that_meets_it(both):
    pixel = (1 * 2 + 0) * 36 + 2 * 6 + 3
    pixels, elements, exists = state_at(both.data, pixel)
    assert pixels.tolist() == [pixel] and exists.all()
    np.testing.assert_array_equal(elements, np.flatnonzero(places(PLAIN).ravel() == pixel))
    assert both.data["say"][pixel] == (
        "`images[1, 0, 2, 3]` stands at **9 places** of the matrix, `matrix[0, 27]` to `matrix[8, 17]`, "
        "each under another tap."
    )
    assert both.data["say"][0] == "`images[0, 0, 0, 0]` stands at **1 place** of the matrix, `matrix[0, 0]`."


def test_behind_the_pixels_come_all_tiles_of_each_block(both):
    of_tiles = both.data["say"][2 * 2 * 36 :]
    assert len(of_tiles) == 8 * 5, "8 blocks, and 18 rows in tiles of 4"
    corners = unpack(both.data["tile"]["corners"]).reshape(-1, 2).tolist()
    assert corners == [[4 * turn, 4 * block] for block in range(8) for turn in range(5)]
    pixels, elements, exists = state_at(both.data, 144 + 6)
    part = places(PLAIN)[4:8, 4:8]
    assert sorted(set(part.ravel())) == pixels.tolist()
    assert len(elements) == exists.sum() == 16
    assert of_tiles[6] == (
        f"Block (1, 0), round 2: it fills `x_tile` with rows 4 to 7, columns 4 to 7, from **{len(pixels)} pixels**. "
        "The rest of `matrix` does not exist."
    )
    assert both.data["stats"]["values"][144 + 6] == ["\u2013", "0.0", 7]
    assert both.data["bytes"]["tile"] == 64


def test_zeros_in_a_tile_are_counted():
    view = lowering(stored(PADDED), gathered(PADDED), shape=(2, 2, 5, 4))
    first = places(PADDED)[:4, :4]
    assert f"from **{len(np.unique(first)) - 1} pixels** and {(first < 0).sum()} zeros." in view.data["say"][2 * 2 * 20]


def test_gaps_part_channels_and_images(both):
    assert both.data["matrix"]["breaks"] == [[9], [16]]


def test_rows_of_zeros_make_no_gap():
    view = lowering(stored(conv.Forward(1, 2, 1, 4, 1, 3, 1, top=1, bottom=1)), shape=(1, 2, 1, 4))
    assert view.data["matrix"]["breaks"] == [[4], []], "a pixel stands in the middle row of each channel alone"


def test_a_pixel_that_no_window_meets_is_nowhere():
    problem = conv.Forward(1, 1, 4, 4, 1, 1, 1, 3, 3)
    view = lowering(stored(problem), shape=(1, 1, 4, 4))
    assert view.data["say"][1] == "No window meets `images[0, 0, 0, 1]`: it stands **nowhere** in the matrix."


def test_tiles_of_another_problem_are_refused():
    with pytest.raises(ValueError, match="is no tile of the matrix"):
        lowering(stored(PLAIN), gathered(conv.Forward(2, 2, 6, 6, 4, 3, 3, dilation_w=2)), shape=(2, 2, 6, 6))


def test_all_blocks_must_be_recorded():
    with pytest.raises(ValueError, match="record every block"):
        lowering(stored(PLAIN, every_block=False), shape=(2, 2, 6, 6))


def test_the_shape_of_the_images_is_asked_for_where_it_cannot_be_seen():
    with pytest.raises(ValueError, match=r"does not hold images of N, C, H, W = \(2, 2, 6, 5\)"):
        lowering(stored(PLAIN), shape=(2, 2, 6, 5))
    with pytest.raises(ValueError, match="fills no global array lowered"):
        lowering(stored(PLAIN), shape=(2, 2, 6, 6), matrix="lowered")


def test_what_is_too_large_to_show_says_so():
    with pytest.raises(ValueError, match="take a smaller problem"):
        lowering(stored(conv.Forward(1, 1, 40, 40, 1, 1, 1)), shape=(1, 1, 40, 40))


@cuda.jit
def line_by_line(x, matrix):
    i = cuda.grid(1)
    for r in range(2):
        pixel = x[i // 3 + r, i % 3]
        matrix[r, i] = pixel


def test_a_kernel_may_load_on_one_line_and_store_on_another():
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    view = lowering(labkit.simulate(line_by_line, 1, 6, x, np.empty((2, 6), np.float32)))
    assert unpack(view.data["place"]).tolist() == [*range(6), *range(3, 9)]
    assert view.data["image"]["planes"] == [1, 1]


@pytest.mark.parametrize("step", [0, 150])
def test_a_still_picture(both, tmp_path, step):
    both.save_png(tmp_path / "lowering.png", step=step)
    assert (tmp_path / "lowering.png").stat().st_size > 5000

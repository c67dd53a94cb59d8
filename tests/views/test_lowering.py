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
def by_pixel():
    return lowering(stored(PLAIN), shape=(2, 2, 6, 6))


@pytest.fixture(scope="module")
def by_tile():
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


def test_a_pixel_lights_up_once_for_each_tap_that_meets_it(by_pixel):
    pixel = (1 * 2 + 0) * 36 + 2 * 6 + 3
    pixels, elements, exists = state_at(by_pixel.data, pixel)
    assert pixels.tolist() == [pixel] and exists.all()
    np.testing.assert_array_equal(elements, np.flatnonzero(places(PLAIN).ravel() == pixel))
    assert by_pixel.data["say"][pixel] == (
        "`images[1, 0, 2, 3]` is stored **9 times** in the matrix, from `matrix[0, 27]` to `matrix[8, 17]`, "
        "each time under another tap."
    )
    assert by_pixel.data["say"][0] == "`images[0, 0, 0, 0]` is stored **once** in the matrix, at `matrix[0, 0]`."


@pytest.mark.parametrize("problem", [PLAIN, PADDED], ids=str)
def test_a_column_is_the_window_of_an_output(problem):
    view = lowering(stored(problem), shape=(problem.N, problem.C, problem.H, problem.W), by="output")
    expected = places(problem)
    assert len(view.data["say"]) == expected.shape[1] == problem.N * problem.P * problem.Q
    for column, held in enumerate(expected.T):
        pixels, elements, exists = state_at(view.data, column)
        assert pixels.tolist() == sorted(held[held >= 0]) and exists.all()
        assert elements.tolist() == [row * expected.shape[1] + column for row in range(expected.shape[0])]
        assert view.data["stats"]["values"][column][0] == len(pixels)


def test_a_column_names_the_ends_of_its_window_and_counts_zeros():
    say = lowering(stored(PLAIN), shape=(2, 2, 6, 6), by="output").data["say"][5]
    assert say == (
        "Column 5 of `matrix` is the window of one output: **18 pixels**, `images[0, 0, 1, 1]` to `images[0, 1, 3, 3]`."
    )
    say = lowering(stored(PADDED), shape=(2, 2, 5, 4), by="output").data["say"][0]
    assert "**4 pixels** and 8 zeros" in say, "the first row and the first column of the window are padding"


def test_pictures_of_several_sizes_share_a_meter(by_pixel):
    assert by_pixel.data["meter"] == by_pixel.data["bytes"]["matrix"] == 2304
    assert lowering(stored(PLAIN), shape=(2, 2, 6, 6), meter_bytes=9000).data["meter"] == 9000
    assert lowering(stored(PLAIN), shape=(2, 2, 6, 6), meter_bytes=9).data["meter"] == 2304


def test_steps_by_anything_else_are_refused():
    with pytest.raises(ValueError, match="Steps are by 'pixel' or 'output', not by 'tap'"):
        lowering(stored(PLAIN), shape=(2, 2, 6, 6), by="tap")


def test_behind_the_stored_matrix_come_all_tiles_of_each_block(by_tile):
    says, stats = by_tile.data["say"], by_tile.data["stats"]["values"]
    assert len(says) == 1 + 8 * 5, "the matrix; 8 blocks, and 18 rows in tiles of 4"
    assert says[0] == "`batch` stores **all of `matrix`**. The next steps never do."
    assert state_at(by_tile.data, 0)[2].all() and stats[0] == ["4.0", 0]
    corners = unpack(by_tile.data["tile"]["corners"]).reshape(-1, 2).tolist()
    assert corners == [[4 * turn, 4 * block] for block in range(8) for turn in range(5)]
    pixels, elements, exists = state_at(by_tile.data, 7)
    part = places(PLAIN)[4:8, 4:8]
    assert sorted(set(part.ravel())) == pixels.tolist()
    assert len(elements) == exists.sum() == 16
    assert says[7] == (
        f"Block (1, 0), iteration 2: it fills `x_tile` with rows 4 to 7, columns 4 to 7, from **{len(pixels)} pixels**."
        " The rest of `matrix` does not exist."
    )
    assert stats[7] == ["0.0", 7]
    assert by_tile.data["bytes"]["tile"] == 64


def test_zeros_in_a_tile_are_counted():
    view = lowering(stored(PADDED), gathered(PADDED), shape=(2, 2, 5, 4))
    first = places(PADDED)[:4, :4]
    assert f"from **{len(np.unique(first)) - 1} pixels** and {(first < 0).sum()} zeros." in view.data["say"][1]


def test_gaps_part_channels_and_images(by_pixel):
    assert by_pixel.data["matrix"]["breaks"] == [[9], [16]]


def test_rows_of_zeros_make_no_gap():
    view = lowering(stored(conv.Forward(1, 2, 1, 4, 1, 3, 1, top=1, bottom=1)), shape=(1, 2, 1, 4))
    assert view.data["matrix"]["breaks"] == [[4], []], "a pixel stands in the middle row of each channel alone"


def test_a_pixel_that_no_window_meets_is_nowhere():
    problem = conv.Forward(1, 1, 4, 4, 1, 1, 1, 3, 3)
    view = lowering(stored(problem), shape=(1, 1, 4, 4))
    assert view.data["say"][1] == "No window meets `images[0, 0, 0, 1]`: it is **nowhere** in the matrix."


def test_tiles_of_another_problem_are_refused():
    with pytest.raises(ValueError, match="does not fill x_tile with a tile of the matrix"):
        lowering(stored(PLAIN), gathered(conv.Forward(2, 2, 6, 6, 4, 3, 3, dilation_w=2)), shape=(2, 2, 6, 6))


def test_all_blocks_must_be_recorded():
    with pytest.raises(ValueError, match="record every block"):
        lowering(stored(PLAIN, every_block=False), shape=(2, 2, 6, 6))


def test_the_shape_of_the_images_is_asked_for_where_it_cannot_be_seen():
    with pytest.raises(ValueError, match=r"does not hold images of N, C, H, W = \(2, 2, 6, 5\)"):
        lowering(stored(PLAIN), shape=(2, 2, 6, 5))
    with pytest.raises(ValueError, match="does not fill a global array lowered"):
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


@pytest.mark.parametrize("step", [0, 30])
def test_a_still_picture(by_pixel, by_tile, tmp_path, step):
    for view in (by_pixel, by_tile, lowering(stored(PLAIN), shape=(2, 2, 6, 6), by="output")):
        view.save_png(tmp_path / "lowering.png", step=step)
        assert (tmp_path / "lowering.png").stat().st_size > 5000

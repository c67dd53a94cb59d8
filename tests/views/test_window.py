"""A convolution's window, held against loads counted by hand and against what the run counted."""

import numpy as np
import pytest

import labkit
from labkit import conv, cuda
from labkit.views import window
from labkit.views.base import unpack
from labkit.views.window import counts_at


@cuda.jit
def direct(x, w, y, pad, dilation):
    q, p, image = cuda.grid(3)
    K, C, R, S = w.shape
    if p < y.shape[2] and q < y.shape[3]:
        n, k = image // K, image % K
        total = np.float32(0)
        for c in range(C):
            for r in range(R):
                for s in range(S):
                    row, column = p + r * dilation - pad, q + s * dilation - pad
                    if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                        total += x[n, c, row, column] * w[k, c, r, s]
        y[n, k, p, q] = total


@cuda.jit
def from_a_tile(x, y):
    tile = cuda.shared.array((6, 8), np.float32)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    tile[row, column] = x[row, column]
    cuda.syncthreads()
    if 0 < row < 5 and 0 < column < 7:
        y[row, column] = tile[row - 1, column] + tile[row + 1, column]


@cuda.jit
def vector(x, y):
    y[cuda.threadIdx.x] = x[cuda.threadIdx.x]


def run(problem, record=((0, 0, 0),)):
    operands = problem.operands()
    grid = (1, 1, problem.N * problem.K)
    return labkit.simulate(direct, grid, (16, 16), *operands[:3], problem.top, problem.dilation_h, record=record)


@pytest.fixture(scope="module")
def plain():
    return window(run(conv.Forward(1, 1, 7, 9, 1, 3, 3)))


def loads(view, step=-1, role="x"):
    step %= len(view.data["say"])
    counts, now = counts_at(view.data, role, step)
    sides = view.data["panels"][role]["sides"]
    return counts.reshape(-1, *sides), now


def test_every_pixel_counts_the_windows_that_it_lies_in(plain):
    counts, _ = loads(plain)
    rows, columns = (np.convolve(np.ones(size - 2), np.ones(3)) for size in (7, 9))
    assert (counts[0] == np.outer(rows, columns)).all()
    assert plain.data["most"] == 9


def test_the_first_window_is_walked_tap_by_tap(plain):
    say = plain.data["say"]
    assert len(say) == 9 + 5 * 7 - 1
    assert say[5] == "Thread (0, 0), **product 6 of 9**: `x[0, 0, 1, 2]` times `w[0, 0, 1, 2]`."
    assert say[8].endswith("and it stores `y[0, 0, 0, 0]`.")
    counts, now = loads(plain, 5)
    assert counts.sum() == 6 and now.tolist() == [1 * 9 + 2]


def test_a_step_is_a_thread_and_says_what_was_loaded_before(plain):
    assert (
        plain.data["say"][9]
        == "Thread (1, 0) loads **9 pixels** for `y[0, 0, 0, 1]`; 6 of them had been loaded before."
    )
    _, now = loads(plain, 9)
    assert now.tolist() == [r * 9 + s for r in range(3) for s in (1, 2, 3)]
    _, stored = loads(plain, 9, "y")
    assert stored.tolist() == [1]


def test_the_numbers_are_those_that_the_run_counted():
    problem = conv.Forward(2, 3, 6, 5, 2, 3, 3, top=1, bottom=1, left=1, right=1)
    trace = run(problem, record=tuple((0, 0, z) for z in range(4)))
    view = window(trace)
    (of_x,) = [counted for counted in trace.sites if counted.site.array == "x"]
    total, different, most, mean = view.data["stats"]["values"][-1]
    assert (total, different) == (of_x.accesses, 2 * 3 * 6 * 5)
    assert most == view.data["most"] == 9 * 2, "all taps of both filters meet an inner pixel"
    assert mean == f"{total / different:.1f}"
    assert "product 1 of 12" in view.sentence, "3 channels of the 4 taps that are not in the padding"
    assert "for `y[1, 1, 5, 4]`; all of them had been loaded before." in view.data["say"][-1]
    assert "of block (0, 0, 1)" in " ".join(view.data["say"])


def test_one_pixel_that_was_loaded_before_is_spoken_of_as_one():
    view = window(run(conv.Forward(1, 1, 3, 3, 2, 1, 1), record=((0, 0, 0), (0, 0, 1))))
    assert view.data["say"][-1].endswith("loads **1 pixel** for `y[0, 1, 2, 2]`; it had been loaded before.")


def test_a_dilated_window_has_holes():
    view = window(run(conv.Forward(1, 1, 9, 9, 1, 3, 3, dilation_h=2, dilation_w=2)))
    _, now = loads(view, 9)
    assert now.tolist() == [r * 9 + s for r in (0, 2, 4) for s in (1, 3, 5)]


def test_reads_of_shared_memory_stand_beside_the_loads_that_they_save():
    x = np.ones((6, 8), np.float32)
    view = window(labkit.simulate(from_a_tile, 1, (8, 6), x, x * 0))
    assert list(view.data["panels"]) == ["x", "y"], "a stencil has no filters"
    assert view.data["stats"]["values"][-1] == [48, 48, 1, "1.0", 2 * 4 * 6]
    assert view.data["say"][9] == "Thread (1, 1) loads **1 pixel** into the tile, and stores `y[1, 1]`."
    assert view.data["say"][8] == "Thread (0, 1) loads **1 pixel** into the tile, and stores nothing."


def test_names_may_be_others():
    x = np.ones((6, 8), np.float32)
    trace = labkit.simulate(from_a_tile, 1, (8, 6), x, x * 0)
    with pytest.raises(ValueError, match="The kernel has no array picture, it has x and y"):
        window(trace, image="picture")


def test_a_window_needs_rows_and_columns():
    x = np.ones(8, np.float32)
    with pytest.raises(ValueError, match="x has one axis"):
        window(labkit.simulate(vector, 1, 8, x, x * 0))


def test_a_still_picture(plain, tmp_path):
    plain.save_png(tmp_path / "window.png", step=20)
    assert (tmp_path / "window.png").stat().st_size > 5000


def test_what_a_thread_brings_to_a_tile_is_no_product_of_its_own():
    layer = conv.Forward(1, 2, 8, 8, 1, 3, 3)
    (trace,) = conv.ladder("direct").step("halo").simulate(*layer.operands()).traces
    says = window(trace).data["say"]
    assert not any("product" in sentence for sentence in says)


def test_windows_hang_over_the_edge_into_the_padding():
    problem = conv.Forward(1, 1, 7, 9, 1, 3, 3, top=1, bottom=1, left=1, right=1)
    view = window(run(problem))
    assert view.data["panels"]["x"]["rim"] == [1, 1, 1, 1]
    frames = unpack(view.data["frames"])
    assert frames[0].tolist() == [-1, -1, 3, 3], "above and left of the image"
    assert frames[-1].tolist() == [5, 7, 3, 3], "below and right of it"
    assert "product 1 of 4: x[0, 0, 0, 0] times w[0, 0, 1, 1]" in view.sentence
    assert view.data["say"][4].endswith("3 taps meet zeros of the padding, which are not loaded.")


def test_a_stride_or_a_dilation_is_found_in_the_run():
    problem = conv.Forward(1, 1, 9, 11, 1, 3, 3, stride_h=2, stride_w=3, dilation_h=2, top=2, left=1)
    (trace,) = conv.ladder("direct").step("naive").simulate(*problem.operands()).traces
    view = window(trace)
    assert view.data["panels"]["x"]["rim"] == [2, 0, 1, 0]
    frames = np.unique(unpack(view.data["frames"]), axis=0)
    expected = [[2 * p - 2, 3 * q - 1, 5, 3] for p in range(problem.P) for q in range(problem.Q)]
    assert frames.tolist() == expected


def test_no_frame_is_guessed_where_windows_do_not_explain_the_loads():
    x = np.ones((6, 8), np.float32)
    assert window(labkit.simulate(from_a_tile, 1, (8, 6), x, x * 0)).data["frames"] is None


def test_each_tile_of_several_blocks_has_an_outline():
    layer = conv.Forward(1, 1, 20, 20, 1, 3, 3)
    blocks = [(0, i, j) for i in range(2) for j in range(2)]
    (trace,) = conv.ladder("direct").step("halo").simulate(*layer.operands(), record=blocks).traces
    view = window(trace)
    boxes = [tile["box"] for tile in view.data["tiles"]]
    assert boxes == [[0, 0, 18, 18], [16, 0, 4, 18], [0, 16, 18, 4], [16, 16, 4, 4]]
    counts, _ = loads(view)
    for row, column, rows, columns in boxes:
        counts[0, row : row + rows, column : column + columns] -= 1
    assert not counts.any(), "the tiles are all that is loaded"


def test_pictures_can_share_a_scale():
    assert window(run(conv.Forward(1, 1, 7, 9, 1, 3, 3)), most=50).data["most"] == 50


def test_a_long_line_of_planes_is_folded_and_a_thread_of_registers_stores_a_tile_of_outputs():
    layer = conv.Forward(1, 1, 18, 18, 8, 3, 3)
    (trace,) = conv.ladder("direct").step("registers").simulate(*layer.operands()).traces
    view = window(trace)
    assert [view.data["panels"][role]["planes"] for role in "xwy"] == [[1, 1], [2, 4], [2, 4]]
    assert "stores y at 64 places" in view.sentence
    _, now = loads(view, 0, "y")
    assert now.tolist() == [k * 256 + row * 16 for k in range(8) for row in range(0, 16, 2)]

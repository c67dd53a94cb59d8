"""The swizzle view's passes are those that the simulator counts, and its tile is the one in shared memory."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.views import swizzle
from labkit.views.base import unpack

SWIZZLED = 1


@cuda.jit
def load_fragments(A, out):
    tile = cuda.shared.array((16, 32), np.uint32, alignment=16)
    lane = cuda.threadIdx.x
    for row in range(lane // 8, 16, 4):
        piece = lane % 8
        place = piece ^ row % 8 if SWIZZLED else piece
        w0, w1, w2, w3 = ptx.load4(A, (row, piece * 4))
        ptx.store4(tile, (row, place * 4), w0, w1, w2, w3)
    cuda.syncthreads()
    for step in range(0, 8, 2):
        row, piece = lane % 16, step + lane // 16
        place = piece ^ row % 8 if SWIZZLED else piece
        a0, a1, a2, a3 = ptx.ldmatrix4(tile, (row, place * 4))
        ptx.store4(out, (step // 2, lane * 4), a0, a1, a2, a3)


@cuda.jit
def no_matrices(A, out):
    out[0, cuda.threadIdx.x] = A[0, cuda.threadIdx.x]


def traced(swizzled, kernel=load_fragments):
    if kernel is load_fragments:
        kernel = labkit.specialise(kernel, SWIZZLED=swizzled)
    A = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    return labkit.simulate(kernel, 1, 32, A, np.zeros((4, 128), np.uint32))


@pytest.mark.parametrize("swizzled, passes", [(0, 8), (1, 1)])
def test_passes_are_those_that_the_simulator_counts(swizzled, passes):
    trace = traced(swizzled)
    (side,) = swizzle(trace).data["sides"]
    counted = next(c.wavefronts for c in trace.sites if c.site.space == "shared" and c.site.kind == "load")
    assert set(side["passes"]) == {passes} and sum(side["passes"]) == counted


def test_a_tile_shows_where_each_piece_lies():
    (side,) = swizzle(traced(1)).data["sides"]
    row, place = np.indices((16, 8))
    assert (unpack(side["contents"]) == place ^ row % 8).all()


def test_the_sentence_names_the_piece_and_compares():
    view = swizzle(traced(0), traced(1), labels=("plain", "swizzled"))
    assert "Lanes 0 to 7 load vector 0 of rows 0 to 7" in view.sentence
    assert "plain: 8 wavefronts, through 4 of the 32 banks" in view.sentence
    assert "swizzled: 1 wavefront, through 32 of the 32 banks" in view.sentence


@cuda.jit
def load_pairs(A, out):
    tile = cuda.shared.array((16, 32), np.uint32, alignment=16)
    lane = cuda.threadIdx.x
    for row in range(16):
        tile[row, lane] = A[row, lane]
    cuda.syncthreads()
    for step in range(0, 8, 2):
        b0, b1 = ptx.ldmatrix2(tile, (lane % 8, (step + lane // 8 % 2) * 4))
        out[step // 2, lane] = b0 + b1


def test_two_matrices_at_a_time_are_those_of_sixteen_lanes():
    says = swizzle(traced(0, load_pairs)).data["say"]
    assert [say.split(" load")[0] for say in says] == ["Lanes 0 to 7", "Lanes 8 to 15"] * 4


def test_a_kernel_without_matrices_is_refused():
    with pytest.raises(ValueError, match="makes no `ldmatrix`"):
        swizzle(traced(0, no_matrices))
    with pytest.raises(TypeError, match="not nothing"):
        swizzle()


def test_a_still_picture_is_drawn(tmp_path):
    swizzle(traced(0), traced(1)).save_png(tmp_path / "swizzle.png", step=3)
    assert (tmp_path / "swizzle.png").stat().st_size > 10_000

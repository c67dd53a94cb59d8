"""The tiling view says what the recorded block did, and no more."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.gemm.fp32 import s01_naive, s03_tiled
from labkit.views import tiling
from labkit.views.base import unpack
from labkit.views.tiling_still import _replay

TILE = 8


def product(M=16, N=16, K=24, record=((1, 1, 0),), step=s03_tiled, **constants):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(M, K)).astype(np.float32)
    B = rng.normal(size=(K, N)).astype(np.float32)
    kernel = step.tiled if step is s03_tiled else step.naive
    if constants:
        kernel = labkit.specialise(kernel, **constants)
        T = constants["TILE"]
        grid, block = (-(-N // T), -(-M // T)), (T, T)
    else:
        grid, block = step.geometry(M, N)
    return labkit.simulate(kernel, grid, block, A, B, np.zeros((M, N), np.float32), record=record)


def last(view, label):
    return view.data["stats"]["values"][-1][view.data["stats"]["labels"].index(label)]


def test_a_tiled_product_loads_each_value_once_a_tile():
    view = tiling(product(TILE=8))
    assert view.data["product"]
    assert "block (1, 1) of `tiled` for a 16 x 16 product, tiles of 8 x 8" in view.title
    assert last(view, "global loads so far") == 2 * 8 * 24
    assert last(view, "loads without tiles") == 2 * 8 * 8 * 24
    assert last(view, "reads per load") == 8


def test_sentences_name_what_is_touched():
    says = tiling(product(TILE=8)).data["say"]
    assert "block (1, 1) copies `A[8:16, 0:8]` into `A_tile[:, :]`: 64 loads" in says[0]
    assert "copies `B[0:8, 8:16]` into `B_tile[:, :]`" in says[1]
    assert "barrier" in says[2]
    assert "warp 0 reads `A_tile[0:4, 0]` and `B_tile[0, :]`. Nothing comes from global memory" in says[3]
    assert says[0].startswith("Iteration 1 of 3") and "warp 0 writes `C[8:12, 8:16]`" in says[-1]


def test_another_warp_can_be_picked_out():
    says = tiling(product(TILE=8), warp=1).data["say"]
    assert "warp 1 reads `A_tile[4:8, 0]` and `B_tile[0, :]`" in says[3]


def test_reads_of_filled_in_zeros_serve_no_load():
    view = tiling(product(M=12, N=12, K=10, TILE=8))  # block (1, 1) covers 4 rows and 4 columns
    assert last(view, "global loads so far") == 2 * 4 * 10
    assert last(view, "reads per load") == 8


def test_a_kernel_without_shared_memory_shows_repeated_loads():
    view = tiling(product(step=s01_naive, record=((0, 0, 0),)))
    assert view.data["product"] and "no shared memory" in view.title
    assert last(view, "global loads so far") == 2 * 16 * 16 * 24
    assert last(view, "different elements") == 2 * 16 * 24
    assert last(view, "loads of each") == 16


def test_totals_are_those_of_the_launch_if_it_has_one_block():
    trace = product(M=8, N=8, record=((0, 0, 0),), TILE=8)
    view = tiling(trace)
    assert last(view, "global loads so far") == trace.counters.global_loads
    assert last(view, "loads without tiles") == trace.counters.shared_loads


def test_the_still_picture_replays_the_shared_tiles():
    view = tiling(product(TILE=8))
    names = [panel["name"] for panel in view.data["panels"]]
    assert names == ["A", "B", "C", "A_tile", "B_tile"]
    touched, filled, reads, now = _replay(view.data, 4)  # two copies, a barrier, k = 0, k = 1
    assert filled[3].all() and touched[0].sum() == 64
    assert reads[3].reshape(8, 8)[:, :2].tolist() == [[8, 8]] * 8 and not reads[3].reshape(8, 8)[:, 2:].any()
    assert np.flatnonzero(now[4] == 2).tolist() == list(range(8, 16))


def test_names_may_differ_and_arrays_that_fit_are_found():
    @cuda.jit
    def multiply(out, left, right):
        col, row = cuda.grid(2)
        total = np.float32(0)
        for k in range(left.shape[1]):
            total += left[row, k] * right[k, col]
        out[row, col] = total

    ones = np.ones((8, 12), np.float32), np.ones((12, 4), np.float32)
    view = tiling(labkit.simulate(multiply, 1, (4, 8), np.zeros((8, 4), np.float32), *ones))
    panels = [(panel["name"], panel["role"]) for panel in view.data["panels"]]
    assert panels == [("left", "A"), ("right", "B"), ("out", "C")]


def test_other_kernels_are_not_called_a_product():
    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + y[i]

    x = np.ones(64, np.float32)
    view = tiling(labkit.simulate(add, 2, 32, x, x, x * 0, record=((1, 0, 0),)))
    assert not view.data["product"] and "product" not in view.title
    assert "x[32:64] and y[32:64]" in view.sentence


def test_values_that_come_by_way_of_a_variable_are_not_claimed_as_copies():
    @cuda.jit
    def backwards(x, out):
        held = cuda.shared.array(32, np.float32)
        i = cuda.threadIdx.x
        value = x[i]
        held[i] = value
        cuda.syncthreads()
        out[i] = held[31 - i]

    x = np.ones(32, np.float32)
    view = tiling(labkit.simulate(backwards, 1, 32, x, x * 0))
    assert view.data["stats"]["labels"] == ["global loads so far", "shared reads so far"]
    assert view.data["stats"]["values"][-1] == [32, 32]
    assert all(site["source"] == -1 for site in view.data["sites"])


def test_a_copy_that_is_read_once_is_no_tile():
    @cuda.jit
    def pass_on(x, out):
        hand = cuda.shared.array(32, np.float32)
        i = cuda.threadIdx.x
        hand[i] = x[i]
        for _ in range(2):
            cuda.syncthreads()
            taken = hand[(i + 1) % 32]
            cuda.syncthreads()
            hand[i] = taken
        out[i] = hand[i]

    x = np.ones(32, np.float32)
    view = tiling(labkit.simulate(pass_on, 1, 32, x, x * 0))
    assert "with shared memory" in view.title and "tile" not in view.title.lower()
    assert view.data["stats"]["labels"] == ["global loads so far", "shared reads so far"]
    assert view.data["stats"]["values"][-1] == [32, 3 * 32]


def test_a_block_that_touches_nothing_says_so(tmp_path):
    @cuda.jit
    def never(x):
        if cuda.grid(1) > x.size:
            x[0] = 0

    view = tiling(labkit.simulate(never, 1, 32, np.ones(64, np.float32)))
    assert view.sentence == "Block (0, 0) touched no array in memory."
    view.save_png(tmp_path / "nothing.png")


def test_a_block_that_was_not_recorded_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"Block \(0, 1\) was not recorded, only \(1, 1\); .*record="):
        tiling(product(TILE=8), block=(0, 1))


def test_the_lanes_are_sent_once_and_small():
    view = tiling(product(M=64, N=64, K=64, TILE=32))
    assert len(view.to_html()) < 120_000
    assert unpack(view.data["index"]).shape[1] == 32


def test_a_round_ends_with_its_barrier():
    @cuda.jit
    def pass_on(x, out):
        hand = cuda.shared.array(32, np.float32)
        i = cuda.threadIdx.x
        hand[i] = x[i]
        cuda.syncthreads()
        for _ in range(3):
            taken = hand[(i + 1) % 32]
            cuda.syncthreads()
            hand[i] = taken
            cuda.syncthreads()
        out[i] = hand[i]

    x = np.ones(32, np.float32)
    view = tiling(labkit.simulate(pass_on, 1, 32, x, x * 0))
    rounds = view.data["rounds"]
    phases = [run["phase"] for run in rounds["runs"]][rounds["start"] :][: rounds["period"]]
    assert phases == ["read shared memory", "barrier", "work in shared memory", "barrier"] and rounds["repeats"] == 3
    says = view.data["say"]
    assert "the elements that were copied are marked there" in says[2]
    assert says[6].endswith("Nothing comes from global memory.")  # the second round reads no copies

"""The phases, bytes and waits that the view of mbarriers shows are those of the run."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.views import mbarriers

STAGES, GIVES_BACK = 2, 1


@cuda.jit
def ring(A_map, out, tiles):
    buffers = ptx.shared_array(0, (STAGES, 8, 32), np.uint32)
    full = cuda.shared.array(STAGES, np.uint64)
    empty = cuda.shared.array(STAGES, np.uint64)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    if warp == 0 and lane == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    for tile in range(tiles):
        stage, phase = tile % STAGES, tile // STAGES
        if warp == 0:
            if lane == 0:
                ptx.mbarrier_wait(empty, stage, (phase + 1) % 2)
                ptx.mbarrier_expect(full, stage, 8 * 128)
                ptx.tma_load(buffers, (stage, 0, 0), A_map, (0, tile * 32), full, stage)
        else:
            ptx.mbarrier_wait(full, stage, phase % 2)
            out[tile, lane] = buffers[stage, 0, lane]
            cuda.syncwarp()
            if lane == 0 and GIVES_BACK:
                ptx.mbarrier_arrive(empty, stage)


def run(tiles, gives_back=1):
    A_map = ptx.TensorMap(np.zeros((8, tiles * 32), np.uint32), (8, 32))
    kernel = labkit.specialise(ring, GIVES_BACK=gives_back)
    return labkit.simulate(kernel, 1, (32, 2), A_map, np.zeros((tiles, 32), np.uint32), tiles, shared_bytes=2048)


@pytest.fixture(scope="module")
def view():
    return mbarriers(run(5))


def test_each_barrier_ends_a_phase_per_tile_of_its_stage(view):
    assert view.data["names"] == ["full[0]", "empty[0]", "full[1]", "empty[1]"]
    assert [phase for phase, *_ in view.data["states"][-1]] == [3, 3, 2, 2]


def test_a_phase_waits_for_its_arrival_and_for_all_its_bytes(view):
    says = view.data["say"]
    at = next(n for n, say in enumerate(says) if "expects 1,024 bytes" in say)
    assert says[at].endswith("arrives at `full[0]`** and expects 1,024 bytes. Phase 0 misses 1,024 bytes.")
    assert view.data["states"][at][0] == [0, 1, 0, 1024, 0, [1]]
    landed = next(n for n, say in enumerate(says) if say.startswith("TMA has written"))
    assert landed > at and says[landed].endswith("the barrier flips to phase 1, parity 1. Warp 1 goes on.")
    assert view.data["states"][landed][0] == [1, 1, 1, 0, 0, []]


def test_the_phase_before_the_first_counts_as_complete(view):
    assert (
        "waits at `empty[0]` for parity 1**. Phase -1, the one before the first, counts as complete"
        in view.data["say"][1]
    )
    waits = [say for say in view.data["say"] if "waits at `empty" in say]
    assert len(waits) == 5 and sum("before the first" in say for say in waits) == 2


def test_a_deadlock_is_the_last_step():
    stuck = mbarriers(run(3, gives_back=0))
    assert stuck.data["say"][-1] == (
        "**Deadlock**: warp 1 waits for phase 1 of `full[0]` and warp 0 waits for phase 0 of `empty[0]`, and nothing "
        "that still runs can complete it."
    )


def test_the_table_has_a_row_per_step_and_the_still_picture_is_drawn(view, tmp_path):
    table = view.data["table"]
    assert table["columns"][:4] == ["step", "at", "full[0]: phase", "full[0]: missing"]
    assert len(table["rows"]) == len(view.data["say"]) and table["rows"][0][2:4] == [
        "0 (parity 0)",
        "1 arrival, 0 bytes",
    ]
    view.save_png(tmp_path / "mbarriers.svg", step=8)
    assert (tmp_path / "mbarriers.svg").stat().st_size > 5000


def test_a_kernel_without_mbarriers_is_refused():
    @cuda.jit
    def plain(out):
        out[cuda.grid(1)] = 1

    with pytest.raises(ValueError, match="initialises 0 mbarriers"):
        mbarriers(labkit.simulate(plain, 1, 32, np.zeros(32, np.float32)))
